"""How much a message tells, by kind as in `lost`, and a message that tells less."""

from __future__ import annotations

from collections import Counter

from daskscope import wire
from daskscope.slices import PROFILES, TABLES, Plain, n_rows

STAGES = ((PROFILES,), ("tasks",), ("groups", "metrics", "spans"), ("events", "log-lines"))
"""What gives way first where there is no room. Groups, metrics and spans come again after a loss."""
AGAIN = ("groups", "metrics", "spans")

_PART_OF = {"log-lines": "logs"}


def told_once(message: wire.Message) -> Counter[str]:
    """How much of what no later message tells, by kind as in `lost`."""
    told = {
        "exceptions": sum(family.count for family in message.exceptions),
        "events": len(message.events),
        "deaths": len(message.deaths),
        "log-lines": len(message.logs.no),
        "tasks": len(message.tasks.worker) * message.tasks.weight,
        "profiles": len(message.profiles),
    }
    return Counter({kind: n for kind, n in told.items() if n})


def told_again(message: wire.Message) -> Counter[str]:
    """Rows that a later message tells again, and that may be left out of this one."""
    told = {"groups": len(message.groups.no), "metrics": len(message.metrics.value), "spans": len(message.spans)}
    return Counter({kind: n for kind, n in told.items() if n})


def counted(plain: Plain) -> Counter[str]:
    """Both, of a message as JSON has it."""
    told = {kind: _n_told(plain, kind) for kind in ("exceptions", "deaths", *(k for kinds in STAGES for k in kinds))}
    return Counter({kind: n for kind, n in told.items() if n})


def without(plain: Plain, kinds: tuple[str, ...]) -> Plain:
    """The same, less what is of these kinds."""
    gone = {_PART_OF.get(kind, kind) for kind in kinds}
    return {name: value for name, value in plain.items() if name not in gone}


def _n_told(plain: Plain, kind: str) -> int:
    name = _PART_OF.get(kind, kind)
    found = plain.get(name)
    if not found:
        return 0
    if kind == "exceptions":
        return sum(family["count"] for family in found)
    if kind == "tasks":
        return n_rows(found, name) * found.get("weight", 1)
    return n_rows(found, name) if name in TABLES else len(found)

"""The lists of a message as JSON has them, defaults left out: how much is in them, some of it, and two of them as one.

What a row refers to by its place in a list (an environment, a worker's address, a frame) goes along, counted anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields
from typing import Any

from daskscope import wire

Plain = dict[str, Any]
"""A message, or a part of it, as `wire.encode` puts it."""

TABLES: dict[str, type[Any]] = {
    "workers": wire.Workers,
    "groups": wire.Groups,
    "metrics": wire.Metrics,
    "tasks": wire.Tasks,
    "logs": wire.Logs,
}
"""Parts that are columns."""
OBJECTS = {
    "members": "no",
    "computations": "no",
    "codes": "hash",
    "spans": "id",
    "exceptions": "no",
    "deaths": "no",
    "events": "no",
}
"""Parts that are lists of objects, and what tells one from another: the newer of two alike counts."""
REFERRED = ("environments", "hardware")
"""Lists that members count in."""
PROFILES = "profiles"

_NO_COLUMNS = {"addresses"}


def _made_by(kind: type[Any], factory: type[Any]) -> tuple[str, ...]:
    found = (f.name for f in fields(kind) if f.default_factory is not MISSING and f.default_factory() == factory())
    return tuple(name for name in found if name not in _NO_COLUMNS)


COLUMNS = {name: _made_by(kind, list) for name, kind in TABLES.items()}
MAPS = {name: _made_by(kind, dict) for name, kind in TABLES.items()}
"""Columns by name: of a group's states, say."""


def n_rows(table: Plain, name: str) -> int:
    """Of a table; a column that a whole table lacks (GPUs) is left out."""
    return max((len(table[column]) for column in COLUMNS[name] if column in table), default=0)


def some(name: str, table: Plain, rows: Sequence[int]) -> Plain:
    """These rows of a table, in this order; for `tasks`, which are numbered from the first on, without a gap."""
    if not rows:
        return {}
    kept = {key: value for key, value in table.items() if key not in COLUMNS[name] and key not in MAPS[name]}
    for column in COLUMNS[name]:
        if column in table:
            kept[column] = [table[column][row] for row in rows]
    for column in MAPS[name]:
        if column in table:
            kept[column] = {key: [values[row] for row in rows] for key, values in table[column].items()}
    if name == "tasks":
        kept["first_no"] = table.get("first_no", 0) + rows[0]
        kept["worker"], kept["addresses"] = recounted([[n] for n in kept["worker"]], table["addresses"])
        kept["worker"] = [n for (n,) in kept["worker"]]
    return kept


def recounted(lists: list[list[int]], named: Sequence[Any]) -> tuple[list[list[int]], list[Any]]:
    """Lists of places in `named`, and so much of `named` as they need."""
    places: dict[int, int] = {}
    told = [[places.setdefault(place, len(places)) for place in places_of] for places_of in lists]
    return told, [named[place] for place in places]


def some_profile(profile: Plain, first: int, last: int) -> Plain:
    """Its stacks from `first` up to `last`. What was cut stands after the last one."""
    stacks, frames = recounted(profile["stack"][first:last], profile["frames"] if profile.get("frames") else [])
    kept = profile | {
        "first_no": profile.get("first_no", 0) + first,
        "stack": stacks,
        "frames": frames,
        "prefix": profile["prefix"][first:last],
        "count": profile["count"][first:last],
    }
    if last < len(profile["stack"]):
        kept.pop("cut", None)
    return kept


def numbered(profiles: Iterable[Plain]) -> list[Plain]:
    """Profiles that each say the number of their first stack in the message, counted as the lake counts them."""
    told: list[Plain] = []
    n = 0
    for profile in profiles:
        n = profile.get("first_no", 0) or n
        told.append(profile | {"first_no": n})
        n += len(profile.get("stack", ())) + bool(profile.get("cut"))
    return told


def with_referred(members: list[Plain], plain: Plain) -> Plain:
    """These members, and so much of `plain`'s other lists as they refer to; alike entries once."""
    kept: Plain = {"members": members} if members else {}
    for name, key in zip(REFERRED, ("environment", "hardware"), strict=True):
        entries: list[Plain] = plain.get(name, [])
        told = [json.dumps(entry, sort_keys=True) for entry in entries]
        places: dict[str, int] = {}
        used: list[Plain] = []
        for number, member in enumerate(kept.get("members", ())):
            if (place := member.get(key)) is not None:
                if told[place] not in places:
                    places[told[place]] = len(used)
                    used.append(entries[place])
                kept["members"][number] = kept["members"][number] | {key: places[told[place]]}
        if used:
            kept[name] = used
    return kept

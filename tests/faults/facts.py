"""What messages tell, row by row as the lake has it: which table, told apart by what, and a hash of all else.

A row of what was made and the row that is found are made equal by the same rule: of a message as it was, before it was
divided, merged or sent, what the lake would have kept of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from daskscope import wire
from daskscope_lambdas.service.envelope import Envelope
from daskscope_lambdas.service.rows import to_rows
from daskscope_query.tables import TABLES

ONCE = {
    "events": "events",
    "logs": "log-lines",
    "tasks": "tasks",
    "exceptions": "exceptions",
    "deaths": "deaths",
    "profiles": "profiles",
}
"""Tables of what is told once, and how `lost` counts it."""
SNAPSHOTS = {
    "clusters": "identities",
    "members": "members",
    "groups": "groups",
    "computations": "computations",
    "spans": "spans",
    "fine_metrics": "metrics",
}
"""Tables of which the newest of each counts; of some `lost` has a count, by that name."""
GAUGES = ("samples", "workers")
"""Rows of a moment: of a message that is in a later one, none is left."""

_OF_EACH = {"account", "cluster", "cluster_id", "boot", "seq", "received_at", "at"}
_KEPT_APART = {"samples": {"merged", "lost", "skew_ms"}, "clusters": {"user_claimed"}}
"""What is not as it was made: it tells of the way, or of the token that it came with."""
_WEIGHTS = {"exceptions": "count", "tasks": "weight"}

Key = tuple[Any, ...]
"""Table, boot, and what tells one from another within; of a gauge that is its message's number first."""


@dataclass(frozen=True, slots=True)
class Fact:
    key: Key
    seq: int
    value: int
    """A hash, of this process alone."""
    weight: int = 1
    """What `lost` counts it as."""


def told(messages: Iterable[wire.Message]) -> list[Fact]:
    """All rows that they are."""
    made = to_rows(Envelope(account="", cluster_id=0, received_at=0.0, message=each) for each in messages)
    return [fact for table, rows in made for fact in facts(table.name, rows.to_pylist(maps_as_pydicts="strict"))]


def facts(table: str, rows: Iterable[Mapping[str, Any]]) -> Iterable[Fact]:
    if table == "profiles":
        yield from _profiles(rows)
        return
    own = [name for name in TABLES[table].key if name not in ("account", "cluster", "boot")]
    apart = _OF_EACH | {*own} | _KEPT_APART.get(table, set())
    weight = _WEIGHTS.get(table)
    for row in rows:
        key = (table, row["boot"], *(row[name] for name in own))
        value = hash(tuple((name, _plain(row[name])) for name in row if name not in apart))
        yield Fact(key, row["seq"], value, row[weight] if weight else 1)


def _profiles(rows: Iterable[Mapping[str, Any]]) -> Iterable[Fact]:
    """A profile is known by when it began: its stacks, in any order, are its value."""
    stacks = defaultdict[Key, list[int]](list)
    seqs = dict[Key, int]()
    for row in rows:
        key = ("profiles", row["boot"], _plain(row["from_at"]))
        stacks[key].append(hash(tuple((name, _plain(row[name])) for name in row if name not in {*_OF_EACH, "no"})))
        seqs[key] = max(seqs.get(key, 0), row["seq"])
    for key, values in stacks.items():
        yield Fact(key, seqs[key], hash(tuple(sorted(values))))


def _plain(value: Any) -> Any:
    """To be hashed; maps in any order."""
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, dict):
        return tuple(sorted((name, _plain(each)) for name, each in value.items()))
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return value

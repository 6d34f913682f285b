"""What must be found in the end: of the messages that were numbered, and of those that were acknowledged.

An id becomes an obligation when the server answered 2xx, with all that is in its body; when faults have stopped, each
obligation is in the lake exactly once. What was numbered and is not there must stand in the plugin's own count of what
it lost, no more and no less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from daskscope import wire
from daskscope.compression import Encoding, decompress
from tests.faults.server import Server

REASONS = ("buffer-full", "refused", "too-large", "not-encodable", "failed", "closing")
"""Under which messages are counted, and parts of one (`parts` of them); all else in `lost` counts what was in them."""

KINDS = {"events": "events", "logs": "log-lines", "tasks": "tasks", "profiles": "profiles"}
"""Tables of what is told once, and how `lost` counts it."""

Fact = tuple[str, str, int]
"""Table, boot and number of something that is told once; a profile is known by when it began."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`unkept`: acknowledged and not found. `untold`: what is missing, less what the plugin says is missing, however
    they differ. `doubled`: rows that a query would see twice."""

    numbered: int
    unkept: int
    untold: int
    doubled: int
    missing: Mapping[str, int]
    """Messages and what was in them that no row tells."""
    merged: int
    """Messages that are told by a later one."""
    stored_again: int
    """Rows that stand in the lake besides and that no query sees."""

    @property
    def lost(self) -> int:
        """In silence."""
        return self.unkept + self.untold

    @property
    def is_clean(self) -> bool:
        return not self.lost and not self.doubled

    @property
    def is_whole(self) -> bool:
        return self.is_clean and not self.missing


class Oracle:
    """Takes in one cluster's messages; several boots are several stories."""

    def __init__(self) -> None:
        self._numbered = set[tuple[str, int]]()
        self._facts = set[Fact]()
        self._acknowledged = set[tuple[str, int]]()
        self._owed = set[Fact]()
        self.n_acknowledged = 0

    def number(self, message: wire.Message) -> None:
        self._numbered.add((message.boot, message.seq))
        self._facts |= set(_facts(message))

    def acknowledge(self, name: str, body: bytes, encoding: Encoding) -> None:
        """`name` as the sender has it; the body is what the server was sent."""
        self.n_acknowledged += 1
        message = wire.decode(decompress(body, encoding))
        part = f"-p{message.part}" if message.part else ""
        assert name == f"{message.cluster}-{message.boot}-{message.seq:08d}{part}", "a name tells what is in the body"
        if not message.part:
            self._acknowledged.add((message.boot, message.seq))
        self._owed |= set(_facts(message))

    def judge(self, server: Server) -> Verdict:
        """Once all is settled."""
        samples = server.rows("samples")
        keys = [(row["boot"], row["seq"]) for row in samples]
        covered = {(row["boot"], row["seq"] - n) for row in samples for n in range((row["merged"] or 0) + 1)}
        seen = [fact for table in KINDS for fact in _seen(server, table)]
        facts = {fact[:3] for fact in seen}
        missing = Counter({"messages": len(self._numbered - covered)})
        missing.update(KINDS[table] for table, _, _ in self._facts - facts)
        told = _told(samples)
        unkept = len(self._acknowledged - covered) + len(self._owed - facts)
        return Verdict(
            numbered=len(self._numbered),
            unkept=unkept,
            untold=sum(abs(missing[kind] - told[kind]) for kind in {*missing, *told}),
            doubled=len(keys) - len(set(keys)) + len(seen) - len(set(seen)),
            missing={kind: n for kind, n in missing.items() if n},
            merged=len(covered - set(keys)),
            stored_again=_n_stored(server) - len(samples),
        )


def _facts(message: wire.Message) -> Iterable[Fact]:
    yield from (("events", message.boot, event.no) for event in message.events)
    yield from (("logs", message.boot, no) for no in message.logs.no)
    yield from (("tasks", message.boot, message.tasks.first_no + n) for n in range(len(message.tasks.group)))
    yield from (("profiles", message.boot, profile.from_ms) for profile in message.profiles)


def _seen(server: Server, table: str) -> Iterable[tuple[Any, ...]]:
    """Of each row what makes it a fact, and of a profile's which stack it is."""
    for row in server.rows(table):
        if table == "profiles":
            yield table, row["boot"], round(row["from_at"].timestamp() * 1e3), tuple(row["stack"])
        else:
            yield table, row["boot"], row["no"]


def _told(samples: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """What the newest message of each boot says was lost."""
    told = Counter[str]()
    newest = {row["boot"]: row for row in sorted(samples, key=lambda row: row["seq"])}
    for row in newest.values():
        lost = dict(row["lost"] or ())
        told["messages"] += sum(lost.get(reason, 0) for reason in REASONS) - lost.get("parts", 0)
        for kind in KINDS.values():
            told[kind] += lost.get(kind, 0)
    return told


def _n_stored(server: Server) -> int:
    """Samples in the lake's files before any rule."""
    import pyarrow.parquet as parquet

    found = [key for key in server.world.objects.list("") if "/samples/" in key and key.endswith(".parquet")]
    return sum(parquet.read_metadata(f"{server.world.lake_root}/{key}").num_rows for key in found)

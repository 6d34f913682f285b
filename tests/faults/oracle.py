"""What must be found in the end: of the messages that were numbered, and of those that were acknowledged.

An id becomes an obligation when the server answered 2xx, with all that is in its body; when faults have stopped, each
obligation is in the lake exactly once. What was numbered and is not there must stand in the plugin's own count of what
it lost, no more and no less. Of what is told again as it changes, the newest must be there. And each row must say what
was made: that nothing of it went where messages are divided and merged is seen by its hash.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from daskscope import wire
from daskscope.compression import Encoding, decompress
from daskscope_lambdas.service.code import CodeKeeper
from tests.faults.facts import GAUGES, ONCE, SNAPSHOTS, Fact, Key, facts, told
from tests.faults.server import ACCOUNT, Server

REASONS = ("buffer-full", "refused", "too-large", "not-encodable", "failed", "closing")
"""Under which messages are counted, and parts of one (`parts` of them); all else in `lost` counts what was in them."""
AT_ONCE = 100
"""Messages that are made rows of."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`unkept`: acknowledged and not found. `untold`: what is missing, less what the plugin says is missing, however
    they differ. `altered`: rows that say what nobody made. `doubled`: rows that a query would see twice."""

    numbered: int
    unkept: int
    untold: int
    altered: int
    doubled: int
    missing: Mapping[str, int]
    """Messages and what was in them that no row tells."""
    stale: Mapping[str, int]
    """What is told again as it changes, and of which the newest is not there though its message is."""
    merged: int
    """Messages that are told by a later one."""
    stored_again: int
    """Rows that stand in the lake besides and that no query sees."""

    @property
    def lost(self) -> int:
        """In silence."""
        return self.unkept + self.untold + self.altered

    @property
    def is_clean(self) -> bool:
        return not self.lost and not self.doubled

    @property
    def is_whole(self) -> bool:
        return self.is_clean and not self.missing and not self.stale


class Oracle:
    """Takes in one cluster's messages; several boots are several stories."""

    def __init__(self) -> None:
        self._numbered = set[tuple[str, int]]()
        self._acknowledged = set[tuple[str, int]]()
        self._made, self._owed = _Told(), _Told()
        self.n_acknowledged = 0

    def number(self, message: wire.Message) -> None:
        self._numbered.add((message.boot, message.seq))
        # Packing may change it: what is kept for later is what it is now.
        self._made.add(wire.decode(wire.encode(message)))

    def acknowledge(self, name: str, body: bytes, encoding: Encoding) -> None:
        """`name` as the sender has it; the body is what the server was sent."""
        self.n_acknowledged += 1
        message = wire.decode(decompress(body, encoding))
        part = f"-p{message.part}" if message.part else ""
        assert name == f"{message.cluster}-{message.boot}-{message.seq:08d}{part}", "a name tells what is in the body"
        if not message.part:
            self._acknowledged.add((message.boot, message.seq))
        self._owed.add(message)

    def judge(self, server: Server) -> Verdict:
        """Once all is settled."""
        self._made.take()
        self._owed.take()
        samples = server.rows("samples")
        keys = {(row["boot"], row["seq"]) for row in samples}
        covered = {(row["boot"], row["seq"] - n) for row in samples for n in range((row["merged"] or 0) + 1)}
        rows = {table: list(facts(table, server.rows(table))) for table in (*ONCE, *SNAPSHOTS, *GAUGES)}
        found = {fact.key: fact for some in rows.values() for fact in sorted(some, key=lambda fact: fact.seq)}
        texts = CodeKeeper(server.world.objects, server.world.vault).read(ACCOUNT, self._made.codes)
        missing, stale = self._missing(found, keys, covered), self._stale(found, texts, covered)
        counted = _counted(samples)
        once = {"messages", *ONCE.values(), "workers"}
        untold = sum(abs(missing[kind] - counted[kind]) for kind in once)
        untold += sum(max(0, n - counted[kind]) for kind, n in stale.items())
        return Verdict(
            numbered=len(self._numbered),
            unkept=len(self._acknowledged - covered) + self._n_unkept(found, texts),
            untold=untold,
            altered=sum(fact.value not in self._made.values[key] for key, fact in found.items()),
            doubled=sum(_n_twice(table, some) for table, some in rows.items()),
            missing={kind: n for kind, n in missing.items() if n},
            stale=stale,
            merged=len(covered - keys),
            stored_again=_n_stored(server) - len(samples),
        )

    def _missing(self, found: Mapping[Key, Fact], keys: set[tuple[str, int]], covered: set[tuple[str, int]]
                 ) -> Counter[str]:  # fmt: skip
        missing = Counter({"messages": len(self._numbered - covered)})
        for key, fact in self._made.newest.items():
            table = key[0]
            if key not in found and table in ONCE:
                missing[ONCE[table]] += fact.weight
            elif key not in found and table == "workers" and key[1:3] in keys:
                missing["workers"] += 1
        return missing

    def _stale(self, found: Mapping[Key, Fact], texts: Mapping[str, str], covered: set[tuple[str, int]]
               ) -> dict[str, int]:  # fmt: skip
        stale = Counter[str]()
        for key, snapshots in self._made.snapshots.items():
            there = [fact for fact in snapshots if (key[1], fact.seq) in covered]
            if there:
                newest = max(there, key=lambda fact: fact.seq)
                stale[SNAPSHOTS[key[0]]] += key not in found or found[key].value != newest.value
        for code, (text, of) in self._made.codes.items():
            stale["codes"] += texts.get(code) != text and bool(of & covered)
        return {kind: n for kind, n in stale.items() if n}

    def _n_unkept(self, found: Mapping[Key, Fact], texts: Mapping[str, str]) -> int:
        n = sum(texts.get(code) != text for code, (text, _) in self._owed.codes.items())
        for key, owed in self._owed.newest.items():
            n += key[0] != "samples" and (key not in found or found[key].seq < owed.seq)
        return n


class _Told:
    """Facts of many messages, made a hundred messages at a time."""

    def __init__(self) -> None:
        self._waiting = list[wire.Message]()
        self.newest = dict[Key, Fact]()
        self.values = defaultdict[Key, set[int]](set)
        self.snapshots = defaultdict[Key, list[Fact]](list)
        self.codes = dict[str, tuple[str, set[tuple[str, int]]]]()
        """By hash, the text and which messages have it."""

    def add(self, message: wire.Message) -> None:
        for code in message.codes:
            self.codes.setdefault(code.hash, (code.text, set()))[1].add((message.boot, message.seq))
        message.codes = []
        self._waiting.append(message)
        if len(self._waiting) >= AT_ONCE:
            self.take()

    def take(self) -> None:
        for fact in told(self._waiting):
            if fact.key not in self.newest or self.newest[fact.key].seq <= fact.seq:
                self.newest[fact.key] = fact
            self.values[fact.key].add(fact.value)
            if fact.key[0] in SNAPSHOTS:
                self.snapshots[fact.key].append(fact)
        self._waiting.clear()


def _n_twice(table: str, rows: list[Fact]) -> int:
    """Rows that are there more than once. A snapshot stands in each day that it came in."""
    keys = [(*fact.key, fact.seq) if table in SNAPSHOTS else fact.key for fact in rows]
    return len(keys) - len(set(keys))


def _counted(samples: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """What the newest message of each boot says was lost."""
    counted = Counter[str]()
    newest = {row["boot"]: row for row in sorted(samples, key=lambda row: row["seq"])}
    for row in newest.values():
        lost = dict(row["lost"] or ())
        counted["messages"] += sum(lost.get(reason, 0) for reason in REASONS) - lost.get("parts", 0)
        for kind in (*ONCE.values(), *SNAPSHOTS.values()):
            counted[kind] += lost.get(kind, 0)
    return counted


def _n_stored(server: Server) -> int:
    """Samples in the lake's files before any rule."""
    import pyarrow.parquet as parquet

    found = [key for key in server.world.objects.list("") if "/samples/" in key and key.endswith(".parquet")]
    return sum(parquet.read_metadata(f"{server.world.lake_root}/{key}").num_rows for key in found)

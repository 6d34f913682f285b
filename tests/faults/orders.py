"""A cluster's messages in any order, some of them more than once: the same rows, the same answers.

Two boots; a message in four parts; one that two others were merged into, one of which came all the same; identities
and snapshots that change; lists that only grow.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from daskscope import testing, wire
from daskscope.compression import Encoding, compress
from daskscope.merging import joined
from daskscope.parts import halves
from daskscope.testing import CLUSTER, INTERVAL_MS, START_MS
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.answers import answers
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.service.completeness import completeness
from daskscope_lambdas.service.computations import Computations
from daskscope_lambdas.service.cost import priced
from daskscope_lambdas.service.depth import DepthReader
from daskscope_lambdas.service.envelope import unpack
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.service.price_file import packaged
from daskscope_lambdas.service.queries import Queries
from daskscope_lambdas.service.records import cluster
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters, connect
from daskscope_query.lake import Lake
from daskscope_query.tables import CATALOG, TABLES

ACCOUNT = "acme"
AHEAD_MS = 3_600_000
"""The scheduler's clock before the server's."""
LATER_MS = 6 * INTERVAL_MS
"""From the first boot to the second."""
DAY = date(2026, 11, 21)
MORNING_S = START_MS / 1e3
EVENING_S = MORNING_S + 18 * 3600 + 1
"""Two hours past midnight: the day is sealed."""
READ_S = EVENING_S + 3600
SEALED_SHARE = 0.2
"""So many of the lakes are sealed before they are read: what is read is the same."""


@dataclass(frozen=True, slots=True)
class Posted:
    body: bytes
    encoding: Encoding


def story() -> list[Posted]:
    """All that the cluster posts, in the order of its making."""
    plain = [json.loads(wire.encode(message)) for message in _messages()]
    told = [*plain[:2], *_parts(plain[2]), plain[3], plain[4]]
    merged = joined(joined(plain[4], plain[5]) or {}, plain[6])
    assert merged is not None
    assert merged["merged"] == 2
    return [Posted(*compress(json.dumps(each).encode())) for each in (*told, merged, *plain[7:])]


def _messages() -> Iterator[wire.Message]:
    for boot, n in ((0, 8), (1, 5)):
        for seq in range(n):
            yield _message(boot, seq, is_last=boot == 1 and seq == n - 1)


def _message(boot: int, seq: int, is_last: bool) -> wire.Message:
    began_ms = START_MS + AHEAD_MS + boot * LATER_MS
    addresses = [f"tcp://10.0.0.{n}:40001" for n in range(4)]
    return testing.message(
        seq=seq,
        boot=testing.boot_at(began_ms),
        made_at_ms=began_ms + seq * INTERVAL_MS,
        started_at_ms=START_MS + AHEAD_MS - 500,
        identity=testing.identity(name=f"demo-{boot}-{seq}", started_at_ms=START_MS + AHEAD_MS - 500)
        if seq in (0, 3)
        else None,
        phase="closed" if is_last else "running",
        reason="close-requested" if is_last else None,
        totals=wire.Totals(n_workers=4, n_threads=8, n_tasks=10 * seq, thread_us=seq * 80_000_000,
                           action_us={"compute": seq * 4_000_000}),
        workers=testing.workers(addresses, memory_mib=[100 + seq + n for n in range(4)]),
        groups=testing.groups({"no": 0, "n_tasks": 4 * seq}, {"no": 1 + seq, "name": f"load-{seq}", "prefix": "load"}),
        computations=[wire.Computation(no=0, start_ms=began_ms, stop_ms=None if seq < 4 else began_ms + seq)],
        exceptions=[testing.exception(no=2 * seq + n, text=f"{boot} {seq} {n}") for n in range(2)],
        events=[testing.event(no=3 * seq + n, detail=f"{boot} {seq} {n}") for n in range(3)],
        members=[testing.member(no=0, n_threads=seq, environment=0), testing.member(no=seq + 1, id=f"client-{seq}")],
        environments=[testing.environment(python=f"3.11.{seq}")],
        deaths=[testing.death(no=seq)],
        spans=[testing.span(stop_ms=START_MS + seq)],
        metrics=testing.metrics({"value": float(seq)}, {"activity": f"part-{seq}"}),
        tasks=testing.tasks(5, first_no=5 * seq),
        logs=testing.logs(*({"no": 4 * seq + n, "text": f"{boot} {seq} {n}"} for n in range(4))),
        profiles=[testing.profile(from_ms=START_MS + seq * 60_000, to_ms=START_MS + seq * 60_000 + 60_000)],
        lost={"log-lines": seq} if seq else {},
    )  # fmt: skip


def _parts(plain: dict[str, Any]) -> list[dict[str, Any]]:
    """In four, twice halved; the message itself last."""
    pieces = [plain]
    for _ in range(2):
        pieces = [half for piece in pieces for half in (halves(piece) or (piece,))]
    assert len(pieces) == 4
    return sorted(pieces, key=lambda piece: piece.get("part", 0), reverse=True)


def run(n: int, seed: int = 0) -> dict[str, int | float]:
    """The story in `n` orders; `states` is how many final states came of them, `lost` and `doubled` are messages."""
    told, random, began_s = story(), Random(seed), time.monotonic()
    states, n_posts, lost, doubled = set[str](), 0, 0, 0
    for number in range(n):
        posts = [*told, *random.sample(told, random.randrange(len(told)))] if number else told
        if number:
            random.shuffle(posts)
        n_posts += len(posts)
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(os, "fsync"):  # no power is cut here
            found = _final_state(Path(folder), posts, random)
        states.add(hashlib.sha256(json.dumps(found, sort_keys=True, default=str).encode()).hexdigest())
        lost += found["completeness"]["missing"]
        doubled += max(found["completeness"]["received"] - found["completeness"]["expected"], 0)
    return {
        "orders": n,
        "messages": len(told),
        "posts": n_posts,
        "states": len(states),
        "lost": lost,
        "doubled": doubled,
        "seconds": round(time.monotonic() - began_s, 1),
    }


def _final_state(folder: Path, posts: list[Posted], random: Random) -> dict[str, Any]:
    clock = FakeClock(MORNING_S + 7200)
    world = connect(LocalEnv(data=str(folder), pages="open"), clock)
    try:
        ingest = Ingest.over(world)
        for posted in posts:
            clock.advance(random.uniform(0.001, 600.0))
            ingest.take(ACCOUNT, posted.body, posted.encoding, round(clock.now() * 1e3) + AHEAD_MS)
            if random.random() < 0.1:
                _write(world)
        _write(world)
        clock.at = EVENING_S
        if random.random() < SEALED_SHARE:
            Compactor(world.objects, world.seals, clock, world.lake_root).run()
        return _state(world)
    finally:
        world.close()


def _write(world: LocalAdapters) -> None:
    deliveries = world.feed.receive(1000, 60.0)
    unfit = Writer(world.objects, world.seals).write_what_fits([unpack(delivery.body) for delivery in deliveries])
    assert not unfit
    world.feed.delete([delivery.receipt for delivery in deliveries])


def _state(world: LocalAdapters) -> dict[str, Any]:
    """All that can be asked, but when it was received."""
    row = world.clusters.find(ACCOUNT, CLUSTER)
    asker = Asker(world.lake_root, world.seals, world.deletions)
    queries = Queries(asker, world.clock)
    codes = CodeKeeper(world.objects, world.vault)
    computations = Computations(asker, FakeClock(READ_S), codes, lambda _: CATALOG.schema.empty_table())
    depth = DepthReader(queries, computations)
    arrived = completeness(asker, row, READ_S)
    return {
        "row": _unreceived(row),
        "record": cluster(row, READ_S),
        "answers": answers(row, READ_S, depth.for_answers(row), priced(row, None, packaged())),
        "completeness": {name: value for name, value in arrived.items() if name != "as_of"},
        "computations": computations.of_cluster(row, 100, 0).rows,
        "workers": queries.workers(row).rows,
        "tables": {table: _rows(world, table) for table in TABLES},
    }


def _unreceived(row: ClusterRow) -> str:
    return repr(replace(row, first_received_at=0.0, last_received_at=0.0))


def _rows(world: LocalAdapters, table: str) -> list[dict[str, Any]]:
    """By their keys, repeats dropped."""
    rows = Lake(world.lake_root, world.seals.boundary()).day(table, account=ACCOUNT, day=DAY).records()
    key = TABLES[table].key
    return [
        {name: value for name, value in row.items() if name != "received_at"}
        for row in sorted(rows, key=lambda row: repr([row[name] for name in key]))
    ]

"""A small team's history for the examples of docs/reference/cli.md: two clusters that closed, and one that runs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import UUID

from daskscope import testing, wire
from daskscope_lambdas.adapters.system import SystemClock
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import compact, house
from daskscope_lambdas.service.batch import write_batch
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.service.letters import Letters
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.wiring import LocalAdapters, connect

ACCOUNT = "local"
WORKERS = ("tcp://10.0.2.96:40331", "tcp://10.0.2.97:40331")
MACHINE = wire.Hardware(
    cores=2, memory_bytes=8 << 30, provider="aws", instance_type="m6i.large", region="us-east-1", lifecycle="on-demand"
)
TEXT = "def total(path):\n    df = dd.read_parquet(path)\n    return df.amount.sum().compute()"
CODE = wire.Code(hash=hashlib.sha256(TEXT.encode()).hexdigest()[:32], text=TEXT)


def make(data: Path) -> None:
    """Such a server's data folder, with the catalog that it would have within a minute."""
    env = LocalEnv(data=str(data))
    now_ms = int(time.time() * 1000)
    stories = [
        _story(1, "nightly-etl", now_ms, up_s=3600, is_running=False, is_good=True),
        _story(2, "train", now_ms, up_s=1800, is_running=False, is_good=False),
        _story(3, "notebook", now_ms, up_s=120, is_running=True, is_good=True),
    ]
    world = connect(env, SystemClock())
    try:
        for posted in chain.from_iterable(stories):
            _take(world, posted)
        with house.entered(house.House(lambda: env, lambda: world)):
            compact.handler({}, None)
    finally:
        world.close()


def _take(world: LocalAdapters, posted: wire.Message) -> None:
    """As `ingest` and `write` do."""
    Ingest.over(world).take(ACCOUNT, wire.encode(posted), "", None)
    batch = world.feed.receive(10, 60.0)
    writer, letters = Writer(world.objects, world.seals), Letters(world.objects, world.clock)
    assert write_batch(writer, letters, [(each.id, each.body) for each in batch]) == []
    world.feed.delete([each.receipt for each in batch])


def _story(no: int, name: str, now_ms: int, *, up_s: int, is_running: bool, is_good: bool) -> Iterator[wire.Message]:
    """All that is known of a cluster, in a message half a minute after it began; and how it stands now."""
    at_ms = now_ms - up_s * 1000
    begun: dict[str, Any] = {
        "cluster": f"{no:032x}", "boot": testing.boot_at(at_ms, no), "started_at_ms": at_ms, "next_s": 600.0,
        "workers": testing.workers([]),
    }  # fmt: skip
    totals = wire.Totals(
        n_workers=2, n_threads=4, n_clients=1, memory_bytes=1 << 30, memory_limit_bytes=8 << 30, n_tasks=4,
        n_tasks_erred=0 if is_good else 1, n_computations=1, n_workers_lost=0 if is_good else 1, in_memory=4,
        peak_workers=2, peak_memory_bytes=1 << 30,
        thread_us=4 * 30_000_000, action_us={"compute": 4_000_000, "transfer": 500_000},
    )  # fmt: skip
    yield testing.message(
        **begun
        | {"seq": 0, "made_at_ms": at_ms + 30_000, "uptime_us": 30_000_000, "totals": totals}
        | {"workers": testing.workers(WORKERS, name=["0", "1"])}
        | _processes(no, name, at_ms)
        | _work(at_ms, is_good)
        | ({} if is_good else _failures(at_ms))
    )
    totals = replace(totals, thread_us=4_000_000 * up_s)
    if not is_running:
        totals = replace(
            totals, n_workers=0, n_threads=0, n_clients=0, memory_bytes=0, memory_limit_bytes=0, in_memory=0
        )
    begun["phase"] = "running" if is_running else "closed"
    yield testing.message(**begun, seq=1, made_at_ms=now_ms, uptime_us=up_s * 1_000_000, totals=totals)


def _processes(no: int, name: str, at_ms: int) -> dict[str, Any]:
    here: dict[str, Any] = {"joined_ms": at_ms, "hardware": 0, "environment": 0, "memory_limit_bytes": 4 << 30}
    scheduler = testing.member(
        no=0, role="scheduler", id="tcp://10.0.2.96:8786", name="", host="10.0.2.96", **here | {"n_threads": 0}
    )
    workers = [
        testing.member(no=1 + n, id=address, name=str(n), host=address[6:15], **here)
        for n, address in enumerate(WORKERS)
    ]
    return {
        "identity": testing.identity(
            scheduler_id=f"Scheduler-{UUID(int=no)}", name=name, started_at_ms=at_ms, tags={"team": "geo"},
            kind="EC2Cluster",
        ),
        "members": [scheduler, *workers], "environments": [testing.environment()], "hardware": [MACHINE],
    }  # fmt: skip


def _work(at_ms: int, is_good: bool) -> dict[str, Any]:
    span = testing.span(name=["etl", "total"], enqueued_ms=at_ms, start_ms=at_ms + 100, stop_ms=at_ms + 20_000)
    states = {"memory": 4} if is_good else {"memory": 3, "erred": 1}
    group = {"no": 0, "span": span.id, "start_ms": at_ms + 1_000, "stop_ms": at_ms + 20_000, "states": states}
    line = {"no": 0, "at_ms": at_ms + 15_454, "worker": WORKERS[0], "text": "Worker is at 80% memory usage. Pausing."}
    return {
        "computations": [
            wire.Computation(no=0, start_ms=at_ms + 500, stop_ms=at_ms + 20_000,
                             code=[[wire.Frame(code=CODE.hash, file="etl.py", line=3)]])
        ],
        "codes": [CODE], "groups": testing.groups(group), "spans": [span],
        "metrics": testing.metrics({"span": span.id}), "tasks": testing.tasks(4, from_ms=at_ms, addresses=[*WORKERS]),
        "events": [testing.event(at_ms=at_ms + 1_000, worker=WORKERS[0])], "logs": testing.logs(line),
        "profiles": [testing.profile(from_ms=at_ms, to_ms=at_ms + 20_000)],
    }  # fmt: skip


def _failures(at_ms: int) -> dict[str, Any]:
    failed = testing.exception(
        first_ms=at_ms + 10_000, last_ms=at_ms + 10_000, count=1, workers=[WORKERS[0]], key="sum-1", prefix="sum"
    )
    died = testing.death(at_ms=at_ms + 16_000, worker=WORKERS[0], name="0", host="10.0.2.96", processing=["sum-1"])
    return {"exceptions": [failed], "deaths": [died]}

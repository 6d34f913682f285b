"""Bytes in the lake: open files, and sealed ones per worker sample and per task."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from distributed import Client, LocalCluster, wait

from bench.envelopes import DAY_S, N_WORKERS, envelopes, messages, world
from bench.rows import Budget, Row, progress
from daskscope import wire
from daskscope.collect.groups import GroupReader
from daskscope.collect.tasks import TaskReader
from daskscope.compression import compress
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.service.write import Writer

N_REAL_WORKERS = 8


def at_rest(tiny: bool) -> Iterator[Row]:
    """A day of some clusters, written in batches and then sealed."""
    n_clusters, n_each, batch = (2, 5, 5) if tiny else (10, 1000, 100)
    progress(f"{n_clusters * n_each} messages")
    sent = messages(n_clusters, n_each)
    n_samples = sum(len(message.workers.address) for message in sent)
    rows = b"\n".join(_worker_lines(sent))
    with world() as (adapters, clock, lake):
        writer = Writer(adapters.objects, adapters.seals)
        ready = envelopes(sent, clock)
        for start in range(0, len(ready), batch):
            writer.write(ready[start : start + batch], f"{start:032x}")
        yield Row(
            name=f"at-rest/open-batch-{batch}",
            value=_bytes(lake, "open") / len(sent),
            unit="bytes per message",
            peers={"as posted": sum(len(compress(wire.encode(m))[0]) for m in sent) / len(sent)},
            how=f"open files of all tables; {N_WORKERS} workers a message, {batch} messages a file.",
        )
        open_workers = _bytes(lake, "open/workers")
        clock.advance(2 * DAY_S)
        progress("sealing")
        Compactor(adapters.objects, adapters.seals, clock, adapters.lake_root).run()
        yield Row(
            name="at-rest/sealed-worker-sample",
            value=_bytes(lake, "sealed/workers") / n_samples,
            unit="bytes per sample",
            budget=Budget("at most", 10.0),
            peers={"open files": open_workers / n_samples, "JSON lines, gzip": len(gzip.compress(rows, 6)) / n_samples},
            how=f"sealed `workers` of a day: {n_samples:,} samples of 15 random walks, {n_clusters} clusters.",
        )
    yield from _tasks_at_rest(tiny)


def _tasks_at_rest(tiny: bool) -> Iterator[Row]:
    """Rows of a real run's tasks, sealed."""
    n_rounds, n_each = (2, 20) if tiny else (10, 700)
    n_tasks = n_rounds * n_each * 3
    progress(f"{n_tasks} tasks on {N_REAL_WORKERS} workers")
    told = asyncio.run(_run_tasks(n_rounds, n_each))
    with world() as (adapters, clock, lake):
        writer = Writer(adapters.objects, adapters.seals)
        sent = [replace(message, tasks=tasks) for message, tasks in zip(messages(1, n_rounds), told, strict=True)]
        writer.write(envelopes(sent, clock), "0" * 32)
        clock.advance(2 * DAY_S)
        Compactor(adapters.objects, adapters.seals, clock, adapters.lake_root).run()
        yield Row(
            name="at-rest/sealed-task",
            value=_bytes(lake, "sealed/tasks") / n_tasks,
            unit="bytes per task",
            budget=Budget("at most", 5.0),
            how=f"sealed `tasks` of a run: {n_tasks:,} tasks in three layers, {N_REAL_WORKERS} workers in one process, "
            f"{n_rounds} messages.",
        )


async def _run_tasks(n_rounds: int, n_each: int) -> list[wire.Tasks]:
    cluster = LocalCluster(
        n_workers=N_REAL_WORKERS, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0",
        asynchronous=True,
    )  # fmt: skip
    async with cluster, Client(cluster, asynchronous=True) as client:
        scheduler: Any = cluster.scheduler
        groups = GroupReader(scheduler)
        reader = TaskReader(scheduler, groups)
        reader.start()
        told: list[wire.Tasks] = []
        for n in range(n_rounds):
            loaded = client.map(_load, range(n * n_each, (n + 1) * n_each), pure=False)
            cleaned = client.map(sorted, loaded, pure=False)
            await wait(client.map(sum, cleaned, pure=False))
            groups.track_others(groups.n_groups)
            told.append(reader.read())
            groups.read()
        return told


def _load(seed: int) -> list[float]:
    drawn = random.Random(seed)
    return [drawn.random() for _ in range(200 + seed % 70)]


def _bytes(lake: Path, below: str) -> int:
    return sum(file.stat().st_size for file in (lake / below).rglob("*.parquet"))


def _worker_lines(sent: Sequence[wire.Message]) -> Iterator[bytes]:
    for message in sent:
        told: dict[str, list[object]] = msgspec.to_builtins(message.workers)
        columns = {name: column for name, column in told.items() if column}
        origin = {"cluster": message.cluster, "seq": message.seq, "at": message.made_at_ms}
        for values in zip(*columns.values(), strict=True):
            yield msgspec.json.encode(origin | dict(zip(columns, values, strict=True)))

"""CPU that one interval takes of the scheduler's event loop."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from dask._task_spec import Task
from distributed import Scheduler

from bench.fleet import Fleet
from bench.rows import Budget, Row
from bench.watched import Watched


def interval(tiny: bool) -> Iterator[Row]:
    """Steady state at 10 and 100 workers, and the largest slice at 1,000 workers and 10,000 groups."""
    rounds = 3 if tiny else 41
    for n_workers in (2, 3) if tiny else (10, 100):
        yield Row(
            name=f"interval/{n_workers}-workers",
            value=asyncio.run(_steady(n_workers, rounds)),
            unit="ms CPU",
            budget=None if n_workers == 10 else Budget("at most", 0.2),
            how=f"thread CPU of one Watch.poll, median of {rounds}; 8 groups changed since the last; fake workers "
            "on a real Scheduler.",
        )
    n_workers, n_groups = (5, 48) if tiny else (1000, 10_000)
    very_first, first, steady, scan = asyncio.run(_crowd(n_workers, n_groups, 3 if tiny else 9))
    for name, value, what in (
        ("steady", steady, "10 of the groups changed since the one before"),
        ("very-first", very_first, "the first at all, that tells who the cluster is, all its workers and clients"),
        ("first-sight", first, "the first that sees any of these groups"),
    ):
        yield Row(
            name=f"interval/{n_workers}-workers-{n_groups}-groups/{name}",
            value=value,
            unit="ms CPU",
            budget=Budget("at most", 10.0),
            peers={"reading every group": scan},
            how=f"thread CPU of one Watch.poll, median of several: {what}. Peer: name, states, seconds, bytes of all "
            "groups read by a loop.",
        )


async def _steady(n_workers: int, rounds: int) -> float:
    watched = Watched(await Fleet.of(n_workers), n_tasks_per_interval=4 * n_workers)
    for _ in range(3):
        watched.interval()
    values: list[float] = []
    for _ in range(rounds):
        watched.advance()
        values.append(_cpu_ms(watched.take))
    return statistics.median(values)


async def _crowd(n_workers: int, n_groups: int, rounds: int) -> tuple[float, float, float, float]:
    """The very first poll, at first sight, in steady state, and by reading every group."""
    fleet = await Fleet.of(n_workers)
    keys: set[Any] = {(f"load-{n:032x}", part) for n in range(n_groups) for part in range(2)}
    watches = [Watched(fleet) for _ in range(3)]
    very_first = [_cpu_ms(watched.take) for watched in watches]  # that its workers came: once in a cluster's life
    fleet.submit({key: Task(key, str, 0) for key in keys}, keys)
    fleet.beat()
    first = [_cpu_ms(watched.take) for watched in watches]
    steady: list[float] = []
    scan: list[float] = []
    latest = watches[-1]
    while latest.watch.readers._groups.behind:
        latest.take()
    for _ in range(rounds):
        fleet.finish(10)
        fleet.beat()
        steady.append(_cpu_ms(latest.take))
        scan.append(_cpu_ms(lambda: _read_all(fleet.scheduler)))
    return statistics.median(very_first), statistics.median(first), statistics.median(steady), statistics.median(scan)


def _read_all(scheduler: Scheduler) -> list[object]:
    return [(g.name, dict(g.states), dict(g.all_durations), g.nbytes_total) for g in scheduler.task_groups.values()]


def _cpu_ms(call: Callable[[], object]) -> float:
    begun_s = time.thread_time()
    call()
    return (time.thread_time() - begun_s) * 1e3

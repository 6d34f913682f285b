"""Gauges of the whole cluster, and totals that only grow."""

from typing import Any

import pytest
from distributed import Event, Worker, wait

from daskscope.collect.totals import TotalsReader
from tests.plugin.rig import Cluster, boom, inc, look_at, quiet_scheduler, running, until

pytestmark = pytest.mark.asyncio


async def test_gauges_of_a_cluster_at_work(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    gate = await Event("gate")
    kept = cluster.client.map(inc, range(3))
    await wait(kept)
    failed = cluster.client.submit(boom, 1)
    await wait(failed)
    held = cluster.client.submit(wait_for, "gate")
    after = cluster.client.submit(inc, held)
    lost = cluster.client.submit(inc, 7, resources={"GPU": 1})
    await until(lambda: len(cluster.scheduler.tasks) == 7 and cluster.scheduler.unrunnable)
    cluster.scheduler.check_idle()
    totals = look().totals
    assert (totals.n_workers, totals.n_threads, totals.n_clients) == (1, 1, 1)
    assert totals.memory_limit_bytes == 1 << 30
    assert (totals.in_memory, totals.erred, totals.processing, totals.waiting) == (3, 1, 1, 1)
    assert totals.no_worker == 1
    assert totals.held_bytes == cluster.scheduler.workers[cluster.workers[0].address].nbytes > 0
    assert totals.idle_since_ms is None
    await gate.set()
    await wait(after)
    del kept, failed, lost


def wait_for(name: str) -> None:
    Event(name).wait(30)


async def test_queued_tasks(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    gate = await Event("gate")
    futures = cluster.client.map(lambda n: wait_for("gate"), range(10))
    await until(lambda: cluster.scheduler.queued)
    totals = look().totals
    assert totals.queued == len(cluster.scheduler.queued) > 0
    assert totals.queued + totals.processing == 10
    await gate.set()
    await wait(futures)


async def test_memory_and_its_peak(cluster: Cluster) -> None:
    reader = TotalsReader(cluster.scheduler)
    state = cluster.scheduler.workers[cluster.workers[0].address]
    await until(lambda: state.metrics.get("memory"))
    cluster.scheduler.periodic_callbacks.clear()
    state.metrics["memory"] = 500 << 20
    high = reader.read(1.0)
    state.metrics["memory"] = 200 << 20
    low = reader.read(2.0)
    assert (high.memory_bytes, low.memory_bytes) == (500 << 20, 200 << 20)
    assert high.peak_memory_bytes == low.peak_memory_bytes == 500 << 20
    await cluster.workers[0].close()
    gone = reader.read(3.0)
    assert (low.n_workers, low.n_threads, gone.n_workers, gone.n_threads, gone.peak_workers) == (1, 1, 0, 0, 1)


async def test_memory_is_what_dask_says_of_the_cluster(cluster: Cluster) -> None:
    state = cluster.scheduler.workers[cluster.workers[0].address]
    kept = await cluster.client.scatter(b"x" * 1000)
    await until(lambda: state.metrics.get("memory") and state.nbytes)
    cluster.scheduler.periodic_callbacks.clear()
    read = TotalsReader(cluster.scheduler).read
    for spilled in ({"memory": 0, "disk": 0}, {"memory": 400, "disk": 300}, {"memory": 10**6, "disk": 7}):
        for process in (state.metrics["memory"], 500):
            state.metrics |= {"spilled_bytes": spilled, "memory": process}
            totals, memory = read(1.0), cluster.scheduler.memory
            assert (totals.memory_bytes, totals.managed_bytes, totals.spilled_bytes) == (
                memory.process, memory.managed, memory.spilled,
            )  # fmt: skip
    del kept


@pytest.mark.parametrize("odd", [10**400, 1e300, float("inf"), float("nan"), -5, "much", None])
async def test_memory_that_no_worker_has_counts_as_none(cluster: Cluster, odd: object) -> None:
    look = await look_at(cluster.scheduler)
    state = cluster.scheduler.workers[cluster.workers[0].address]
    for metrics in ({"memory": odd, "spilled_bytes": {"memory": 0, "disk": 0}},
                    {"memory": 1 << 20, "spilled_bytes": {"memory": 0, "disk": odd}}):  # fmt: skip
        state.metrics = metrics
        totals = look().totals
        assert (totals.memory_bytes, totals.spilled_bytes) == (0, 0)


async def test_idle_since_and_its_timeout() -> None:
    async with running(0, idle_timeout="1 hour") as cluster:
        cluster.scheduler.check_idle()
        cluster.scheduler.check_idle()
        assert cluster.scheduler.idle_since is not None
        totals = TotalsReader(cluster.scheduler).read(cluster.scheduler.idle_since + 1)
        assert totals.idle_since_ms == round(cluster.scheduler.idle_since * 1e3)
        assert totals.idle_timeout_us == 3_600_000_000


async def test_no_idle_timeout_is_none(cluster: Cluster) -> None:
    assert TotalsReader(cluster.scheduler).read(1.0).idle_timeout_us is None


async def test_what_the_scheduler_itself_takes(cluster: Cluster) -> None:
    scheduler: Any = cluster.scheduler
    for callback in scheduler.periodic_callbacks.values():
        callback.stop()
    scheduler.monitor.quantities["cpu"].append(49.6)
    scheduler.monitor.quantities["memory"].append(300 << 20)
    scheduler._tick_interval_observed, scheduler._tick_counter = 0.0212, 1_000
    reader = TotalsReader(scheduler)
    totals = reader.read(100.0)
    assert (totals.scheduler_cpu_pct, totals.scheduler_memory_bytes) == (50, 300 << 20)
    assert totals.scheduler_loop_ms == 21, "what Dask itself has measured, as long as nothing is to compare with"
    scheduler._tick_counter += 400
    assert reader.read(110.0).scheduler_loop_ms == 25
    assert reader.read(113.0).scheduler_loop_ms == 3_000, "no tick in all that time"
    assert reader.read(50.0).scheduler_loop_ms == 21, "a clock that is set back"


async def test_a_scheduler_without_a_monitor(cluster: Cluster) -> None:
    cluster.scheduler.monitor.quantities.clear()
    totals = TotalsReader(cluster.scheduler).read(1.0)
    assert (totals.scheduler_cpu_pct, totals.scheduler_memory_bytes, totals.n_clients) == (0, 0, 1)


async def test_thread_seconds_are_the_integral_of_dask_s_own_history() -> None:
    async with quiet_scheduler() as scheduler:
        reader = TotalsReader(scheduler)
        scheduler.total_nthreads_history[:] = [(100.0, 0), (110.0, 4), (120.0, 6)]
        assert reader.read(130.0).thread_us == (10 * 4 + 10 * 6) * 1_000_000
        scheduler.total_nthreads_history += [(131.0, 2), (132.0, 0)]
        assert reader.read(200.0).thread_us == (100 + 6 + 2) * 1_000_000


async def test_a_clock_that_is_set_back_takes_nothing_away() -> None:
    async with quiet_scheduler() as scheduler:
        reader = TotalsReader(scheduler)
        scheduler.total_nthreads_history[:] = [(100.0, 2)]
        assert reader.read(110.0).thread_us == 20_000_000
        assert reader.read(50.0).thread_us == 20_000_000
        assert reader.read(55.0).thread_us == 30_000_000


@pytest.mark.parametrize("set_by_s", [3600.0, -3600.0, -1e9, 2.5])
async def test_a_clock_that_is_set_changes_no_thread_seconds(set_by_s: float) -> None:
    async with quiet_scheduler() as scheduler:
        reader = TotalsReader(scheduler)
        scheduler.total_nthreads_history[:] = [(2e9, 2)]
        assert reader.read(2e9 + 10, 0.0).thread_us == 20_000_000
        scheduler.total_nthreads_history.append((2e9 + 15, 4))  # before the clock was set
        scheduler.total_nthreads_history.append((2e9 + 18 + set_by_s, 3))  # and after
        found = reader.read(2e9 + 20 + set_by_s, 10.0).thread_us
        assert 20_000_000 + 10 * 2_000_000 <= found <= 20_000_000 + 10 * 4_000_000
        assert reader.read(2e9 + 30 + set_by_s, 20.0).thread_us == found + 10 * 3_000_000


async def test_thread_seconds_of_workers_that_come_and_go(cluster: Cluster) -> None:
    reader = TotalsReader(cluster.scheduler)
    start_s = cluster.scheduler.total_nthreads_history[-1][0]
    async with Worker(cluster.scheduler.address, nthreads=3, dashboard=False):
        came_s = cluster.scheduler.total_nthreads_history[-1][0]
    await until(lambda: len(cluster.scheduler.workers) == 1)
    went_s = cluster.scheduler.total_nthreads_history[-1][0]
    until_s = went_s + 100
    found = reader.read(until_s).thread_us
    assert found == pytest.approx(((until_s - start_s) + 3 * (went_s - came_s)) * 1e6, abs=2)

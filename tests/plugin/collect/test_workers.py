"""Workers as of their last heartbeat, whatever users put into its metrics."""

import time
from typing import Any

import pytest
from distributed import Worker
from distributed import worker as worker_module

from daskscope.collect.workers import WorkerReader
from tests.plugin.rig import Cluster, inc, look_at, silent, until

pytestmark = pytest.mark.asyncio


async def test_what_a_worker_reports(cluster: Cluster) -> None:
    (worker,) = cluster.workers
    state = cluster.scheduler.workers[worker.address]
    futures = cluster.client.map(inc, range(3))
    await cluster.client.gather(futures)
    await until(lambda: state.metrics.get("task_counts", {}).get("memory") == 3)
    workers = WorkerReader(cluster.scheduler).read()
    assert workers.address == [worker.address]
    assert (workers.name, workers.status, workers.n_threads) == (["w0"], ["running"], [1])
    assert workers.memory_limit_mib == [1024]
    assert workers.memory_mib == [round(state.metrics["memory"] / (1 << 20))]
    assert workers.memory_mib[0] > 10
    assert (workers.in_memory, workers.executing, workers.ready) == ([3], [0], [0])
    assert workers.loop_interval_ms == [round(state.metrics["event_loop_interval"] * 1e3)]


UNITS: list[tuple[str, Any, str, int]] = [
    ("memory", 3 << 20, "memory_mib", 3),
    ("managed_bytes", 5 << 20, "managed_mib", 5),
    ("spilled_bytes", {"memory": 1, "disk": 7 << 20}, "spilled_mib", 7),
    ("cpu", 199.6, "cpu_pct", 200),
    ("host_net_io", {"read_bps": 2048.0, "write_bps": 4096}, "net_read_kib_s", 2),
    ("host_net_io", {"read_bps": 2048.0, "write_bps": 4096}, "net_write_kib_s", 4),
    ("host_disk_io", {"read_bps": 1024, "write_bps": 3072}, "disk_read_kib_s", 1),
    ("host_disk_io", {"read_bps": 1024, "write_bps": 3072}, "disk_write_kib_s", 3),
    ("event_loop_interval", 0.0204, "loop_interval_ms", 20),
    ("task_counts", {"executing": 2, "ready": 3, "memory": 4}, "executing", 2),
    ("task_counts", {"executing": 2, "ready": 3, "memory": 4}, "ready", 3),
    ("task_counts", {"executing": 2, "ready": 3, "memory": 4}, "in_memory", 4),
]


async def test_units(cluster: Cluster) -> None:
    state = cluster.scheduler.workers[cluster.workers[0].address]
    for metric, value, column, expected in UNITS:
        state.metrics = {metric: value}
        assert getattr(WorkerReader(cluster.scheduler).read(), column) == [expected], column


NONSENSE = [None, "fast", float("nan"), float("inf"), -float("inf"), [1], {"a": 1}, {}, b"x", object(), 1e300, 10**400]


@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: str(value)[:12])
async def test_a_metric_that_is_no_number_is_0(cluster: Cluster, value: Any) -> None:
    """Users may give a worker metrics of their own, of any type and under any name."""
    look = await look_at(cluster.scheduler)
    state = cluster.scheduler.workers[cluster.workers[0].address]
    for metric, _, column, _ in UNITS:
        state.metrics = {metric: value}
        message = look()  # which also says that the totals could be read
        assert message.workers.address == [state.address]
        assert getattr(message.workers, column) == [0], metric
        assert message.totals.n_threads == 1


async def test_metrics_that_cannot_be_read_are_counted_and_missing_ones_are_not(cluster: Cluster) -> None:
    async with Worker(cluster.scheduler.address, nthreads=1, dashboard=False) as second:
        look = await look_at(cluster.scheduler)
        for worker in (*cluster.workers, second):
            await silent(worker)
        states = list(cluster.scheduler.workers.values())
        states[0].metrics, states[1].metrics = {}, {"cpu": 50, "memory": 7 << 20}
        assert "unreadable-metrics" not in look().lost
        states[0].metrics = {"cpu": "fast", "host_net_io": "fast", "memory": float("nan"), "mine": "anything"}
        message = look()
        assert message.lost["unreadable-metrics"] == 4, "two are read of the network"
        assert message.workers.cpu_pct == [0, 50]
        assert message.workers.memory_mib == [0, 7]
        states[0].metrics = {}
        assert look().lost["unreadable-metrics"] == 4, "a running total"


async def test_gpus(cluster: Cluster) -> None:
    """As `distributed.diagnostics.nvml.real_time` tells them."""
    async with Worker(cluster.scheduler.address, nthreads=1, dashboard=False) as second:
        for worker in (*cluster.workers, second):
            await silent(worker)
        states = list(cluster.scheduler.workers.values())
        reader = WorkerReader(cluster.scheduler)
        for metrics, expected in (
            ([{}, {}], ([], [])),
            ([{}, {"gpu": {"utilization": 87, "memory-used": 3 << 30}}], ([0, 87], [0, 3 << 10])),
            ([{"gpu": {"utilization": None, "memory-used": None}}, {}], ([0, 0], [0, 0])),
        ):
            for state, each in zip(states, metrics, strict=True):
                state.metrics = dict(each)
            workers = reader.read()
            assert (workers.gpu_pct, workers.gpu_memory_mib) == expected
        assert reader.lost.total() == 0
        states[0].metrics = {"gpu": "a fast one"}
        assert reader.read().gpu_pct == [0, 0]
        assert reader.lost == {"unreadable-metrics": 2}


async def test_a_worker_whose_clock_is_an_hour_off(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    look = await look_at(cluster.scheduler)
    state = cluster.scheduler.workers[cluster.workers[0].address]
    monkeypatch.setattr(worker_module, "time", lambda: time.time() + 3600)
    await until(lambda: abs(state.time_delay) > 3000)
    future = cluster.client.submit(inc, 1)
    assert await future == 2
    message = look()
    assert message.workers.address == [state.address]
    assert "unreadable-metrics" not in message.lost
    assert message.totals.n_tasks == 1
    await cluster.workers[0].close()
    await until(lambda: not cluster.scheduler.workers)
    (death,) = look().deaths
    assert (death.reason, death.memory_slope_bytes_s) == ("worker-close", 0)
    assert abs(death.at_ms - message.made_at_ms) < 60_000, "by the scheduler's clock"


async def test_nonsense_within_a_metric_is_0(cluster: Cluster) -> None:
    state = cluster.scheduler.workers[cluster.workers[0].address]
    state.metrics = {"spilled_bytes": {"disk": "much"}, "host_net_io": {"read_bps": None}, "task_counts": {"ready": []}}
    workers = WorkerReader(cluster.scheduler).read()
    assert (workers.spilled_mib, workers.net_read_kib_s, workers.ready) == ([0], [0], [0])


async def test_a_worker_without_metrics_and_without_a_limit(cluster: Cluster) -> None:
    async with Worker(cluster.scheduler.address, nthreads=2, name=7, memory_limit=0, dashboard=False) as second:
        look = await look_at(cluster.scheduler)
        state = cluster.scheduler.workers[second.address]
        state.metrics = {}
        workers = look().workers
        n = workers.address.index(second.address)
        assert (workers.name[n], workers.n_threads[n], workers.memory_limit_mib[n], workers.memory_mib[n]) == (
            "7", 2, 0, 0,
        )  # fmt: skip


async def test_no_workers_no_rows(cluster: Cluster) -> None:
    await cluster.workers[0].close()
    await until(lambda: not cluster.scheduler.workers)
    assert WorkerReader(cluster.scheduler).read().address == []

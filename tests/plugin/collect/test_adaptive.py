"""How many workers Dask would have, and between which limits."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from distributed import Scheduler, SpecCluster, Worker

from daskscope.collect import adaptive as module
from daskscope.collect.adaptive import EVERY_S, Adaptive, AdaptiveReader
from daskscope.collect.totals import TotalsReader
from tests.plugin.rig import Cluster, look_at, until

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def own() -> AsyncIterator[SpecCluster]:
    """A cluster object in the process of its scheduler."""
    options = {"dashboard": False, "dashboard_address": "127.0.0.1:0", "port": 0, "host": "127.0.0.1"}
    scheduler: Any = {"cls": Scheduler, "options": options}
    worker: Any = {"cls": Worker, "options": {"nthreads": 1, "dashboard": False}}
    async with SpecCluster(scheduler=scheduler, worker=worker, asynchronous=True) as cluster:
        yield cluster


async def test_limits_while_a_cluster_adapts(own: Any) -> None:
    reader = AdaptiveReader(own.scheduler)
    assert reader.read(0.0) == Adaptive(desired=0)
    own.adapt(minimum=2, maximum=5, interval="1 hour")
    assert reader.read(1.0) == Adaptive(desired=0, minimum=2, maximum=5)
    own.adapt(minimum=1, maximum=float("inf"), interval="1 hour")
    assert reader.read(2.0) == Adaptive(desired=0, minimum=1, maximum=None)
    own._adaptive.stop()
    assert reader.read(3.0) == Adaptive(desired=0)


async def test_another_cluster_of_the_process_does_not_count(own: Any, cluster: Cluster) -> None:
    own.adapt(minimum=2, maximum=5, interval="1 hour")
    assert AdaptiveReader(cluster.scheduler).read(0.0) == Adaptive(desired=cluster.scheduler.adaptive_target())
    own._adaptive.stop()


async def test_dask_is_asked_once_a_minute(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(cluster.scheduler, "adaptive_target", lambda: asked.append(now_s) or len(asked))
    reader = AdaptiveReader(cluster.scheduler)
    told: list[int | None] = []
    for now_s in (100.0, 110.0, 100.0 + EVERY_S - 1, 100.0 + EVERY_S, 10.0, 11.0):
        told.append(reader.read(now_s).desired)
    assert told == [1, 1, 1, 2, 3, 3]
    assert asked == [100.0, 100.0 + EVERY_S, 10.0], "a clock that is set back does not silence it"


async def test_what_dask_says_is_told(cluster: Cluster) -> None:
    futures = [cluster.client.submit(asyncio.sleep, 60, key=("slow", n)) for n in range(300)]
    await until(lambda: len(cluster.scheduler.tasks) == 300)
    totals = TotalsReader(cluster.scheduler).read(1.0)
    assert totals.desired_workers == cluster.scheduler.adaptive_target() > 1
    assert (totals.adaptive_minimum, totals.adaptive_maximum) == (None, None)
    del futures


async def test_large_clusters_are_not_asked(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WORKERS", 0)
    assert AdaptiveReader(cluster.scheduler).read(0.0) == Adaptive()


async def test_trouble_is_counted_and_totals_go_on(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> int:
        raise RuntimeError("a user's plugin has a say in it")

    look = await look_at(cluster.scheduler)
    monkeypatch.setattr(cluster.scheduler, "adaptive_target", fails)
    look.watch.readers._totals._adaptive._asked_at_s = None
    message = look()
    assert (message.totals.desired_workers, message.totals.n_workers) == (None, 1)
    assert message.lost["unreadable-adaptive"] == 1
    assert look().lost["unreadable-adaptive"] == 1, "not asked again for a minute"

"""What of deaths is told where more happened than fits, or something that nobody can read."""

from typing import Any

import dask.config
import pytest

from daskscope import wire
from daskscope.collect import deaths as module
from daskscope.collect.deaths import DeathReader
from daskscope.collect.roster import Roster
from daskscope.collect.topics import Topics
from tests.plugin.collect.death_readers import Reading, cut_off, empty
from tests.plugin.rig import Cluster, look_at, running, silent, until

pytestmark = pytest.mark.asyncio


async def test_what_dask_dropped_before_it_was_read_may_have_been_deaths() -> None:
    with dask.config.set({"distributed.admin.low-level-log-length": 10}):
        async with running() as cluster:
            topics = Topics(cluster.scheduler)
            reader = DeathReader(cluster.scheduler, topics, Roster(cluster.scheduler))
            for n in range(25):
                cluster.scheduler.log_event("all", {"action": "remove-worker", "worker": f"tcp://10.0.0.{n}:1"})
            assert len(reader.read(wire.Workers(), 4e9)) == 10
            assert reader.lost == {"deaths": 15}


async def test_a_worker_is_told_even_if_nothing_was_said(cluster: Cluster) -> None:
    reading = Reading(cluster)
    address = cluster.workers[0].address
    cut_off(cluster, address)
    await until(lambda: not cluster.scheduler.workers)
    empty(reading.topics, ("all", address))
    (death,) = reading()
    assert (death.worker, death.name, death.expected, death.reason) == (address, "w0", False, "lost")
    assert death.at_ms == round(reading.now_s * 1e3)
    assert reading() == []


async def test_its_own_topic_tells_where_the_common_one_has_overflown(cluster: Cluster) -> None:
    reading = Reading(cluster)
    await cluster.workers[0].close()
    await until(lambda: not cluster.scheduler.workers)
    empty(reading.topics, ["all"])
    (death,) = reading()
    assert (death.reason, death.expected) == ("worker-close", True)
    assert death.at_ms < reading.now_s * 1e3


async def test_what_went_before_the_watch_is_not_told(cluster: Cluster) -> None:
    await cluster.workers[0].close()
    await until(lambda: not cluster.scheduler.workers)
    assert Reading(cluster)() == []


async def test_more_than_fit_into_a_message_wait_and_too_many_are_counted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_DEATHS", 2)
    monkeypatch.setattr(module, "MAX_WAITING", 5)
    reading = Reading(cluster)
    for n in range(7):
        cluster.scheduler.log_event("all", {"action": "remove-worker", "worker": f"tcp://10.0.0.{n}:1"})
    told: list[list[str]] = []
    behind: list[bool] = []
    for _ in range(4):
        told.append([death.worker for death in reading()])
        behind.append(reading.reader.behind)
    assert told == [[f"tcp://10.0.0.{n}:1" for n in pair] for pair in ((0, 1), (2, 3), (4,), ())]
    assert behind == [True, True, False, False]
    assert reading.reader.lost == {"deaths": 2}


async def test_nonsense_is_left_out_and_counted(cluster: Cluster) -> None:
    reading = Reading(cluster)
    log = cluster.scheduler.log_event
    log("all", {"action": "remove-worker", "worker": 7})
    log("all", {"action": "remove-worker", "worker": "tcp://10.0.0.1:1", "processing-tasks": 5})
    log("all", {"action": "remove-worker", "worker": "tcp://10.0.0.2:1", "stimulus_id": {"a": 1}, "expected": "so"})
    for topic in ("all", "scheduler", "worker-restart-memory", "tcp://10.0.0.3:1"):
        log(topic, "a text")
        log(topic, {"action": "worker-ttl-timed-out", "worker": [], "workers": [[], 3]})
    log("worker-restart-memory", {"worker": "tcp://10.0.0.3:1", "rss": "much"})
    log("all", {"action": "remove-worker", "worker": "tcp://10.0.0.3:1", "processing-tasks": [("x" * 300, 1)]})
    second, third = reading()
    assert (second.worker, third.worker) == ("tcp://10.0.0.2:1", "tcp://10.0.0.3:1")
    assert (third.reason, third.memory_bytes) == ("nanny-memory", 0)
    assert third.processing == [f"('{'x' * 198}..."]
    assert reading.reader.lost == {"unreadable-deaths": 1}


async def test_a_worker_whose_name_is_an_object(cluster: Cluster) -> None:
    class Nameless:
        def __str__(self) -> str:
            raise AssertionError("the user's code")

    reading = Reading(cluster)
    state: Any = cluster.scheduler.workers[cluster.workers[0].address]
    await cluster.workers[0].close()
    await until(lambda: not cluster.scheduler.workers)
    state.name = Nameless()
    (death,) = reading()
    assert death.name.endswith("Nameless>")


async def test_a_worker_that_cannot_be_read(cluster: Cluster) -> None:
    reading = Reading(cluster)
    state: Any = cluster.scheduler.workers[cluster.workers[0].address]
    await cluster.workers[0].close()
    await until(lambda: not cluster.scheduler.workers)
    state.metrics = None
    assert reading() == []
    assert reading.reader.lost == {"unreadable-deaths": 1}


async def test_metrics_that_are_no_numbers(cluster: Cluster) -> None:
    reading = Reading(cluster)
    state = cluster.scheduler.workers[cluster.workers[0].address]
    await silent(cluster.workers[0])
    for memory in ("much", float("nan"), float("inf"), -1, None, 10**400):
        state.metrics = {"memory": memory}
        assert reading() == []
    await cluster.workers[0].close()
    (death,) = reading()
    assert (death.memory_bytes, death.memory_slope_bytes_s) == (0, 0)


async def test_the_message_tells_deaths_and_how_many_were_not_asked_for() -> None:
    async with running(3) as cluster:
        look = await look_at(cluster.scheduler)
        cut_off(cluster, cluster.workers[0].address)
        await cluster.workers[1].close()
        await until(lambda: len(cluster.scheduler.workers) == 1)
        message = look()
        assert {(death.name, death.expected) for death in message.deaths} == {("w0", False), ("w1", True)}
        assert message.totals.n_workers_lost == 1
        assert look().deaths == []

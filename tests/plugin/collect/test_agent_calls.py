"""Calls to nannies and workers that refuse, hang, or are gone: counted, tried once more, and in nobody's way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

import dask.config
import pytest
from distributed import Worker
from distributed.core import Server

from daskscope.agent import NAME
from daskscope.collect import agents as module
from daskscope.collect import calls
from daskscope.collect.agents import RUNNING
from tests.plugin.collect.watched_agents import Watched, answered
from tests.plugin.rig import Cluster, until

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("no_timer")]


class FakeNanny(Server):
    """Takes an agent, or not, as `answer` says, and counts."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.n_asked = 0
        super().__init__({"plugin_add": self.plugin_add})
        self._answer = answer

    async def plugin_add(self, plugin: bytes, name: str) -> Any:
        self.n_asked += 1
        return await self._answer()


async def take_it() -> dict[str, str]:
    return {"status": "OK"}


async def refuse() -> dict[str, str]:
    return {"status": "error", "exception_text": "ValueError('no plugins here')"}


async def hang() -> None:
    await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def another_worker(cluster: Cluster, nanny: str) -> AsyncGenerator[Worker]:
    async with Worker(cluster.scheduler.address, nthreads=1, dashboard=False) as worker:
        cluster.scheduler.workers[worker.address].nanny = nanny
        yield worker


async def nanny_at(nanny: FakeNanny, port: int = 0) -> str:
    await nanny.listen(f"tcp://127.0.0.1:{port}")
    return nanny.address


async def called(watched: Watched) -> None:
    watched.agents.look()
    under_way = watched.agents._calls
    await until(lambda: not (under_way.running or under_way.running_late or under_way.waiting or under_way.late))


async def test_without_logs_a_nanny_is_left_alone(cluster: Cluster) -> None:
    nanny = FakeNanny(take_it)
    cluster.scheduler.workers[cluster.workers[0].address].nanny = await nanny_at(nanny)
    for level, n_asked in ((None, 0), (30, 1)):
        watched = Watched(cluster.scheduler, logs=level)
        await called(watched)
        assert nanny.n_asked == n_asked
        watched.close()
    await nanny.close()


async def test_a_nanny_is_called_though_its_worker_is_gone_and_once_for_all_its_workers(cluster: Cluster) -> None:
    nanny = FakeNanny(take_it)
    address = await nanny_at(nanny)
    watched = Watched(cluster.scheduler)
    await called(watched)
    async with another_worker(cluster, address) as worker:
        watched.agents.look()
        state = cluster.scheduler.workers.pop(worker.address)  # it goes before anybody is called
        watched.agents.look()
        await until(lambda: nanny.n_asked == 1)
        cluster.scheduler.workers[worker.address] = state
    async with another_worker(cluster, address):
        await called(watched)
    assert (nanny.n_asked, watched.agents.lost) == (1, {})
    watched.close()
    await nanny.close()


async def test_a_nanny_that_refuses_is_counted_and_asked_once_more_with_its_next_worker(cluster: Cluster) -> None:
    nanny = FakeNanny(refuse)
    address = await nanny_at(nanny)
    watched = Watched(cluster.scheduler)
    for n_asked in (1, 2, 2):
        async with another_worker(cluster, address):
            await called(watched)
        assert (nanny.n_asked, watched.agents.lost) == (n_asked, {"nannies-without-agent": 1})
    # Another nanny at the same address is another one.
    await nanny.close()
    later = FakeNanny(take_it)
    assert await nanny_at(later, int(address.rpartition(":")[2])) == address
    async with another_worker(cluster, address):
        await called(watched)
    assert (later.n_asked, watched.agents.lost) == (1, {"nannies-without-agent": 1})
    watched.close()
    await later.close()


async def test_a_nanny_that_cannot_be_reached_is_counted_and_asked_with_its_next_worker(cluster: Cluster) -> None:
    nanny = FakeNanny(take_it)
    address = await nanny_at(nanny)
    await nanny.close()
    watched = Watched(cluster.scheduler)
    with dask.config.set({"distributed.comm.timeouts.connect": "0.01s"}):
        async with another_worker(cluster, address):
            await called(watched)
    assert watched.agents.lost == {"nannies-without-agent": 1}
    there = FakeNanny(take_it)
    await nanny_at(there, int(address.rpartition(":")[2]))
    async with another_worker(cluster, address):
        await called(watched)
    assert there.n_asked == 1
    watched.close()
    await there.close()


async def test_who_does_not_answer_keeps_nobody_waiting_and_is_called_once_more(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MAX_CALLS", 1)
    monkeypatch.setattr(calls, "MAX_LATE_CALLS", 1)
    monkeypatch.setattr(calls, "CALL_S", 0.2)
    monkeypatch.setattr(calls, "LATE_CALL_S", 3600.0)
    (wedged,) = cluster.workers
    n_asked: list[int] = []

    async def wait_for_ever(**_: Any) -> None:
        n_asked.append(1)
        await hang()

    monkeypatch.setitem(wedged.handlers, "plugin-add", wait_for_ever)
    watched = Watched(cluster.scheduler)
    async with Worker(cluster.scheduler.address, nthreads=1, dashboard=False) as other:
        watched.agents.look()
        assert await answered(watched, other.address) == RUNNING
    await until(lambda: len(n_asked) == 2)
    assert watched.agents.status(wedged.address) == module.ASKED
    async with Worker(cluster.scheduler.address, nthreads=1, dashboard=False) as other:
        watched.agents.look()
        assert await answered(watched, other.address) == RUNNING, "while the long call goes on"
    assert watched.agents._calls.running_late
    watched.close()


async def test_closed_while_a_call_hangs_no_task_is_left(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CALL_S", 3600.0)
    asked = asyncio.Event()

    async def wait_for_ever(**_: Any) -> None:
        asked.set()
        await hang()

    monkeypatch.setitem(cluster.workers[0].handlers, "plugin-add", wait_for_ever)
    watched = Watched(cluster.scheduler)
    await asked.wait()
    tasks = list(watched.agents._calls.running)
    watched.close()
    await asyncio.wait(tasks)
    assert [task.cancelled() for task in tasks] == [True]


async def test_many_workers_are_called_a_few_at_a_time(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_CALLS", 2)
    watched = Watched(cluster.scheduler)
    await answered(watched, cluster.workers[0].address)
    others = [await Worker(cluster.scheduler.address, nthreads=1, dashboard=False) for _ in range(5)]
    watched.agents.look()
    assert len(watched.agents._calls.running) == 2
    watched.agents.look()
    assert len(watched.agents._calls.running) == 2
    for other in others:
        assert await answered(watched, other.address) == RUNNING
        assert NAME in other.plugins
        await other.close()
    watched.agents.look()
    assert set(watched.agents._status) == {cluster.workers[0].address}
    watched.close()


async def test_a_worker_that_does_not_answer_or_went_is_let_be(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (worker,) = cluster.workers
    monkeypatch.setitem(worker.handlers, "plugin-add", lambda **_: hang())
    monkeypatch.setattr(calls, "CALL_S", 0.0)
    monkeypatch.setattr(calls, "LATE_CALL_S", 0.0)
    watched = Watched(cluster.scheduler)
    assert await answered(watched, worker.address) == "no answer in 0 s"
    watched.close()
    watched = Watched(cluster.scheduler)
    address = worker.address
    await worker.close()
    await until(lambda: address not in cluster.scheduler.workers)
    watched.agents.look()
    assert watched.agents.status(address) == ""
    assert not [record for record in caplog.records if "broadcast" in record.getMessage()]
    watched.close()


async def test_a_setup_that_raises_is_a_reason(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    (worker,) = cluster.workers

    monkeypatch.setitem(worker.handlers, "plugin-add", lambda **_: refuse())
    watched = Watched(cluster.scheduler)
    assert await answered(watched, worker.address) == "ValueError('no plugins here')"
    watched.close()

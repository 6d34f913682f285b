"""Agents on real workers, most of them processes: they come to each, once, and stop nobody who cannot have one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import dask.config
import pytest
import pytest_asyncio
from distributed import LocalCluster, Worker, get_worker
from distributed.core import Server

from daskscope.agent import NAME, TOPIC
from daskscope.collect import agents as module
from daskscope.collect import calls
from daskscope.collect.agents import RUNNING, Agents
from daskscope.collect.logs import LogReader
from tests.plugin.rig import Cluster, running, settings, until
from tests.plugin.worker_process import worker_process

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def _no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents look for workers when a test says so."""
    monkeypatch.setattr(module, "LOOK_S", 3600.0)


class Watched:
    """What the watch does with agents and lines, without the rest of it."""

    def __init__(self, scheduler: Any, **changes: Any) -> None:
        given = settings(**changes)
        self.agents = Agents(scheduler, given)
        self.logs = LogReader(scheduler, given.logs)
        self.hellos: dict[str, Mapping[str, Any]] = {}
        self.rows: list[tuple[str, str | None, str, int]] = []
        self.agents.start()
        self.logs.start()
        self.agents.look()

    def read(self) -> list[tuple[str, str | None, str, int]]:
        """All lines so far: role, worker, text, dropped."""
        self.agents.drain({"logs": self.logs.take, "hello": self.hellos.__setitem__})
        found = self.logs.read()
        self.rows += zip(found.role, found.worker, found.text, found.dropped, strict=True)
        return self.rows

    def texts(self, role: str) -> list[str]:
        return [text for its_role, _, text, _ in self.read() if its_role == role]

    def greeted(self, worker: str) -> bool:
        self.read()
        return worker in self.hellos

    def close(self) -> None:
        self.agents.close()
        self.logs.close()


@pytest_asyncio.fixture
async def empty() -> AsyncIterator[Cluster]:
    """A scheduler and a client, and no worker yet."""
    async with running(0) as started:
        yield started


async def answered(watched: Watched, worker: str) -> str:
    await until(lambda: watched.agents.status(worker) not in ("", module.ASKED))
    return watched.agents.status(worker)


def say(n: int = 1) -> Callable[[], None]:
    """A task that logs so many warnings; made here, so that it goes by value to where this file is not."""

    def task() -> None:
        for k in range(n):
            logging.getLogger("mine").warning("line %d", k)

    return task


def say_and_die() -> Callable[[], None]:
    """A task that says something and has its worker killed half a second later, whatever that does meanwhile."""

    def task() -> None:
        logging.getLogger("mine").warning("last words")
        loop: Any = get_worker().loop
        loop.add_callback(loop.call_later, 0.5, os.kill, os.getpid(), signal.SIGKILL)

    return task


async def test_a_worker_that_is_killed_has_said_its_last_words(empty: Cluster, tmp_path: Path) -> None:
    watched = Watched(empty.scheduler)
    async with worker_process(empty.scheduler, tmp_path, nanny=True):
        (worker,) = empty.scheduler.workers
        watched.agents.look()
        assert await answered(watched, worker) == RUNNING
        await until(lambda: not watched.agents._calls.running)
        await empty.client.submit(say_and_die())
        await until(lambda: worker not in empty.scheduler.workers)
        assert ("worker", worker, "last words", 0) in watched.read()
        # Its nanny says so and starts another, which gets an agent; the nanny has one.
        await until(lambda: any("Restarting worker" in text for text in watched.texts("nanny")))
        assert {where for role, where, _, _ in watched.rows if role == "nanny"} == {worker}
        await until(lambda: empty.scheduler.workers)
        (another,) = empty.scheduler.workers
        watched.agents.look()
        assert (await answered(watched, another), watched.agents.status(worker)) == (RUNNING, "")
        await empty.client.submit(say())
        await until(lambda: ("worker", another, "line 0", 0) in watched.read())
    watched.close()


async def test_it_looks_for_workers_by_itself(empty: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    watched = Watched(empty.scheduler)
    async with Worker(empty.scheduler.address, nthreads=1, dashboard=False) as worker:
        assert await answered(watched, worker.address) == RUNNING
    await until(lambda: watched.agents.status(worker.address) == "")
    watched.close()
    assert not watched.agents._timer.is_running()


async def test_a_dask_that_keeps_its_events_elsewhere_is_left_alone(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AttributeError("_topics")

    monkeypatch.setattr(module.Mailbox, "open", fail)
    watched = Watched(cluster.scheduler)
    assert watched.agents.lost == {"agents": 1}
    assert not watched.agents._calls.running
    watched.close()


async def test_it_needs_no_daskscope_on_worker_and_nanny_and_a_burst_there_is_bounded_and_exact(
    empty: Cluster, tmp_path: Path
) -> None:
    watched = Watched(empty.scheduler)
    async with worker_process(empty.scheduler, tmp_path, nanny=True, lacks_daskscope=True):
        ((worker, state),) = empty.scheduler.workers.items()
        watched.agents.look()
        assert await answered(watched, worker) == RUNNING
        await until(lambda: watched.greeted(worker))
        await until(lambda: not watched.agents._calls.running)
        assert not watched.agents.lost, "its nanny has one, too"
        await empty.client.submit(say(5_000))
        await until(lambda: watched.read() and len(watched.rows) + watched.logs.lost["log-lines"] == 5_000)
        assert 200 <= len(watched.rows) < 1_000
        assert ("worker", worker, "line 0") in [row[:3] for row in watched.rows]
        await empty.client.submit(say(), pure=False)
        await until(lambda: sum(row[3] for row in watched.read()) + len(watched.rows) == 5_001)
        watched.close()
        # A worker of another Python lives without, and the reason is known.
        state.versions["host"]["python"] = "3.9.1.final.0"
        watched = Watched(empty.scheduler)
        assert await answered(watched, worker) == "ModuleNotFoundError(\"No module named 'daskscope'\")"
        await until(lambda: not watched.agents._calls.running)
        assert watched.agents.lost == {"nannies-without-agent": 1}
        assert await empty.client.submit(int, 7) == 7
        watched.agents.look()
        assert not watched.agents._calls.waiting, "it is not asked again"
        assert not watched.agents._calls.running
    watched.close()


async def test_workers_in_the_scheduler_s_process_leave_its_lines_to_the_scheduler(cluster: Cluster) -> None:
    watched = Watched(cluster.scheduler)
    (worker,) = cluster.workers
    assert await answered(watched, worker.address) == RUNNING
    await cluster.client.submit(say())
    assert watched.texts("scheduler") == ["line 0"]
    await until(lambda: watched.greeted(worker.address))
    assert watched.texts("worker") == []
    watched.close()


async def test_a_local_cluster_s_workers_and_nannies(tmp_path: Path) -> None:
    async with LocalCluster(n_workers=2, threads_per_worker=1, asynchronous=True, dashboard_address=":0",
                            local_directory=str(tmp_path)) as cluster:  # fmt: skip
        scheduler: Any = cluster.scheduler
        watched = Watched(scheduler)
        for worker in scheduler.workers:
            assert await answered(watched, worker) == RUNNING
        async with cluster.get_client() as client:
            await client.run(say())
        await until(lambda: len(watched.texts("worker")) == 2)
        assert {where for _, where, _, _ in watched.rows} == set(scheduler.workers)
        logging.getLogger("distributed.nanny").warning("a nanny in this process")
        assert watched.texts("scheduler") == ["a nanny in this process"]
    assert watched.texts("nanny") == []
    watched.close()


async def test_with_everything_off_nothing_is_installed(cluster: Cluster) -> None:
    factory = logging.getLogRecordFactory()
    watched = Watched(cluster.scheduler, logs=None, profile=False, hardware=False)
    watched.agents.look()
    assert not watched.agents._calls.running
    assert NAME not in cluster.workers[0].plugins
    assert watched.agents.status(cluster.workers[0].address) == ""
    assert watched.agents._mailbox._before is None
    assert not watched.agents._timer.is_running()
    assert logging.getLogRecordFactory() is factory
    await cluster.client.submit(say())
    assert watched.read() == []
    watched.close()


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


async def test_trouble_in_a_greeting_is_the_status(cluster: Cluster) -> None:
    watched = Watched(cluster.scheduler)
    address = cluster.workers[0].address
    await answered(watched, address)
    await until(lambda: watched.greeted(address))
    hello = {"kind": "hello", "from": "worker", "worker": address}
    cluster.scheduler.log_event(TOPIC, {**hello, "trouble": "OSError: no handles"})
    watched.read()
    assert watched.agents.status(address) == "OSError: no handles"
    watched.close()


@pytest.mark.parametrize(
    "payload",
    [
        {"kind": "logs", "worker": None, "from": "worker", "lines": []},
        {"kind": "logs", "lines": []},
        {"kind": "logs", "worker": "a", "from": "scheduler", "lines": []},
        {"kind": "hello", "worker": ["a"]},
    ],
)
async def test_a_payload_that_nobody_can_read_is_counted(cluster: Cluster, payload: Any) -> None:
    watched = Watched(cluster.scheduler)
    cluster.scheduler.log_event(TOPIC, payload)
    watched.read()
    assert watched.agents.lost["unreadable-agent-messages"] == 1
    watched.close()


async def test_a_drain_is_bounded_and_says_that_more_is_there(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_DRAINED", 2)
    watched = Watched(cluster.scheduler, profile=False, hardware=False)
    await answered(watched, cluster.workers[0].address)
    await until(lambda: watched.agents.behind)
    for n in range(3):
        line = [1_000, 30, "mine", str(n), 0]
        cluster.scheduler.log_event(TOPIC, {"kind": "logs", "from": "worker", "worker": "a", "lines": [line]})
    watched.read()
    assert watched.agents.behind
    assert [text for _, _, text, _ in watched.read()] == ["0", "1", "2"]
    assert not watched.agents.behind
    watched.close()

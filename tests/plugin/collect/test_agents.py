"""Agents on real workers, most of them processes: they come to each, once, and stop nobody who cannot have one."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from distributed import LocalCluster, Worker, get_worker

from daskscope.agent import NAME, TOPIC
from daskscope.collect import agents as module
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
        await until(lambda: not watched.agents._calls)
        await empty.client.submit(say_and_die())
        await until(lambda: worker not in empty.scheduler.workers)
        assert ("worker", worker, "last words", 0) in watched.read()
        # Its nanny says so and starts another, which gets an agent; the nanny has one.
        await until(lambda: any("Restarting worker" in text for text in watched.texts("nanny")))
        assert {where for role, where, _, _ in watched.rows if role == "nanny"} == {worker}
        await until(lambda: empty.scheduler.workers)
        (another,) = empty.scheduler.workers
        watched.agents.look()
        assert len(watched.agents._waiting) == 1
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
    assert not watched.agents._calls
    watched.close()


async def test_a_burst_is_bounded_and_exact(empty: Cluster, tmp_path: Path) -> None:
    watched = Watched(empty.scheduler)
    async with worker_process(empty.scheduler, tmp_path):
        (worker,) = empty.scheduler.workers
        watched.agents.look()
        assert await answered(watched, worker) == RUNNING
        await empty.client.submit(say(5_000))
        await until(lambda: watched.read() and len(watched.rows) + watched.logs.lost["log-lines"] == 5_000)
        assert 200 <= len(watched.rows) < 1_000
        await empty.client.submit(say(), pure=False)
        await until(lambda: sum(row[3] for row in watched.read()) + len(watched.rows) == 5_001)
    watched.close()


@pytest.mark.parametrize("nanny", [False, True])
async def test_it_needs_no_daskscope_on_the_worker(empty: Cluster, tmp_path: Path, nanny: bool) -> None:
    watched = Watched(empty.scheduler)
    async with worker_process(empty.scheduler, tmp_path, nanny=nanny, lacks_daskscope=True):
        (worker,) = empty.scheduler.workers
        watched.agents.look()
        assert await answered(watched, worker) == RUNNING
        await empty.client.submit(say())
        await until(lambda: ("worker", worker, "line 0", 0) in watched.read())
        await until(lambda: watched.greeted(worker))
    watched.close()


async def test_a_worker_of_another_python_without_daskscope_lives_and_the_reason_is_known(
    empty: Cluster, tmp_path: Path
) -> None:
    watched = Watched(empty.scheduler)
    async with worker_process(empty.scheduler, tmp_path, lacks_daskscope=True):
        ((worker, state),) = empty.scheduler.workers.items()
        state.versions["host"]["python"] = "3.9.1.final.0"
        watched.agents.look()
        assert await answered(watched, worker) == "ModuleNotFoundError(\"No module named 'daskscope'\")"
        assert await empty.client.submit(int, 7) == 7
        watched.agents.look()
        assert not watched.agents._waiting, "it is not asked again"
        assert not watched.agents._calls
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
    assert not watched.agents._calls
    assert NAME not in cluster.workers[0].plugins
    assert watched.agents.status(cluster.workers[0].address) == ""
    assert watched.agents._mailbox._before is None
    assert not watched.agents._timer.is_running()
    assert logging.getLogRecordFactory() is factory
    await cluster.client.submit(say())
    assert watched.read() == []
    watched.close()


async def test_without_logs_a_nanny_is_left_alone(empty: Cluster, tmp_path: Path) -> None:
    watched = Watched(empty.scheduler, logs=None)
    async with worker_process(empty.scheduler, tmp_path, nanny=True):
        (worker,) = empty.scheduler.workers
        watched.agents.look()
        assert len(watched.agents._waiting) == 1
        assert await answered(watched, worker) == RUNNING
        await empty.client.submit(say())
        await until(lambda: watched.greeted(worker))
        assert watched.read() == []
    watched.close()


async def test_many_workers_are_called_a_few_at_a_time(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CALLS", 2)
    watched = Watched(cluster.scheduler)
    await answered(watched, cluster.workers[0].address)
    others = [await Worker(cluster.scheduler.address, nthreads=1, dashboard=False) for _ in range(5)]
    watched.agents.look()
    assert len(watched.agents._calls) == 2
    watched.agents.look()
    assert len(watched.agents._calls) == 2
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
    asked = asyncio.Event()

    async def hang(**_: Any) -> None:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setitem(worker.handlers, "plugin-add", hang)
    monkeypatch.setattr(module, "CALL_S", 0.0)
    watched = Watched(cluster.scheduler)
    assert await answered(watched, worker.address) == "no answer in 0 s"
    watched.close()
    monkeypatch.setattr(module, "CALL_S", 60.0)
    watched = Watched(cluster.scheduler)
    await asked.wait()
    watched.close()
    await until(lambda: not watched.agents._calls)
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

    async def refuse(**_: Any) -> dict[str, str]:
        return {"status": "error", "exception_text": "ValueError('no plugins here')"}

    monkeypatch.setitem(worker.handlers, "plugin-add", refuse)
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

"""The plugins on real workers and nannies: set up at once, undone at the end, and no harm in between."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from distributed import Nanny, Worker, WorkerPlugin

from daskscope.agent import NAME, TOPIC, plugins
from daskscope.agent.logs import listeners
from daskscope.agent.plugins import NannyAgent, WorkerAgent
from tests.plugin.rig import Cluster, inc, until

pytestmark = pytest.mark.asyncio


def worker_agent(**changes: Any) -> WorkerAgent:
    given: dict[str, Any] = {"cluster": "c", "level": 30, "profile_interval_s": None, "hardware": False}
    return WorkerAgent(**{**given, **changes})


def said(cluster: Cluster, kind: str) -> list[dict[str, Any]]:
    return [payload for _, payload in cluster.scheduler.get_events(TOPIC) if payload["kind"] == kind]


def texts(cluster: Cluster) -> list[str]:
    return [line[3] for payload in said(cluster, "logs") for line in payload["lines"]]


async def test_a_worker_greets_and_sends_its_lines(cluster: Cluster) -> None:
    (worker,) = cluster.workers
    await worker.plugin_add(worker_agent(), name=NAME)
    await cluster.client.submit(logging.getLogger("mine").warning, "from a task")
    await until(lambda: said(cluster, "hello") and texts(cluster))
    (hello,) = said(cluster, "hello")
    assert hello == {"kind": "hello", "python_path": sys.executable, "from": "worker", "worker": worker.address}
    assert texts(cluster) == ["from a task"]
    assert said(cluster, "logs")[0]["worker"] == worker.address


class Ahead(Worker):
    """Its clock is an hour ahead, whatever heartbeats measure."""

    scheduler_delay = -3600.0

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "scheduler_delay":
            super().__setattr__(name, value)


async def test_a_worker_s_lines_are_dated_by_the_scheduler_s_clock(cluster: Cluster) -> None:
    async with Ahead(cluster.scheduler.address, nthreads=1, dashboard=False) as worker:
        await worker.plugin_add(worker_agent(), name=NAME)
        before_ms = time.time() * 1e3
        logging.getLogger("mine").warning("by its own clock an hour later")
        await until(lambda: texts(cluster))
    ((at_ms, *_),) = said(cluster, "logs")[0]["lines"]
    assert before_ms - 1 <= at_ms + 3_600_000 <= time.time() * 1e3 + 1


async def test_a_second_agent_on_a_nanny_goes_on_where_the_first_ends(cluster: Cluster) -> None:
    nanny = await nanny_of(cluster)
    try:
        for n in range(2):
            logging.getLogger("distributed.nanny").warning("before %d", n)
            await nanny.plugin_add(NannyAgent(cluster="c", level=30), name=NAME)
        logging.getLogger("mine").warning("after")
        await until(lambda: len(texts(cluster)) == 3)
        assert {payload["worker"] for payload in said(cluster, "logs")} == {nanny.worker_address}
    finally:
        await nanny.close()
    assert texts(cluster) == ["before 0", "before 1", "after"]
    assert "c" not in listeners()


async def test_hardware_goes_with_the_greeting(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "read_hardware", lambda: {"cores": 3, "provider": ""})
    await cluster.workers[0].plugin_add(worker_agent(hardware=True), name=NAME)
    await until(lambda: said(cluster, "hello"))
    assert said(cluster, "hello")[0]["cores"] == 3


async def test_what_did_not_work_is_told_and_the_worker_works_on(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no way")

    monkeypatch.setattr(plugins, "join", fail)
    monkeypatch.setattr(plugins, "read_hardware", fail)
    (worker,) = cluster.workers
    assert await worker.plugin_add(worker_agent(hardware=True), name=NAME) == {"status": "OK"}
    await until(lambda: said(cluster, "hello"))
    assert said(cluster, "hello")[0]["trouble"] == "RuntimeError: no way"
    assert await cluster.client.submit(inc, 1) == 2
    assert await worker.plugin_remove(name=NAME) == {"status": "OK"}


class LastWords(WorkerPlugin):
    def teardown(self, worker: Worker) -> None:
        logging.getLogger("mine").warning("its last words")


async def test_everything_is_undone_when_the_worker_closes(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    class Profiling:
        def __init__(self, worker: Worker, interval_s: float, send: Callable[[dict[str, Any]], None]) -> None:
            self.start = lambda: told.append(f"start {interval_s}")
            self.send = send

        def stop(self) -> None:
            told.append("stop")
            self.send({"kind": "hello", "last": "profile"})

    monkeypatch.setattr(plugins, "Profiler", Profiling)
    factory, last = logging.getLogRecordFactory(), logging.lastResort
    async with Worker(cluster.scheduler.address, nthreads=1, dashboard=False) as brief:
        await brief.plugin_add(worker_agent(profile_interval_s=60.0), name=NAME)
        assert "c" in listeners()
        await brief.plugin_add(LastWords(), name="theirs")
    assert "c" not in listeners()
    assert logging.getLogRecordFactory() is factory
    assert logging.lastResort is last
    assert told == ["start 60.0", "stop"]
    await until(lambda: texts(cluster))
    assert texts(cluster) == ["its last words"]
    (last,) = [hello for hello in said(cluster, "hello") if "last" in hello]
    assert (last["from"], last["worker"]) == ("worker", said(cluster, "logs")[0]["worker"])


async def test_without_a_level_nothing_listens(cluster: Cluster) -> None:
    (worker,) = cluster.workers
    await worker.plugin_add(worker_agent(level=None), name=NAME)
    assert "c" not in listeners()
    logging.getLogger("mine").warning("unheard")
    await worker.plugin_remove(name=NAME)
    await until(lambda: said(cluster, "hello"))
    assert texts(cluster) == []


async def nanny_of(cluster: Cluster) -> Any:
    return await Nanny(cluster.scheduler.address, nthreads=1, dashboard=False, memory_limit="1 GiB")


async def test_a_nanny_sends_its_lines_with_its_worker_s_address(cluster: Cluster) -> None:
    nanny = await nanny_of(cluster)
    try:
        logging.getLogger("distributed.nanny").warning("before the agent came")
        await nanny.plugin_add(NannyAgent(cluster="c", level=30), name=NAME)
        logging.getLogger("distributed.nanny").warning("after")
        await until(lambda: len(texts(cluster)) == 2)
        assert {(p["from"], p["worker"]) for p in said(cluster, "logs")} == {("nanny", nanny.worker_address)}
        logging.getLogger("mine").warning("its last words")
    finally:
        await nanny.close()
    assert texts(cluster) == ["before the agent came", "after", "its last words"]
    assert "c" not in listeners()


async def test_a_nanny_whose_scheduler_does_not_answer_counts_and_closes(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    nanny = await nanny_of(cluster)
    asked: list[object] = []

    class Gone:
        async def log_event(self, topic: str, msg: object) -> None:
            asked.append(msg)
            raise OSError("no scheduler")

    agent = NannyAgent(cluster="c", level=30)
    await nanny.plugin_add(agent, name=NAME)
    real = nanny.scheduler
    nanny.scheduler = Gone()
    logging.getLogger("mine").warning("lost")
    await until(lambda: asked and agent._sending is None)
    nanny.scheduler = real
    logging.getLogger("mine").warning("next")
    await until(lambda: texts(cluster))
    ((*_, text, dropped),) = said(cluster, "logs")[0]["lines"]
    assert (text, dropped) == ("next", 1)

    class Silent:
        async def log_event(self, topic: str, msg: object) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(plugins, "CLOSE_S", 0.0)
    nanny.scheduler = Silent()
    logging.getLogger("mine").warning("unheard")
    await asyncio.sleep(0)
    await agent.teardown(nanny)
    nanny.scheduler = real
    await nanny.close()

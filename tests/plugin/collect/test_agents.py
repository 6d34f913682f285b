"""Agents on real workers, most of them processes: they come to each, once, and stop nobody who cannot have one."""

from __future__ import annotations

import itertools
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster, Worker, get_worker

from daskscope.agent import NAME, TOPIC
from daskscope.collect import agents as module
from daskscope.collect.agents import RUNNING
from tests.plugin.collect.watched_agents import Watched, answered, say
from tests.plugin.rig import Cluster, until
from tests.plugin.worker_process import worker_process

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("no_timer")]


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
    monkeypatch.setattr(module, "MAX_DRAINED_BYTES", 1_400)
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


async def test_what_is_beyond_one_drain_is_taken_in_between_and_charged(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(cluster.scheduler, profile=False, hardware=False)
    await answered(watched, cluster.workers[0].address)
    watched.agents._timer.stop()
    watched.read()
    n_calls, before_s = watched.agents._n_calls, watched.agents.charged_s
    assert n_calls >= 1
    monkeypatch.setattr(module, "MAX_DRAINED_BYTES", 1_000)
    for n in range(30):
        line = [1_000, 30, "mine", str(n), 0]
        cluster.scheduler.log_event(TOPIC, {"kind": "logs", "from": "worker", "worker": "a", "lines": [line]})
    lengths: list[int] = []
    for _ in range(20):
        lengths.append(len(watched.agents._mailbox))
        watched.agents._look_between()
    assert lengths[0] >= 30
    assert max(before - after for before, after in itertools.pairwise(lengths)) <= 4
    assert lengths[-1] <= 3, "as much as the next visit takes"
    assert watched.agents.charged_s - before_s >= 30 * module.MESSAGE_S + 20 * 300 * module.BYTE_S
    while watched.agents.behind:
        watched.read()
    assert [text for _, _, text, _ in watched.read() if text.isdigit()] == [str(n) for n in range(30)]
    watched.close()

"""Failed tasks of a real scheduler: every one counted, alike ones together, each with a text."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any

import dask.config
import pytest
from distributed import Scheduler, wait
from distributed.scheduler import ErredTask

from daskscope.collect import exceptions as module
from daskscope.collect import memory
from daskscope.collect.exceptions import MAX_FILED, MAX_TEXT, ExceptionReader
from tests.plugin.rig import Cluster, Look, boom, inc, look_at, running, until

pytestmark = pytest.mark.asyncio


async def test_a_failure_is_told_with_type_text_traceback_and_place(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    future = cluster.client.submit(boom, "bread", key="boom-0")
    await wait(future)
    message = look()
    (family,) = message.exceptions
    assert (family.origin, family.type, family.text) == ("user", "ValueError", "ValueError('no bread')")
    assert "in boom" in family.traceback
    assert "rig.py" in family.traceback
    assert (family.key, family.prefix, family.count) == ("boom-0", "boom", 1)
    assert family.workers == [cluster.workers[0].address]
    assert family.group == message.groups.no[0]
    assert family.first_ms == family.last_ms <= message.made_at_ms
    assert message.totals.n_tasks_erred == message.totals.erred == 1
    assert look().exceptions == []
    assert look().totals.n_tasks_erred == 1


def fails(n: int, text: str) -> None:
    raise KeyError(text)


async def test_alike_failures_are_one_family_and_others_are_others(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    futures = [cluster.client.submit(fails, n, "a" if n < 4 else "b", key=("fails", n)) for n in range(6)]
    await wait(futures)
    families = look().exceptions
    assert sorted((family.text, family.count) for family in families) == [("KeyError('a')", 4), ("KeyError('b')", 2)]
    assert [family.no for family in families] == [0, 1]
    for family in families:
        assert family.first_ms <= family.last_ms


async def test_more_failures_between_two_reads_than_dask_keeps_are_counted_to_the_last(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    await wait(cluster.client.map(fails, range(250), text="x"))
    message = look()
    assert message.totals.n_tasks_erred == 250
    assert [family.count for family in message.exceptions] == [250]
    assert "exceptions" not in message.lost


async def test_3000_tasks_that_died_with_their_worker_are_counted_to_the_last_a_family_in_each_message() -> None:
    """Dask's own deque keeps 100, and its texts differ by the key that they name."""
    config = {"distributed.scheduler.allowed-failures": 0, "distributed.scheduler.worker-saturation": "inf"}
    with dask.config.set(config):
        async with running() as cluster:
            look = await look_at(cluster.scheduler)
            worker = cluster.scheduler.workers[cluster.workers[0].address]
            futures = cluster.client.map(asyncio.sleep, [60] * 3000, pure=False)
            await until(lambda: len(worker.processing) == 3000)
            cluster.scheduler.stream_comms[worker.address].abort()
            await until(lambda: len(cluster.scheduler.erred_tasks) == 3000)
            messages = [look(), look()]
            del futures
    assert {message.totals.n_tasks_erred for message in messages} == {3000}
    told = [(family.type, family.count) for message in messages for family in message.exceptions]
    assert told == [("KilledWorker", MAX_FILED), ("KilledWorker", 3000 - MAX_FILED)]
    assert "exceptions" not in messages[-1].lost


N_MANY = 10_000


@contextlib.asynccontextmanager
async def many_that_failed() -> AsyncGenerator[tuple[Cluster, Look]]:
    """Told by the scheduler's own handler, as a worker's message would: to raise so many takes a worker minutes."""
    with dask.config.set({"distributed.scheduler.worker-saturation": "inf"}):
        async with running() as cluster:
            look = await look_at(cluster.scheduler)
            state = cluster.scheduler.workers[cluster.workers[0].address]
            futures = cluster.client.map(asyncio.sleep, [60] * N_MANY, pure=False)
            await until(lambda: len(state.processing) == N_MANY)
            for task in list(state.processing):
                cluster.scheduler.handle_task_erred(
                    key=task.key, stimulus_id="task-erred", worker=state.address, run_id=task.run_id, exception=b"",
                    exception_text="KeyError('x')", traceback=None, traceback_text="  in sleep",
                )  # fmt: skip
            del futures
            yield cluster, look


async def test_10000_tasks_that_fail_in_one_interval_are_told_to_the_last_some_in_each_message() -> None:
    async with many_that_failed() as (cluster, look):
        told: list[tuple[int | None, int]] = []
        message = look()
        assert message.totals.n_tasks_erred == N_MANY, "the total does not wait"
        told += [(family.group, family.count) for family in message.exceptions]
        await until(lambda: not cluster.scheduler.task_groups)  # the client has let go of them
        while look.watch.readers.behind:
            look.watch._forget()  # as after each message
            message = look()
            told += [(family.group, family.count) for family in message.exceptions]
    assert told == [(0, MAX_FILED)] * (N_MANY // MAX_FILED)
    assert message.totals.n_tasks_erred == N_MANY
    assert not message.lost


async def test_of_many_that_failed_none_is_lost_when_dask_clears_its_memory() -> None:
    async with many_that_failed() as (cluster, look):
        inbox: Any = look.watch.sender._transport
        cluster.scheduler.erred_tasks.clear()
        message = await inbox.next()
    assert [family.count for family in message.exceptions] == [N_MANY]
    assert not message.lost


async def test_of_many_that_failed_none_is_lost_when_the_cluster_closes() -> None:
    async with many_that_failed() as (_, look):
        inbox: Any = look.watch.sender._transport
        look.watch.teardown()
        told, message = 0, None
        while message is None or message.phase != "closed":
            message = await inbox.next()
            told += sum(family.count for family in message.exceptions)
    assert told == N_MANY
    assert not message.lost


async def test_tasks_that_the_scheduler_gave_up_tell_its_reason_each_of_its_own() -> None:
    """One group, two workers that die: the texts name the worker, and one is opened for each."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        async with running(2) as cluster:
            look = await look_at(cluster.scheduler)
            addresses = [worker.address for worker in cluster.workers]
            futures = [
                cluster.client.submit(asyncio.sleep, 60, key=("sleeper", n), workers=[addresses[n % 2]])
                for n in range(40)
            ]
            states = [cluster.scheduler.workers[address] for address in addresses]
            await until(lambda: sum(len(state.processing) for state in states) == 40)
            for address in addresses:
                cluster.scheduler.stream_comms[address].abort()
            await until(lambda: len(cluster.scheduler.erred_tasks) == 40)
            families = look().exceptions
    assert [(family.origin, family.type, family.count) for family in families] == [
        ("scheduler", "KilledWorker", 20), ("scheduler", "KilledWorker", 20),
    ]  # fmt: skip
    for family in families:
        (address,) = family.workers
        assert address in family.text
        assert family.key in family.text
    assert {family.workers[0] for family in families} == set(addresses)
    del futures


@pytest.mark.skipif(
    not hasattr(Scheduler, "_check_unrunnable_task_timeouts"), reason="this release lets such tasks wait for ever"
)
async def test_a_task_that_no_worker_may_run_says_so(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    future = cluster.client.submit(inc, 1, resources={"GPU": 1}, key="rare-1")
    scheduler: Any = cluster.scheduler
    await until(lambda: scheduler.unrunnable)
    scheduler.no_workers_timeout = 1e-9
    scheduler._check_no_workers()
    await wait(future)
    (family,) = look().exceptions
    assert (family.origin, family.type, family.workers) == ("scheduler", "NoValidWorkerError", [])
    assert "rare-1" in family.text
    assert "GPU" in family.text


async def test_a_failed_task_that_cannot_be_read_is_left_out_and_counted(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    await wait([cluster.client.submit(boom, n) for n in range(2)])
    broken: Any = cluster.scheduler.erred_tasks[0]
    cluster.scheduler.erred_tasks[0] = ErredTask(broken.key, None, broken.erred_on, "x", "y")  # type: ignore[arg-type]
    message = look()
    assert [family.count for family in message.exceptions] == [1]
    assert message.lost["unreadable-exceptions"] == 1
    assert message.totals.n_tasks_erred == 2


async def test_failures_that_fell_out_before_a_read_are_counted_to_the_last_also_before_the_first(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "HISTORY", 5)
    with dask.config.set({"distributed.diagnostics.erred-tasks.max-history": 5}):
        look = await look_at(cluster.scheduler)
        cluster.scheduler.erred_tasks = memory.LongMemory(deque(maxlen=5), lambda: None)
        reader = ExceptionReader(cluster.scheduler, look.watch.readers._groups, transmit=True)
        for n_read in range(3):
            await wait(cluster.client.map(fails, range(n_read * 10, n_read * 10 + 9), text="x"))
            (family,) = reader.read()
            assert (family.count, reader.n_tasks_erred) == (5, 9 * (n_read + 1))
            assert reader.lost == {"exceptions": 4 * (n_read + 1)}
        assert (reader.read(), reader.lost) == ([], {"exceptions": 12})


async def test_a_memory_that_somebody_put_in_place_of_ours_loses_at_least_one(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    reader = ExceptionReader(cluster.scheduler, look.watch.readers._groups, transmit=True)
    cluster.scheduler.erred_tasks = deque(maxlen=5)
    await wait(cluster.client.submit(fails, -1, "x"))
    assert len(reader.read()) == 1
    await wait(cluster.client.map(fails, range(9), text="x"))
    (family,) = reader.read()
    assert (family.count, reader.lost["exceptions"]) == (5, 1)


async def test_dependents_of_a_failed_task_do_not_count(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    first = cluster.client.submit(boom, 1)
    second = cluster.client.submit(inc, first)
    third = cluster.client.submit(inc, second)
    await wait([first, second, third])
    message = look()
    assert third.status == "error"
    assert message.totals.n_tasks_erred == 1
    assert [(family.prefix, family.count) for family in message.exceptions] == [("boom", 1)]
    assert message.totals.erred == 3, "but they are erred, and stand so in the states"


async def test_a_task_whose_worker_was_killed_says_so() -> None:
    """Dask keeps no text of an error that the scheduler made itself."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        async with running() as cluster:
            look = await look_at(cluster.scheduler)
            future = cluster.client.submit(asyncio.sleep, 60, key="sleeper-1")
            await until(lambda: cluster.workers[0].state.executing_count or cluster.workers[0].state.long_running)
            cluster.scheduler.stream_comms[cluster.workers[0].address].abort()
            await wait(future)
            assert cluster.scheduler.erred_tasks[0].exception_text == ""
            (family,) = look().exceptions
    assert (family.origin, family.type) == ("scheduler", "KilledWorker")
    assert "sleeper-1" in family.text
    assert cluster.workers[0].address in family.text
    assert family.workers == [cluster.workers[0].address]


class SilentError(Exception):
    """An error without a text; opening its pickle would run the user's code on the scheduler."""

    opened = 0

    def __repr__(self) -> str:
        return ""

    def __setstate__(self, state: Any) -> None:
        type(self).opened += 1


def fails_silently() -> None:
    error = SilentError()
    error.x = 1  # type: ignore[attr-defined]  # gives the pickle a state, so that opening it is seen
    raise error


async def test_a_user_s_pickle_is_never_opened(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    future = cluster.client.submit(fails_silently)
    await wait(future)
    assert cluster.scheduler.erred_tasks[0].exception_text == ""
    before = SilentError.opened
    (family,) = look().exceptions
    assert SilentError.opened == before
    assert (family.origin, family.text) == ("user", "Exception: Dask kept no text of this failure")
    assert "fails_silently" in family.traceback


async def test_a_task_that_is_gone_still_counts_and_belongs_to_its_group(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    future = cluster.client.submit(boom, 1)
    await wait(future)
    future.release()
    await until(lambda: not cluster.scheduler.tasks)
    message = look()
    (family,) = message.exceptions
    assert (family.prefix, family.count) == ("boom", 1)
    assert [family.group] == message.groups.no


async def test_more_families_than_fit_into_a_message_come_with_the_next(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FAMILIES", 3)
    look = await look_at(cluster.scheduler)
    await wait([cluster.client.submit(fails, n, str(n), key=("fails", n)) for n in range(5)])
    first, second = look(), look()
    assert (len(first.exceptions), len(second.exceptions)) == (3, 2)
    assert len({family.text for family in first.exceptions + second.exceptions}) == 5
    assert "exceptions" not in second.lost
    assert first.totals.n_tasks_erred == second.totals.n_tasks_erred == 5


async def test_more_families_than_are_held_are_counted(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 3)
    look = await look_at(cluster.scheduler)
    await wait([cluster.client.submit(fails, n, str(n), key=("fails", n)) for n in range(5)])
    message = look()
    assert len(message.exceptions) == 3
    assert message.lost["exceptions"] == 2
    assert message.totals.n_tasks_erred == 5


async def test_long_texts_are_cut_and_say_by_how_much(cluster: Cluster) -> None:
    with dask.config.set({"distributed.admin.max-error-length": 50_000}):
        look = await look_at(cluster.scheduler)
        await wait(cluster.client.submit(fails, 0, "x" * 20_000))
    (family,) = look().exceptions
    n_cut = len(repr(KeyError("x" * 20_000))) - MAX_TEXT
    assert family.text.endswith(f"x... ({n_cut} more characters)")


async def test_with_the_switch_off_failures_count_and_no_text_leaves(cluster: Cluster) -> None:
    from daskscope import wire

    look = await look_at(cluster.scheduler, exceptions=False, code=False, logs=None)
    await wait(cluster.client.submit(boom, "canary-text"))
    message = look()
    assert message.exceptions == []
    assert message.totals.n_tasks_erred == 1
    assert b"canary-text" not in wire.encode(message)


async def test_failures_that_a_retry_healed_are_none(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    _attempts.clear()
    assert await cluster.client.submit(heals, retries=1) == 2
    message = look()
    assert message.totals.n_tasks_erred == 0
    assert message.exceptions == []


_attempts: list[int] = []


def heals() -> int:
    _attempts.append(1)
    if len(_attempts) < 2:
        raise OSError("not yet")
    return len(_attempts)

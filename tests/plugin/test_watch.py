"""The watch in a real scheduler: no trace in `scheduler.plugins`, a last message at the end, never in the way."""

import copy
import pickle
import sys
import threading
from collections import deque
from pathlib import Path
from typing import Any

import dask.config
import pytest
from distributed import Scheduler, wait
from distributed.diagnostics.plugin import SchedulerPlugin

from daskscope import watch as module
from daskscope import wire
from daskscope.collect.history import History
from daskscope.collect.memory import HISTORY, LongMemory
from daskscope.scheduler_plugin import Starter, start_watch
from daskscope.settings import Settings
from daskscope.transport import Outcome
from daskscope.watch import EXTENSION, Watch, install
from tests.plugin.rig import (
    KEPT,
    Cluster,
    Inbox,
    boom,
    group_rows,
    inc,
    look_at,
    quiet_scheduler,
    running,
    settings,
    spooled,
    until,
    watch,
)

pytestmark = pytest.mark.asyncio


def starters(scheduler: Scheduler) -> list[SchedulerPlugin]:
    return [plugin for plugin in scheduler.plugins.values() if isinstance(plugin, Starter)]


async def test_the_plugin_leaves_after_a_client_registered_it(cluster: Cluster) -> None:
    await cluster.client.register_plugin(Starter(settings()))
    assert isinstance(cluster.scheduler.extensions[EXTENSION], Watch)
    await until(lambda: not starters(cluster.scheduler))
    await cluster.client.submit(inc, 1)
    assert not starters(cluster.scheduler)


async def test_it_leaves_under_whatever_name_it_was_registered(cluster: Cluster) -> None:
    await cluster.client.register_plugin(Starter(settings()), name="their-own-name")
    await until(lambda: "their-own-name" not in cluster.scheduler.plugins)


async def test_the_plugin_leaves_after_a_preload_added_it_and_start_run_twice_makes_one_watch() -> None:
    scheduler = quiet_scheduler()
    plugin = Starter(settings())
    scheduler.add_plugin(plugin)
    async with scheduler:  # runs start() of what is registered
        first = scheduler.extensions[EXTENSION]
        await plugin.start(scheduler)
        assert scheduler.extensions[EXTENSION] is first
        await until(lambda: not starters(scheduler))
        senders = [thread for thread in threading.enumerate() if thread.name == "daskscope-sender"]
        assert len(senders) == 1


async def test_a_second_registration_makes_no_second_watch(cluster: Cluster) -> None:
    for _ in range(3):
        await cluster.client.register_plugin(Starter(settings()))
    first = cluster.scheduler.extensions[EXTENSION]
    assert install(cluster.scheduler, settings()) is first
    await until(lambda: not starters(cluster.scheduler))


async def test_disabled_nothing_is_installed(cluster: Cluster) -> None:
    await cluster.client.register_plugin(Starter(settings(disabled=True)))
    assert EXTENSION not in cluster.scheduler.extensions
    assert EXTENSION not in cluster.scheduler.handlers


async def test_a_watch_that_cannot_start_stops_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(scheduler: Scheduler, settings: Settings) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("daskscope.scheduler_plugin.install", fails)
    start_watch(cluster.scheduler, settings())
    assert "daskscope is off on this scheduler: RuntimeError: no" in caplog.text
    await cluster.client.register_plugin(Starter(settings()))
    assert await cluster.client.submit(inc, 1) == 2


async def test_the_first_message_says_who_the_cluster_is_and_later_ones_do_not(cluster: Cluster) -> None:
    inbox = Inbox()
    watching = watch(cluster.scheduler, inbox, interval_s=30.0)
    first = await inbox.next()
    watching.poll()
    second = await inbox.next()
    assert (first.seq, second.seq, first.v) == (0, 1, wire.VERSION)
    assert first.cluster == cluster.scheduler.id.removeprefix("Scheduler-").replace("-", "")
    assert first.boot == second.boot
    assert int(first.boot[:12], 16) <= first.made_at_ms <= second.made_at_ms
    assert 0 <= first.uptime_us <= second.uptime_us
    assert (first.next_s, first.phase, first.reason) == (30.0, "running", None)
    assert first.identity is not None
    assert first.identity.scheduler_id == cluster.scheduler.id
    assert second.identity is None


async def test_the_memories_of_dask_are_lengthened_and_nothing_in_them_is_lost(cluster: Cluster) -> None:
    await wait(cluster.client.submit(boom, 1))
    scheduler = cluster.scheduler
    before = list(scheduler.erred_tasks), list(scheduler.computations)
    await look_at(scheduler)
    assert (list(scheduler.erred_tasks), list(scheduler.computations)) == before
    assert scheduler.erred_tasks.maxlen == scheduler.computations.maxlen == HISTORY


async def test_what_was_read_is_kept_no_longer_than_dask_keeps_it() -> None:
    with dask.config.set({"distributed.diagnostics.computations.max-history": 3}):
        async with running() as cluster:
            inbox = Inbox()
            watch(cluster.scheduler, inbox)
            await inbox.next()
            for n in range(8):
                await wait(cluster.client.submit(inc, n))
            assert len(cluster.scheduler.computations) == 8
            cluster.scheduler.extensions[module.EXTENSION].poll()
            assert len(cluster.scheduler.computations) == 3
            assert (await inbox.next()).totals.n_computations == 8


async def test_a_memory_that_a_user_copies_or_fetches_is_a_plain_deque(cluster: Cluster) -> None:
    await look_at(cluster.scheduler)
    await wait(cluster.client.submit(boom, 1))
    memory = cluster.scheduler.erred_tasks
    assert type(memory) is LongMemory
    for taken in (copy.copy(memory), pickle.loads(pickle.dumps(memory))):
        assert type(taken) is deque
        assert [erred.key for erred in taken] == [erred.key for erred in memory]
        assert taken.maxlen == memory.maxlen


async def test_a_restart_loses_nothing_of_what_happened_since_the_last_read(cluster: Cluster) -> None:
    inbox = Inbox()
    watch(cluster.scheduler, inbox)
    await inbox.next()
    await wait([*cluster.client.map(inc, range(5)), *cluster.client.map(boom, range(2), pure=False)])
    await cluster.client.restart(wait_for_workers=False)
    message = await inbox.next()
    assert (message.totals.n_tasks, message.totals.n_tasks_erred) == (7, 2)
    assert sum(family.count for family in message.exceptions) == 2
    assert message.lost == {}


async def test_a_user_s_own_longer_memory_stays() -> None:
    with dask.config.set({"distributed.diagnostics.computations.max-history": 50_000}):
        async with quiet_scheduler() as scheduler:
            await look_at(scheduler)
            assert scheduler.computations.maxlen == 50_000


async def test_short_graphs_in_a_lost_message_are_told_again(cluster: Cluster) -> None:
    """Each is over, and forgotten by the scheduler, when the message with it is refused."""
    answers = [KEPT, Outcome("refused", "HTTP 422")]
    inbox = Inbox(lambda _: answers.pop(0) if answers else KEPT)
    watching = watch(cluster.scheduler, inbox)
    await inbox.next()
    for n in range(20):
        assert await cluster.client.submit(inc, n, key=f"short{n}") == n + 1
        await until(lambda: not cluster.scheduler.tasks)
    watching.poll()  # refused
    await until(lambda: watching.sender.lost)
    for _ in range(2):
        watching.poll()
    healed, after = await inbox.next(), await inbox.next()
    assert {row["name"] for row in group_rows(healed)} == {f"short{n}" for n in range(20)}
    assert sorted(computation.no for computation in healed.computations) == list(range(20))
    assert {f.code for c in healed.computations for call in c.code for f in call} == {c.hash for c in healed.codes}
    assert healed.codes
    assert (group_rows(after), after.computations, after.codes) == ([], [], [])


async def test_a_worker_s_profiles_are_merged_before_they_leave(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, profile=False)
    payload = {
        "kind": "profile", "from_ms": 1_000, "to_ms": 2_000, "sample_us": 10_000, "frames": ["f;a.py;1"],
        "prefix": ["inc"], "stack": [[0]], "count": [3], "cut": 0,
    }  # fmt: skip
    watching = look.watch
    for n in range(2):
        watching.readers._profiles.take(f"tcp://10.0.0.{n}:1", payload)
    watching.poll()
    watching.sender.close()
    transport: Any = watching.sender._transport
    (profile,) = wire.decode(transport.bodies[-1]).profiles
    assert profile.count == [6]


async def test_poll_and_teardown_never_raise(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("a fault of ours")

    look = await look_at(cluster.scheduler)
    monkeypatch.setattr(look.watch, "_message", fails)
    look.watch.poll()
    look.watch.teardown()
    assert await cluster.client.submit(inc, 1) == 2


async def test_a_lost_message_makes_what_was_in_it_be_sent_again(cluster: Cluster) -> None:
    """Refused by the server or dropped from a full buffer: identity, code, live groups and computations come again."""
    answers = [KEPT, Outcome("refused", "HTTP 422")]
    inbox = Inbox(lambda _: answers.pop(0) if answers else KEPT)
    watching = watch(cluster.scheduler, inbox)
    await inbox.next()
    futures = cluster.client.map(inc, range(3))
    await cluster.client.gather(futures)
    watching.poll()  # refused
    await until(lambda: watching.sender.lost)
    watching.poll()
    healed = await inbox.next()
    assert healed.seq == 2
    assert healed.lost == {"refused": 1}
    assert healed.identity is not None
    assert [(row["n_tasks"], row["states"]) for row in group_rows(healed)] == [(3, {"memory": 3})]
    assert [computation.no for computation in healed.computations] == [0]
    assert {code.hash for code in healed.codes} == {
        f.code for c in healed.computations for call in c.code for f in call
    }
    assert healed.codes
    watching.poll()
    after = await inbox.next()
    assert (after.identity, after.codes, after.computations, group_rows(after)) == (None, [], [], [])
    assert after.lost == {"refused": 1}


async def test_while_a_server_takes_nothing_all_is_sent_again_once_and_again_when_it_is_back(cluster: Cluster) -> None:
    answers = [KEPT]
    inbox = Inbox(lambda _: answers[0])
    watching = watch(cluster.scheduler, inbox)
    await inbox.next()
    await cluster.client.submit(inc, 1)
    answers[0] = Outcome("refused", "HTTP 422")
    identified: list[bool] = []
    for n in range(8):
        message = watching._message("running", None)
        identified.append(message.identity is not None)
        watching.sender.put(message)
        await until(lambda n=n: watching.sender.lost.total() > n)
    assert identified == [False, True, *[False] * 6]
    answers[0] = KEPT
    watching.poll()
    assert (await inbox.next()).identity is None
    await until(lambda: watching.sender.n_delivered == 2)
    watching.poll()
    healed = await inbox.next()
    assert healed.identity is not None
    assert [row["n_tasks"] for row in group_rows(healed)] == [1]
    watching.poll()
    assert (await inbox.next()).identity is None


async def test_the_server_s_wish_for_the_identity_is_heeded(cluster: Cluster) -> None:
    reply = wire.Reply(id=1, url="/x", wish=["identity", "something new"])
    answers = [KEPT, Outcome("kept", "", reply)]
    inbox = Inbox(lambda _: answers.pop(0) if answers else KEPT)
    watching = watch(cluster.scheduler, inbox)
    await inbox.next()
    for _ in range(3):
        watching.poll()
        await inbox.next()
        await until(lambda: not watching.sender._buffer)
    identities = [wire.decode(body).identity is not None for body in inbox.bodies]
    assert identities == [True, False, True, False]


@pytest.mark.parametrize(
    ("asked_s", "pace_s"),
    [(30.0, 30.0), (9.9, 10.0), (0.001, 10.0), (1e9, 3600.0), (float("inf"), 3600.0), (None, 10.0), (0.0, 10.0)],
)
async def test_the_server_s_pace_is_heeded_within_limits(
    cluster: Cluster, asked_s: float | None, pace_s: float
) -> None:
    watching = Watch(cluster.scheduler, settings(interval_s=10.0), Inbox())
    watching._heed(wire.Reply(id=1, url="/x", next_s=asked_s))
    assert watching._message("running", None).next_s == pace_s
    assert watching._timer.callback_time == pace_s * 1e3
    watching._heed(wire.Reply(id=1, url="/x"))
    assert watching._message("running", None).next_s == 10.0


async def test_nobody_is_made_to_report_oftener_than_is_configured(cluster: Cluster) -> None:
    watching = Watch(cluster.scheduler, settings(interval_s=86_400.0), Inbox())
    for asked_s in (1.0, 3600.0, 1e9):
        watching._heed(wire.Reply(id=1, url="/x", next_s=asked_s))
        assert watching._message("running", None).next_s == 86_400.0


async def test_it_polls_by_itself_at_its_pace() -> None:
    async with quiet_scheduler() as scheduler:
        inbox = Inbox()
        watch(scheduler, inbox, interval_s=0.1)
        assert [(await inbox.next()).seq for _ in range(3)] == [0, 1, 2]


async def test_describe_says_where_it_reports_and_never_the_token(cluster: Cluster, data: Path) -> None:
    with_server = Watch(cluster.scheduler, settings(server="http://h:1", token="dst_secret"), Inbox())
    assert with_server.describe() == {"cluster": with_server.cluster, "server": "http://h:1", "spool": None}
    without = Watch(cluster.scheduler, settings(), Inbox())
    assert without.describe()["spool"] == str(data / "spool")
    shared = Watch(cluster.scheduler, settings(server="file:///shared"), Inbox()).describe()
    assert (shared["server"], shared["spool"]) == ("file:///shared", "/shared/spool")
    assert "secret" not in repr(with_server) + repr(with_server._settings)


async def test_with_no_server_messages_go_to_the_spool(data: Path) -> None:
    async with running() as cluster:
        install(cluster.scheduler, settings())
        await cluster.client.submit(inc, 1)
    messages = spooled(data)
    assert [message.seq for message in messages] == [0, 1]
    assert [message.phase for message in messages] == ["running", "closed"]
    assert messages[-1].totals.n_tasks == 1


async def test_the_workload_does_not_notice_a_server_that_is_not_there(data: Path) -> None:
    async with running() as cluster:
        install(cluster.scheduler, settings(server="http://127.0.0.1:1", token="dst_x"))
        assert await cluster.client.gather(cluster.client.map(inc, range(20))) == list(range(1, 21))


async def test_no_code_of_ours_is_called_by_a_transition(cluster: Cluster) -> None:
    """Only what polls runs: while tasks go through all their states, no function of daskscope is entered; but for the
    count of those that fail, and the sizing of the one event that Dask logs of a graph
    or of what a client gathers.

    Agents are off: they come once, and what they hear is log lines and never transitions. And so is who looks for
    workers, by a clock.
    """
    look = await look_at(cluster.scheduler, logs=None, profile=False, hardware=False)
    look.watch.readers._roster.close()
    entered: set[str] = set()
    sized: list[object] = []

    def trace(frame: Any, event: str, arg: Any) -> None:
        if frame.f_code is History.append.__code__ and event == "call":
            sized.append(frame.f_locals["event"][1]["action"])
        elif "plugin/daskscope" in frame.f_code.co_filename and not frame.f_code.co_filename.endswith("history.py"):
            entered.add(frame.f_code.co_qualname)

    sys.setprofile(trace)
    try:
        await cluster.client.gather(cluster.client.map(inc, range(5)))
        assert entered == set()
        await wait(cluster.client.submit(boom, 1))
    finally:
        sys.setprofile(None)
    assert entered == {"LongMemory.appendleft"}
    assert {*sized} <= {"update-graph", "gather"}
    assert len(sized) <= 3
    assert look().totals.n_tasks == 6

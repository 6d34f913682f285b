"""The last messages of a cluster: all that is left is in them, or counted, and closing comes to an end."""

import threading
from typing import Any

import pytest
from distributed import wait

from daskscope import watch as module
from daskscope import wire
from daskscope.collect import deaths, groups
from daskscope.transport import Outcome
from tests.plugin.rig import (
    Cluster,
    Inbox,
    group_rows,
    inc,
    quiet_scheduler,
    running,
    settings,
    until,
    watch,
)

pytestmark = pytest.mark.asyncio


async def test_closing_sends_a_last_message_with_all_that_is_left() -> None:
    inbox = Inbox()
    async with running() as cluster:
        watch(cluster.scheduler, inbox)
        await inbox.next()
        await wait(cluster.client.map(inc, range(3)))
    last = await inbox.next()
    assert (last.phase, last.reason, last.seq) == ("closed", "closed", 1)
    assert last.totals.n_tasks == 3
    assert [row["n_tasks"] for row in group_rows(last)] == [3]
    assert not [thread for thread in threading.enumerate() if thread.name == "daskscope-sender"]


async def test_closing_twice_sends_one_last_message(cluster: Cluster) -> None:
    inbox = Inbox()
    watching = watch(cluster.scheduler, inbox)
    await inbox.next()
    watching.teardown()
    watching.teardown()
    watching.poll()
    assert [wire.decode(body).phase for body in inbox.bodies] == ["running", "closed"]


@pytest.mark.parametrize(
    ("why", "told"),
    [
        ("failure-to-start-<class 'OSError'>", "failure-to-start-<class 'OSError'>"),
        ("signal-15", "closed"),
        ("", "closed"),
    ],
)
async def test_a_scheduler_that_failed_says_so(why: str, told: str) -> None:
    inbox = Inbox()
    async with quiet_scheduler() as scheduler:
        watch(scheduler, inbox)
        await inbox.next()
        await scheduler.close(reason=why)
    last = await inbox.next()
    assert (last.phase, last.reason) == ("closed", told)


async def test_a_close_by_idle_timeout_says_so() -> None:
    inbox = Inbox()
    scheduler = quiet_scheduler(idle_timeout="100 ms")
    async with scheduler:
        watch(scheduler, inbox)
        await scheduler.finished()
    messages = [wire.decode(body) for body in inbox.bodies]
    assert (messages[-1].phase, messages[-1].reason) == ("closed", "idle-timeout-exceeded")


async def test_a_close_by_hand_while_idle_is_no_idle_timeout() -> None:
    inbox = Inbox()
    async with quiet_scheduler(idle_timeout="1 hour") as scheduler:
        watch(scheduler, inbox)
        scheduler.check_idle()
        scheduler.check_idle()
        assert scheduler.idle_since
    assert wire.decode(inbox.bodies[-1]).reason == "closed"


async def test_closing_with_a_server_that_is_gone_costs_two_tries() -> None:
    tried: list[str] = []

    def gone(name: str) -> Outcome:
        tried.append(name)
        return Outcome("again", "ConnectError: refused")

    async with quiet_scheduler() as scheduler:
        watch(scheduler, Inbox(gone))
        await until(lambda: tried)
    assert scheduler.status.name == "closed"
    assert 2 <= len(tried) <= 3


async def test_closing_tells_all_groups_in_as_many_messages_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "SNAPSHOTS_PER_READ", 2)
    monkeypatch.setattr(groups, "SETTLED_PER_READ", 1)
    inbox = Inbox()
    async with running() as cluster:
        watching = watch(cluster.scheduler, inbox)
        await inbox.next()
        told = [cluster.client.submit(inc, n, key=f"told{n}") for n in range(4)]
        await wait(told)
        for _ in range(2):
            watching.poll()
        new = [cluster.client.submit(inc, n, key=f"new{n}") for n in range(5)]
        await wait(new)
    messages = [wire.decode(body) for body in inbox.bodies]
    assert [len(message.groups.no) for message in messages[1:3]] == [2, 2]
    closing = messages[3:]
    assert {message.phase for message in closing[:-1]} == {"running"}
    assert (closing[-1].phase, closing[-1].reason) == ("closed", "closed")
    assert [message.seq for message in messages] == list(range(len(messages)))
    rows = [row for message in closing for row in group_rows(message)]
    # Their worker left first, and took the results of all with it: the settled ones changed too.
    assert {row["name"] for row in rows} == {f"told{n}" for n in range(4)} | {f"new{n}" for n in range(5)}
    assert len(rows) == 9
    assert closing[-1].totals.n_tasks == 9


async def test_what_no_closing_message_takes_is_counted_in_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LAST_MESSAGES", 2)
    monkeypatch.setattr(groups, "SNAPSHOTS_PER_READ", 1)
    monkeypatch.setattr(deaths, "MAX_DEATHS", 1)
    inbox = Inbox()
    async with running() as cluster:
        watching = watch(cluster.scheduler, inbox)
        await inbox.next()
        await wait([cluster.client.submit(inc, n, key=f"g{n}") for n in range(7)])
        for n in range(9):
            cluster.scheduler.log_event("all", {"action": "remove-worker", "worker": f"tcp://10.0.0.{n}:1"})
        watching.teardown()
    closing = [wire.decode(body) for body in inbox.bodies][1:]
    assert [message.phase for message in closing] == ["running", "running", "closed"]
    assert sum(len(message.groups.no) for message in closing) == 3
    assert sum(len(message.deaths) for message in closing) == 3
    assert [message.lost for message in closing] == [{}, {}, {"groups": 4, "deaths": 6}]


async def test_closing_comes_to_an_end_when_the_groups_cannot_be_read(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "SNAPSHOTS_PER_READ", 1)
    inbox = Inbox()
    watching = watch(cluster.scheduler, inbox)
    await inbox.next()
    await wait([cluster.client.submit(inc, n, key=f"g{n}") for n in range(3)])
    watching.poll()
    assert watching.readers._groups.behind
    monkeypatch.setattr(groups, "look", lambda group: 1 / 0)
    watching.teardown()
    last = [wire.decode(body) for body in inbox.bodies][-1]
    assert (last.phase, last.lost) == ("closed", {"unreadable-groups": 2})


class Hurried:
    """A watch that has started, by a clock that goes on so much with each message that is made."""

    def __init__(self, cluster: Cluster, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, each_s: float) -> None:
        self.now_s, self.waited_s = 1e6, list[float]()
        self.watch = module.Watch(
            cluster.scheduler, settings(events=("mine",)), inbox, monotonic=lambda: self.now_s
        )  # fmt: skip
        self._fill, self._close, self._each_s = self.watch.readers.fill, self.watch.sender.close, each_s
        monkeypatch.setattr(self.watch.readers, "fill", self.fill)
        monkeypatch.setattr(self.watch.sender, "close", self.close)
        self.watch.start()

    def fill(self, *args: Any) -> None:
        self.now_s += self._each_s
        self._fill(*args)

    def close(self, timeout_s: float) -> None:
        self.waited_s.append(timeout_s)
        self._close(timeout_s)


@pytest.mark.parametrize("each_s", [0.0, 0.4, 1.6, 60.0])
async def test_a_large_backlog_is_told_until_it_is_late_and_the_rest_is_counted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, each_s: float
) -> None:
    inbox = Inbox()
    hurried = Hurried(cluster, inbox, monkeypatch, each_s)
    await inbox.next()
    began_s = hurried.now_s
    for n in range(20_000):
        cluster.scheduler.log_event("mine", {"n": n, "text": "word and more words " * 5})
    hurried.watch.teardown()
    spent_s = hurried.now_s - began_s
    [waits_s] = hurried.waited_s
    assert waits_s == max(module.END_S - spent_s, 0.0)
    hurried.watch.sender._thread.join(60)  # however slow this machine is
    messages = [wire.decode(body) for body in inbox.bodies][1:]
    last = messages[-1]
    assert [message.phase for message in messages] == ["running"] * (len(messages) - 1) + ["closed"]
    told = [event for message in messages for event in message.events if event.topic == "mine"]
    assert len(told) + last.lost.get("events", 0) == 20_000
    if each_s:
        # It stops once it is late: only the first may take longer than there is time for.
        assert spent_s - each_s < module.LAST_MESSAGES_S
        assert last.lost["events"]
        assert waits_s + spent_s <= max(module.END_S, each_s)
    else:
        assert not last.lost

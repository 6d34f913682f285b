"""The last messages of a cluster: all that is left is in them, or counted, and closing comes to an end."""

import threading

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

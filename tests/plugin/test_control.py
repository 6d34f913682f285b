"""Closing real schedulers: by Dask's own idle timeout, which is told and warned of, and because the server asks."""

import asyncio
import logging
import pickle
import time
import warnings
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

import dask.config
import pytest
from distributed import LocalCluster, Scheduler, wait
from distributed.core import Status

from daskscope import control, wire
from daskscope.control import ASKED, IDLE, Closer
from tests.plugin.rig import Cluster, inc, quiet_scheduler, running, settings, until

pytestmark = [pytest.mark.asyncio, pytest.mark.filterwarnings("ignore:This cluster:UserWarning")]

ASKING = wire.Reply(id=7, url="acme/analytics/clusters/7", wish=["identity", "close"])


class Clock:
    """Stands where Dask's own is when it is made, until it is moved."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.at = scheduler.time_started

    def __call__(self) -> float:
        return self.at


def said(scheduler: Any) -> list[str]:
    """The warnings that clients were sent."""
    return [pickle.loads(message["message"]) for _, message in scheduler.get_events("warn")]


@contextmanager
def told_to_the_user() -> Generator[list[str]]:
    """The texts of warnings in this process, which is the client's."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        texts: list[str] = []
        yield texts
        texts += [str(warning.message) for warning in caught if "This cluster" in str(warning.message)]


async def idle(cluster: Cluster) -> float:
    """When the scheduler began to be idle, once it has noticed."""
    await until(lambda: cluster.scheduler.check_idle())
    since_s = cluster.scheduler.idle_since
    assert since_s
    return since_s


async def test_dask_is_told_the_timeout_and_keeps_its_own() -> None:
    for own, given, in_force in ((None, 1200.0, 1200.0), ("1 h", 1200.0, 3600.0), ("1 h", None, 3600.0), (None,) * 3):
        async with quiet_scheduler(idle_timeout=own) as scheduler:
            closer = Closer(scheduler, settings(idle_timeout_s=given), Clock(scheduler))
            closer.start()
            assert scheduler.idle_timeout == in_force
            closer.close()
            assert scheduler.idle_timeout == in_force


async def test_an_idle_cluster_closes_after_its_user_was_warned() -> None:
    async with running() as cluster:
        closer = Closer(cluster.scheduler, settings(idle_timeout_s=1.0), time.time)
        with told_to_the_user() as texts:
            assert await cluster.client.submit(inc, 1) == 2
            closer.start()
            assert closer.reason is None
            await cluster.scheduler.finished()
        assert closer.reason == IDLE
        closer.close()
    (text,) = texts
    assert text.startswith("This cluster has had nothing to do for ")
    assert "clients connected: 1" in text
    assert "daskscope.analytics.idle.timeout: null" in text


async def test_a_warning_comes_once_for_each_stretch_of_idleness_and_says_what_is_held(cluster: Cluster) -> None:
    scheduler = cluster.scheduler
    closer = Closer(scheduler, settings(idle_timeout_s=600.0), Clock(scheduler))
    scheduler.idle_timeout = 600.0
    held = cluster.client.map(inc, range(3))
    await wait(held)
    since_s = await idle(cluster)
    closer.look(since_s + 500)
    assert said(scheduler) == []
    for at_s in (540, 550, 599):
        closer.look(since_s + at_s)
    (text,) = said(scheduler)
    assert "closes itself in 60.00 s" in text
    assert "Results held, which will be lost: 3 (84 B)." in text
    await cluster.client.submit(inc, 10)
    closer.look(since_s + 599.5)
    again_s = await idle(cluster)
    assert again_s > since_s
    closer.look(again_s + 540)
    assert len(said(scheduler)) == 2


@pytest.mark.parametrize(("timeout_s", "warned_at_s"), [(600.0, 525.0), (100.0, 37.5), (4.0, 1.5)])
async def test_the_warning_leaves_a_minute_or_half_the_timeout(
    cluster: Cluster, timeout_s: float, warned_at_s: float
) -> None:
    """One look earlier at most, so that the next one is not too late."""
    scheduler = cluster.scheduler
    closer = Closer(scheduler, settings(idle_timeout_s=timeout_s), Clock(scheduler))
    since_s = await idle(cluster)
    scheduler.idle_timeout = timeout_s
    closer.look(since_s + warned_at_s - 0.01)
    assert said(scheduler) == []
    closer.look(since_s + warned_at_s + 0.01)
    assert len(said(scheduler)) == 1


async def test_who_is_idle_for_long_already_is_warned_before_dask_closes_it(cluster: Cluster) -> None:
    """Dask is told so much more for this stretch of idleness: whoever takes that away then has taken it away."""
    scheduler, since_s = cluster.scheduler, await idle(cluster)
    now = Clock(scheduler)
    now.at = since_s + 7200
    closer = Closer(scheduler, settings(idle_timeout_s=600.0), now)
    closer.start()
    assert scheduler.idle_timeout == pytest.approx(7260)
    assert len(said(scheduler)) == 1
    closer.look(now.at + 59)
    assert scheduler.idle_timeout == pytest.approx(7260)
    assert len(said(scheduler)) == 1
    scheduler.idle_timeout = None
    await cluster.client.submit(inc, 1)
    closer.look(now.at + 70)
    assert scheduler.idle_timeout is None
    closer.close()


async def test_work_that_came_since_dask_looked_is_no_idleness(cluster: Cluster) -> None:
    scheduler, since_s = cluster.scheduler, await idle(cluster)
    scheduler.periodic_callbacks["idle-timeout"].stop()
    await cluster.client.submit(inc, 1)
    now = Clock(scheduler)
    now.at = since_s + 7200
    closer = Closer(scheduler, settings(idle_timeout_s=600.0), now)
    closer.start()
    assert (scheduler.idle_timeout, said(scheduler)) == (600, [])
    closer.close()


async def test_work_that_comes_after_that_warning_starts_the_time_anew(cluster: Cluster) -> None:
    scheduler, since_s = cluster.scheduler, await idle(cluster)
    now = Clock(scheduler)
    now.at = since_s + 7200
    closer = Closer(scheduler, settings(idle_timeout_s=600.0), now)
    scheduler.periodic_callbacks["idle-timeout"].stop()  # else it may look first, and take note by its own clock
    closer.start()
    assert scheduler.idle_timeout == pytest.approx(7260)
    await cluster.client.submit(inc, 1)
    closer.look(now.at + 1)
    assert scheduler.idle_timeout == 600
    assert len(said(scheduler)) == 1
    closer.close()


async def test_a_timeout_that_the_user_took_away_stays_away(cluster: Cluster) -> None:
    closer = Closer(cluster.scheduler, settings(idle_timeout_s=600.0), Clock(cluster.scheduler))
    closer.start()
    cluster.scheduler.idle_timeout = None
    closer.look(await idle(cluster) + 3600)
    assert cluster.scheduler.idle_timeout is None
    assert said(cluster.scheduler) == []
    closer.close()


async def test_without_the_setting_dask_s_own_timeout_is_not_spoken_of() -> None:
    async with running(idle_timeout="10 m") as cluster:
        closer = Closer(cluster.scheduler, settings(), Clock(cluster.scheduler))
        closer.start()
        closer.look(await idle(cluster) + 599)
        assert said(cluster.scheduler) == []
        closer.close()


def policy(timeout_s: float | None) -> wire.Reply:
    return wire.Reply(id=7, url="acme/analytics/clusters/7", idle_timeout_s=timeout_s)


async def heeds(closer: Closer, now: Clock, timeout_s: float | None, at_s: float) -> None:
    """A reply with the account's policy, and the look after it."""
    now.at = at_s
    await asyncio.to_thread(closer.heed, policy(timeout_s))  # as the sender's thread does
    closer.look(at_s)


async def test_the_account_s_policy_closes_an_idle_cluster_whose_user_is_told_whose_it_is() -> None:
    async with running() as cluster:
        closer = Closer(cluster.scheduler, settings(), time.time)
        closer.start()
        with told_to_the_user() as texts:
            assert await cluster.client.submit(inc, 1) == 2
            await asyncio.to_thread(closer.heed, policy(1.0))  # the least that a real reply says is a minute
            await cluster.scheduler.finished()
        assert closer.reason == IDLE
        closer.close()
    (text,) = texts
    assert "(idle timeout, by the account's policy: 1.00 s; clients connected: 1)" in text
    assert "or start it with a daskscope.analytics.idle.timeout of its own" in text


async def test_a_policy_is_followed_when_it_changes_and_when_it_is_withdrawn(cluster: Cluster) -> None:
    scheduler, since_s = cluster.scheduler, await idle(cluster)
    now = Clock(scheduler)
    closer = Closer(scheduler, settings(), now)
    closer.start()
    for wanted, in_force in ((600.0, 600.0), (900.0, 900.0), (None, None), (300.0, 300.0)):
        await heeds(closer, now, wanted, since_s + 1)
        assert scheduler.idle_timeout == in_force
    assert said(scheduler) == []
    await heeds(closer, now, 300.0, since_s + 290)
    assert len(said(scheduler)) == 1
    await heeds(closer, now, None, since_s + 291)
    closer.look(since_s + 7200)
    assert (scheduler.idle_timeout, len(said(scheduler))) == (None, 1)
    closer.close()


async def test_a_policy_that_comes_late_warns_first_and_a_longer_one_takes_that_back(cluster: Cluster) -> None:
    scheduler, since_s = cluster.scheduler, await idle(cluster)
    now = Clock(scheduler)
    closer = Closer(scheduler, settings(), now)
    await heeds(closer, now, 600.0, since_s + 3600)
    assert scheduler.idle_timeout == pytest.approx(3660)
    assert "closes itself in 60.00 s" in said(scheduler)[0]
    await heeds(closer, now, 7200.0, since_s + 3620)
    assert (scheduler.idle_timeout, len(said(scheduler))) == (7200, 1)
    closer.look(since_s + 7150)
    assert len(said(scheduler)) == 2, "of the new one it is warned anew"
    closer.close()


@pytest.mark.parametrize(
    ("own", "changes", "in_force"),
    [("1 h", {}, 3600.0), (None, {"idle_timeout_s": 1200.0}, 1200.0), (None, {"remote_close": False}, None)],
)
async def test_whoever_said_something_of_their_own_is_not_under_the_policy(
    own: str | None, changes: dict[str, Any], in_force: float | None
) -> None:
    async with running(idle_timeout=own) as cluster:
        since_s = await idle(cluster)
        now = Clock(cluster.scheduler)
        closer = Closer(cluster.scheduler, settings(**changes), now)
        closer.start()
        for wanted in (600.0, None, 700.0):
            await heeds(closer, now, wanted, since_s + 1)
            assert cluster.scheduler.idle_timeout == in_force
        assert said(cluster.scheduler) == []
        closer.close()


@pytest.mark.parametrize("wish", [None, 7200.0])
async def test_what_the_user_made_of_a_policy_stays(cluster: Cluster, wish: float | None) -> None:
    scheduler, since_s = cluster.scheduler, await idle(cluster)
    now = Clock(scheduler)
    closer = Closer(scheduler, settings(), now)
    await heeds(closer, now, 600.0, since_s + 1)
    scheduler.idle_timeout = wish
    for wanted in (600.0, 700.0, None):
        await heeds(closer, now, wanted, since_s + 2)
        assert scheduler.idle_timeout == wish
    closer.look(since_s + 7190)
    assert ["policy" in text for text in said(scheduler)] == ([] if wish is None else [False])
    closer.close()


async def test_it_closes_when_the_server_asks_and_the_user_is_told() -> None:
    async with running() as cluster:
        closer = Closer(cluster.scheduler, settings(server="http://127.0.0.1:1"), Clock(cluster.scheduler))
        closer.start()
        with told_to_the_user() as texts:
            assert await cluster.client.submit(inc, 1) == 2  # by then it has subscribed to warnings
            for _ in range(3):
                await asyncio.to_thread(closer.heed, ASKING)  # as the sender's thread does
            await cluster.scheduler.finished()
        assert closer.reason == ASKED
        assert len(said(cluster.scheduler)) == 1
        closer.close()
    assert texts == [
        "This cluster closes now: somebody asked for it on the server. Who and why is on "
        "http://127.0.0.1:1/acme/analytics/clusters/7."
    ]


async def test_a_reply_that_asks_for_nothing_closes_nothing(cluster: Cluster) -> None:
    closer = Closer(cluster.scheduler, settings(), Clock(cluster.scheduler))
    closer.heed(wire.Reply(id=7, url="x", wish=["identity"]))
    closer.look(0.0)
    assert await cluster.client.submit(inc, 1) == 2
    assert closer.reason is None
    assert said(cluster.scheduler) == []


async def test_who_lets_nobody_close_it_stays(cluster: Cluster) -> None:
    closer = Closer(cluster.scheduler, settings(remote_close=False), Clock(cluster.scheduler))
    await asyncio.to_thread(closer.heed, ASKING)
    closer.look(0.0)
    assert await cluster.client.submit(inc, 1) == 2
    assert (closer.reason, said(cluster.scheduler)) == (None, [])


async def test_a_warning_that_fails_keeps_no_cluster_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(topic: str, message: object) -> None:
        raise RuntimeError("no events today")

    async with running() as cluster:
        monkeypatch.setattr(cluster.scheduler, "log_event", fails)
        closer = Closer(cluster.scheduler, settings(), Clock(cluster.scheduler))
        with caplog.at_level(logging.WARNING, "distributed.daskscope"):
            closer.heed(ASKING)
            monkeypatch.setattr(control, "FAREWELL_S", 0.0)
            await cluster.scheduler.finished()
        assert closer.reason == ASKED
    assert "could not look after closing: RuntimeError: no events today" in caplog.text


async def test_a_close_that_fails_is_said_and_raises_nowhere(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(**_: Any) -> None:
        raise RuntimeError("not now")

    monkeypatch.setattr(control, "FAREWELL_S", 0.0)
    closer = Closer(cluster.scheduler, settings(), Clock(cluster.scheduler))
    with monkeypatch.context() as patch, told_to_the_user():
        patch.setattr(cluster.scheduler, "close", fails)
        closer.heed(ASKING)
        await until(lambda: "was asked to close this cluster and failed: RuntimeError: not now" in caplog.text)
    assert await cluster.client.submit(inc, 1) == 2


async def test_a_scheduler_whose_idleness_cannot_be_read_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Odd:
        def __init__(self, scheduler: Scheduler) -> None:
            self.loop, self.time_started = scheduler.loop, 0.0

    async with quiet_scheduler() as scheduler:
        odd: Any = Odd(scheduler)
        Closer(odd, settings(idle_timeout_s=60.0), Clock(odd)).start()
    assert "cannot close this cluster when idle: AttributeError" in caplog.text


async def test_a_local_cluster_loses_its_scheduler_and_its_workers() -> None:
    """As with Dask's own idle timeout: the cluster's object is not asked, and finds out when it is used next."""
    with ExitStack() as stack:
        async with LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0",
            asynchronous=True,
        ) as local:  # fmt: skip
            scheduler: Any = local.scheduler
            closer = Closer(scheduler, settings(), Clock(scheduler))
            closer.heed(ASKING)
            await scheduler.finished()
            await until(lambda: all(worker.status == Status.closed for worker in local.workers.values()))
            # Its own close tries to reach the scheduler that is gone, for so long.
            stack.enter_context(dask.config.set({"distributed.comm.timeouts.connect": "100ms"}))
    assert closer.reason == ASKED

"""The budget in a real scheduler: a reader that costs too much makes messages rarer, then briefer, till it is cheap."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from daskscope import wire
from daskscope.collect.tasks import TASK_S
from daskscope.collect.topics import SIZE_S
from daskscope.readers import DETAIL
from daskscope.watch import Watch
from tests.plugin.rig import Cluster, Inbox, inc, settings

pytestmark = pytest.mark.asyncio

INTERVAL_S = 10.0
DEAR_S = 0.5
"""Of the event loop, for a look at events: too much even once a minute."""


class Driven:
    """A watch whose clocks stand still but for what the test says, and the timer's rounds."""

    def __init__(self, cluster: Cluster, **changes: Any) -> None:
        self.now_s, self.cpu_s, self.cost_s = 1e6, 50.0, 0.0
        self.inbox = Inbox()
        self.n_clock_reads = 0
        self.watch = Watch(
            cluster.scheduler,
            settings(**{"interval_s": INTERVAL_S, "events": ("*",), **changes}),
            self.inbox,
            monotonic=lambda: self.now_s,
            cpu=self._cpu,
        )
        events: Any = self.watch.readers._events
        read = events.read

        def dear() -> Any:
            self.cpu_s += self.cost_s
            return read()

        events.read = dear

    def _cpu(self) -> float:
        self.n_clock_reads += 1
        return self.cpu_s

    async def next(self) -> wire.Message:
        """One round of the timer; the next one is when that says."""
        self.watch.poll()
        message = await self.inbox.next()
        pace_s = self.watch._timer.callback_time / 1e3
        assert message.next_s == pace_s, "a lengthened interval is told before it begins: no message is missed"
        self.now_s += pace_s
        return message

    async def until(self, pace_s: float, detail: int) -> list[tuple[float, int]]:
        """All pairs of pace and level that were told on the way there."""
        told: list[tuple[float, int]] = []
        while not told or told[-1] != (pace_s, detail):
            message = await self.next()
            state = (message.next_s, message.itself.detail)
            if not told or state != told[-1]:
                told.append(state)
            assert len(told) < 30
        return told


@pytest_asyncio.fixture
async def driven(cluster: Cluster) -> AsyncIterator[Driven]:
    driven = Driven(cluster)
    driven.watch.sender.start()
    yield driven
    driven.watch.teardown()


async def test_a_dear_reader_makes_messages_rarer_then_briefer_until_it_is_cheap_again(driven: Driven) -> None:
    driven.cost_s = DEAR_S
    n_levels = DETAIL.index("events") + 1
    told = await driven.until(60.0, n_levels)
    assert told == [(10.0, 0), (60.0, 0), *((60.0, level) for level in range(1, n_levels + 1))]
    driven.cost_s = 0.0
    told = await driven.until(10.0, 0)
    assert told == [*((60.0, level) for level in range(n_levels, -1, -1)), (40.0, 0), (20.0, 0), (10.0, 0)]


async def test_a_message_without_detail_has_what_is_always_told(cluster: Cluster, driven: Driven) -> None:
    first = await driven.next()
    assert first.workers.address
    driven.cost_s = DEAR_S
    await driven.until(60.0, DETAIL.index("workers") + 1)
    assert await cluster.client.gather(cluster.client.map(inc, range(3))) == [1, 2, 3]
    brief = await driven.next()
    assert (brief.workers, brief.totals.n_workers, brief.totals.n_tasks) == (wire.Workers(), 1, 3)
    assert brief.groups.no == [0]
    assert [computation.no for computation in brief.computations] == [0]
    assert brief.itself.detail >= DETAIL.index("workers") + 1


async def test_the_last_message_comes_at_any_level(cluster: Cluster, driven: Driven) -> None:
    driven.cost_s = DEAR_S
    await driven.until(60.0, len(DETAIL))
    driven.watch.teardown()
    last = await driven.inbox.next()
    assert (last.phase, last.reason, last.itself.detail) == ("closed", "closed", len(DETAIL))


async def test_within_its_budget_and_without_one_nothing_changes(cluster: Cluster) -> None:
    for cost_s, budget_pct in ((0.001, 1.0), (DEAR_S, None)):
        driven = Driven(cluster, budget_pct=budget_pct)
        driven.watch.sender.start()
        driven.cost_s = cost_s
        assert {(m.next_s, m.itself.detail) for m in [await driven.next() for _ in range(40)]} == {(10.0, 0)}
        driven.watch.teardown()


async def test_the_slower_of_both_paces_holds(driven: Driven) -> None:
    driven.cost_s = 0.04  # 0.13 s as it counts: once in 20 s is within the budget
    assert await driven.until(20.0, 0) == [(10.0, 0), (20.0, 0)]
    for asked_s, pace_s in ((45.0, 45.0), (5.0, 20.0), (None, 20.0)):
        driven.watch._heed(wire.Reply(id=1, url="/x", next_s=asked_s))
        assert (await driven.next()).next_s == pace_s


async def test_a_message_asks_for_cpu_time_twice(driven: Driven) -> None:
    """That is a call into the kernel, and dear on some virtual machines."""
    await driven.next()
    before = driven.n_clock_reads
    await driven.next()
    assert driven.n_clock_reads - before == 2


async def test_what_the_sender_takes_is_part_of_it(cluster: Cluster) -> None:
    driven = Driven(cluster)
    paces: list[float] = []
    for sender_s in [0.05] * 20 + [0.15] * 20:
        paces.append(driven.watch._message("running", None).next_s)
        driven.watch.sender.cpu_s += sender_s
        driven.now_s += paces[-1]
    assert (set(paces[:20]), paces[-1]) == ({INTERVAL_S}, 2 * INTERVAL_S)


async def test_all_of_a_visit_is_measured(cluster: Cluster) -> None:
    """What is forgotten, and who looks after idleness, too."""
    driven = Driven(cluster)
    driven.watch.sender.start()
    look: Any = driven.watch._closer
    idleness, forget = look.look, driven.watch._forget

    def dear(step: Any) -> Any:
        def run(*given: Any) -> None:
            driven.cpu_s += 2.0
            step(*given)

        return run

    look.look, driven.watch._forget = dear(idleness), dear(forget)
    message = await driven.next()
    assert (message.itself.slowest_us, message.itself.cpu_us // 4_000_000) == (4_000_000, 1)
    driven.watch.teardown()


async def test_what_is_done_between_visits_is_charged(cluster: Cluster) -> None:
    driven = Driven(cluster, tasks=True, events=("mine",), logs=None, profile=False, hardware=False)
    driven.watch.readers.start()
    driven.watch.sender.start()
    await driven.next()
    before_s = driven.watch.readers.charged_s()
    await cluster.client.gather(cluster.client.map(inc, range(100)))
    for n in range(200):
        cluster.scheduler.log_event("mine", n)
    message = await driven.next()
    assert len(message.tasks.worker) == 100
    charged_s = driven.watch.readers.charged_s()
    assert charged_s - before_s >= 100 * TASK_S + 200 * SIZE_S
    assert message.itself.cpu_us >= round(charged_s * 1e6)
    driven.watch.readers.close()
    driven.watch.teardown()


async def test_charges_alone_make_messages_rarer(cluster: Cluster) -> None:
    driven = Driven(cluster, tasks=True)
    driven.watch.sender.start()
    reader: Any = driven.watch.readers._tasks
    for _ in range(20):
        reader._n_noted += round(0.2 * INTERVAL_S / 10 / TASK_S)  # 2 % of a core
        await driven.next()
    assert (await driven.next()).next_s > INTERVAL_S
    driven.watch.teardown()

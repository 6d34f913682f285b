"""A process's lines on a real event loop: by one way, once, and exact in number."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from daskscope.agent import logs
from daskscope.agent.lines import BURST
from daskscope.agent.logs import Listener, Route, join, listeners
from tests.plugin.rig import until

pytestmark = pytest.mark.asyncio

log = logging.getLogger("mine")


class Way:
    """A route that keeps what is posted."""

    def __init__(self, role: str = "worker", address: str = "tcp://a") -> None:
        self.payloads: list[dict[str, Any]] = []
        self.free = self.open = True
        self.route = Route(role, lambda: address, self.post, asyncio.get_running_loop(), lambda: self.free)

    def post(self, payload: dict[str, Any]) -> None:
        log.warning("a word about sending")
        if not self.open:
            raise OSError("closed")
        self.payloads.append(payload)

    @property
    def texts(self) -> list[str]:
        return [line[3] for payload in self.payloads for line in payload["lines"]]

    @property
    def n_dropped(self) -> int:
        return sum(payload["dropped"] + sum(line[4] for line in payload["lines"]) for payload in self.payloads)


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    factory, last, before = logging.getLogRecordFactory(), logging.lastResort, set(listeners())
    yield
    assert logging.getLogRecordFactory() is factory
    assert logging.lastResort is last
    assert set(listeners()) == before


@contextlib.contextmanager
def joined(way: Way, level: int = logging.WARNING, earlier: list[logging.LogRecord] | None = None
           ) -> Generator[Listener]:  # fmt: skip
    listener = join("cluster", level, way.route, earlier or [])
    try:
        yield listener
    finally:
        listener.leave(way.route)


async def test_a_warning_goes_with_the_next_turn_of_the_loop() -> None:
    way = Way()
    with joined(way):
        log.warning("one")
        log.error("two")
        assert way.payloads == [], "nothing is sent in the thread that logs"
        await asyncio.sleep(0)
        assert way.texts == ["one", "two"]
    (payload,) = way.payloads
    assert {k: v for k, v in payload.items() if k != "lines"} == {
        "kind": "logs", "from": "worker", "worker": "tcp://a", "dropped": 0}  # fmt: skip
    assert [line[1:3] for line in payload["lines"]] == [[30, "mine"], [40, "mine"]]


async def test_lower_levels_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    way = Way()
    asked: list[float] = []
    monkeypatch.setattr(way.route.loop, "call_later", lambda delay_s, call: asked.append(delay_s))
    monkeypatch.setattr(log, "level", logging.INFO)
    with joined(way, logging.INFO):
        for n in range(10):
            log.info("%d", n)
            await asyncio.sleep(0)
        assert (way.payloads, asked) == ([], [logs.BATCH_S])
        log.warning("now")
        await asyncio.sleep(0)
        assert way.texts == [*map(str, range(10)), "now"]


async def test_in_a_storm_one_goes_at_once_and_others_together_the_longer_the_more_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    way = Way()
    asked: list[float] = []
    now_s = 1_000.0
    loop = way.route.loop
    monkeypatch.setattr(loop, "time", lambda: now_s)
    monkeypatch.setattr(loop, "call_later", lambda delay_s, call: asked.append(delay_s))
    with joined(way) as listener:
        for n in range(20):
            log.warning("%d", n)
            await asyncio.sleep(0)
        assert way.texts == ["0"]
        assert asked == [logs.PAUSE_S], "asked for once"
        listener.flush()
        assert way.texts == [*map(str, range(20))]
        for pause_s in (0.5, 1.0, 1.0):
            listener.lose({"lines": [], "dropped": 7})
            log.warning("next")
            await asyncio.sleep(0)
            asked.clear()
            listener.flush()
            log.warning("more")
            await asyncio.sleep(0)
            assert asked == [pause_s], "some were dropped: it takes longer"
        asked.clear()
        listener.flush()
        log.warning("calm")
        await asyncio.sleep(0)
        assert asked == [logs.PAUSE_S]
        listener.flush()
        now_s += logs.PAUSE_S
        log.warning("at once again")
        await asyncio.sleep(0)
        assert way.texts[-1] == "at once again"
    assert max(len(payload["lines"]) for payload in way.payloads) == 19


async def test_lines_are_dated_by_the_scheduler_s_clock() -> None:
    way = Way()
    way.route.delay_s = lambda: -3600.0
    with joined(way):
        before_ms = time.time() * 1e3
        log.warning("from an hour ahead")
        after_ms = time.time() * 1e3
    ((at_ms, *_),) = way.payloads[0]["lines"]
    assert before_ms - 1 <= at_ms + 3_600_000 <= after_ms + 1


async def test_a_clock_that_cannot_be_told_loses_a_line_and_says_so() -> None:
    way = Way()

    def fail() -> float:
        raise AttributeError("scheduler_delay")

    way.route.delay_s = fail
    with joined(way) as listener:
        log.warning("lost")
        listener.flush()
        way.route.delay_s = lambda: 0.0
        log.warning("next")
        listener.flush()
    assert (way.texts, way.n_dropped) == (["next"], 1)


async def test_lines_come_from_any_thread() -> None:
    way = Way()
    with joined(way):
        await asyncio.to_thread(log.warning, "from a thread")
        await until(lambda: way.texts)
    assert way.texts == ["from a thread"]


async def test_a_burst_is_bounded_and_exact_though_no_line_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "BATCH_S", 0.0)
    way = Way()
    with joined(way):
        for n in range(5_000):
            log.warning("%d", n)
        await until(lambda: len(way.texts) + way.n_dropped == 5_000)
    assert BURST <= len(way.texts) < 5_000
    assert max(len(payload["lines"]) for payload in way.payloads) <= 200


async def test_what_dask_kept_of_the_time_before_goes_once() -> None:
    early = logging.LogRecord("distributed.worker", logging.WARNING, "", 1, "early", (), None)
    early.created -= 1.0
    low = logging.LogRecord("distributed.worker", logging.INFO, "", 1, "low", (), None)
    low.created -= 1.0
    first, second = Way(), Way()
    with joined(first, earlier=[early, low]), joined(second, earlier=[early]):
        log.warning("now")
        await asyncio.sleep(0)
    assert first.texts == ["early", "now"]
    assert second.texts == []


async def test_of_several_agents_in_a_process_one_sends_and_names_no_worker() -> None:
    first, second = Way("nanny", "tcp://a"), Way("nanny", "tcp://b")
    with joined(second):
        with joined(first):
            log.warning("from either")
            await asyncio.sleep(0)
            assert [payload["worker"] for payload in first.payloads + second.payloads] == [""]
        log.warning("from the one that is left")
        await asyncio.sleep(0)
    assert first.texts + second.texts == ["from either", "from the one that is left"]
    assert second.payloads[-1]["worker"] == "tcp://b"


async def test_a_way_that_is_not_free_is_waited_for() -> None:
    way = Way("nanny")
    with joined(way) as listener:
        way.free = False
        log.warning("one")
        await asyncio.sleep(0)
        assert way.payloads == []
        log.warning("two")
        way.free = True
        listener.flush()
        assert way.texts == ["one", "two"]


async def test_lines_that_could_not_be_sent_are_counted_with_the_next() -> None:
    way = Way()
    with joined(way):
        way.open = False
        log.warning("one")
        log.warning("two")
        await asyncio.sleep(0)
        way.open = True
        log.warning("three")
        await asyncio.sleep(0)
    assert (way.texts, way.n_dropped) == (["three"], 2)


async def test_a_loop_that_is_closed_stops_nobody() -> None:
    way = Way()
    way.route.loop = asyncio.new_event_loop()
    way.route.loop.close()
    with joined(way):
        log.warning("one")
        log.warning("two")
    assert (way.texts, way.n_dropped) == (["one", "two"], 0), "sent when the agent left"


async def test_a_listener_that_came_along_with_a_fork_is_none() -> None:
    class Parents:
        pid = os.getpid() + 1

    listeners()["cluster"] = Parents()  # type: ignore[assignment]
    way = Way()
    with joined(way):
        log.warning("mine alone")
        await asyncio.sleep(0)
    assert way.texts == ["mine alone"]

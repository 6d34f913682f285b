"""Lines at the scheduler: its own, and what agents sent; bounded, numbered, and exact in what is missing."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from daskscope import wire
from daskscope.agent.logs import listeners
from daskscope.collect import logs as module
from daskscope.collect.logs import MAX_LINES, LogReader
from tests.plugin.rig import Cluster, until

pytestmark = pytest.mark.asyncio

log = logging.getLogger("mine")


def reader(cluster: Cluster, level: int | None = logging.WARNING) -> LogReader:
    made = LogReader(cluster.scheduler, level)
    made.start()
    return made


def payload(*lines: Any, dropped: Any = 0, role: Any = "worker") -> dict[str, Any]:
    return {"kind": "logs", "from": role, "worker": "ignored", "lines": list(lines), "dropped": dropped}


def line(text: str = "text", *, at_ms: Any = 1_700_000_000_000, level: Any = 30, logger: Any = "mine",
         dropped: Any = 0) -> tuple[Any, ...]:  # fmt: skip
    return at_ms, level, logger, text, dropped


def rows(found: wire.Logs) -> list[tuple[Any, ...]]:
    assert wire.decode(wire.encode(message(found))).logs == found
    return list(zip(found.no, found.role, found.worker, found.level, found.text, found.dropped, strict=True))


def message(found: wire.Logs) -> wire.Message:
    return wire.Message(v=1, cluster="0" * 32, boot="0" * 24, seq=0, made_at_ms=0, uptime_us=0, next_s=1.0, logs=found)


async def test_the_scheduler_s_own_lines_from_the_level_on(cluster: Cluster) -> None:
    found = reader(cluster)
    log.warning("one %s", "two")
    log.error("three")
    logging.getLogger("distributed.daskscope").warning("our own")
    assert rows(found.read()) == [(0, "scheduler", None, 30, "one two", 0), (1, "scheduler", None, 40, "three", 0)]
    assert rows(found.read()) == []
    found.close()
    log.warning("after")
    assert rows(found.read()) == []
    assert not listeners()


async def test_lines_from_before_the_watch_came(cluster: Cluster) -> None:
    logging.getLogger("distributed.scheduler").warning("before the watch")
    found = reader(cluster)
    assert [row[4] for row in rows(found.read())] == ["before the watch"]
    found.close()


async def test_without_a_level_nothing_is_touched_and_nothing_taken(cluster: Cluster) -> None:
    factory, last = logging.getLogRecordFactory(), logging.lastResort
    found = reader(cluster, None)
    assert logging.getLogRecordFactory() is factory
    assert logging.lastResort is last
    log.warning("unheard")
    found.take("tcp://a", payload(line()))
    assert rows(found.read()) == []
    found.close()


async def test_lines_of_workers_and_nannies(cluster: Cluster) -> None:
    found = reader(cluster)
    found.take("tcp://a", payload(line("a"), list(line("b"))))
    found.take("tcp://a", payload(line("c", level=50), role="nanny"))
    found.take("", payload(line("d"), role="nanny"))
    assert rows(found.read()) == [
        (0, "worker", "tcp://a", 30, "a", 0),
        (1, "worker", "tcp://a", 30, "b", 0),
        (2, "nanny", "tcp://a", 50, "c", 0),
        (3, "nanny", None, 30, "d", 0),
    ]
    assert not found.lost
    found.close()


async def test_what_workers_dropped_is_counted_and_told_with_the_next_line_of_the_same(cluster: Cluster) -> None:
    found = reader(cluster)
    found.take("tcp://a", payload(line("a", dropped=3), dropped=4))
    found.take("tcp://b", payload(line("b")))
    found.take("tcp://a", payload(line("c"), line("d", dropped=1)))
    assert [(row[4], row[5]) for row in rows(found.read())] == [("a", 7), ("b", 0), ("c", 0), ("d", 1)]
    assert found.lost["log-lines"] == 8
    found.take("tcp://a", payload(dropped=2))
    assert rows(found.read()) == []
    found.take("tcp://a", payload(line("e")))
    assert rows(found.read())[0][5] == 2
    assert found.lost["log-lines"] == 10
    found.close()


async def test_a_burst_at_the_scheduler_is_bounded_and_exact(cluster: Cluster) -> None:
    found = reader(cluster)
    for n in range(5_000):
        log.warning("%d", n)
    taken = rows(found.read())
    assert 200 <= len(taken) < 5_000
    assert len(taken) + found.lost["log-lines"] == 5_000
    found.close()


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "text",
        (),
        line()[:4],
        line(at_ms=-1),
        line(at_ms=253_402_300_800_000),
        line(at_ms=1.5),
        line(at_ms=True),
        line(at_ms="now"),
        line(level=-1),
        line(level="WARNING"),
        line(level=1 << 40),
        line(logger=None),
        line(text=b"bytes"),  # type: ignore[arg-type]
        line(dropped=-1),
        line(dropped=1 << 62),
        line(dropped=None),
    ],
)
async def test_what_is_no_line_is_left_out_and_counted_and_the_others_go(cluster: Cluster, bad: Any) -> None:
    found = reader(cluster)
    found.take("tcp://a", payload(line("before"), bad, line("after")))
    assert [(row[4], row[5]) for row in rows(found.read())] == [("before", 1), ("after", 0)]
    assert found.lost == {"unreadable-log-lines": 1}
    found.close()


@pytest.mark.parametrize("bad", [payload(role="client"), payload(role=["worker"]), {"kind": "logs"}])
async def test_what_is_no_payload_of_lines_is_refused(cluster: Cluster, bad: Any) -> None:
    found = reader(cluster)
    with pytest.raises((ValueError, KeyError)):
        found.take("tcp://a", bad)
    found.close()


@pytest.mark.parametrize("bad", [None, -1, 1 << 62, "7", True])
async def test_a_count_that_is_none_is_not_believed(cluster: Cluster, bad: Any) -> None:
    found = reader(cluster)
    found.take("tcp://a", payload(line("kept"), dropped=bad))
    assert [row[5] for row in rows(found.read())] == [0]
    found.close()


async def test_more_lines_than_a_message_holds_wait_in_order(cluster: Cluster) -> None:
    found = reader(cluster)
    found.take("tcp://a", payload(*(line(str(n)) for n in range(MAX_LINES + 5))))
    first = rows(found.read())
    assert found.behind
    rest = rows(found.read())
    assert not found.behind
    assert [row[0] for row in first + rest] == list(range(MAX_LINES + 5))
    assert [row[4] for row in rest] == [str(n) for n in range(MAX_LINES, MAX_LINES + 5)]
    found.take("tcp://a", payload(*(line("x" * 10_000) for _ in range(100))))
    first = rows(found.read())
    assert sum(len(row[4]) for row in first) < module.MAX_CHARACTERS + 10_000
    assert len(first) + len(rows(found.read())) + len(rows(found.read())) + len(rows(found.read())) == 100
    assert found._n_characters == 0
    found.close()


@pytest.mark.parametrize(("bound", "text"), [("MAX_WAITING", "x"), ("MAX_WAITING_CHARACTERS", "x" * 100)])
async def test_beyond_what_is_held_the_oldest_give_way_and_are_counted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, bound: str, text: str
) -> None:
    monkeypatch.setattr(module, bound, 10 if bound == "MAX_WAITING" else 1_000)
    found = reader(cluster)
    found.take("tcp://a", payload(*(line(text, dropped=1) for _ in range(25))))
    taken = rows(found.read())
    assert len(taken) == 10
    assert found.lost["log-lines"] == 15 + 25
    assert sum(row[5] for row in taken) == 40, "each is told with a line that went"
    found.close()


async def test_how_many_processes_are_remembered_is_bounded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PROCESSES", 5)
    found = reader(cluster)
    for n in range(20):
        found.take(f"tcp://{n}", payload(dropped=1))
    assert len(found._unsaid) == 5
    assert found.lost["log-lines"] == 20
    found.close()


async def test_a_nanny_s_lines_are_dated_by_what_is_known_of_its_worker_s_clock(cluster: Cluster) -> None:
    found = reader(cluster)
    ((address, state),) = cluster.scheduler.workers.items()
    state.time_delay = -3600.0
    at_ms = 1_700_000_000_000

    def said() -> int:
        found.take(address, payload(line(at_ms=at_ms), role="nanny"))
        return found.read().at_ms[0]

    assert said() == at_ms - 3_600_000
    await cluster.workers[0].close()
    await until(lambda: address not in cluster.scheduler.workers)
    assert said() == at_ms - 3_600_000, "it tells of its worker's end after that"
    found.take(address, payload(line(at_ms=at_ms)))
    found.take("tcp://never-seen", payload(line(at_ms=at_ms), role="nanny"))
    found.take(address, payload(line(at_ms=5), line(at_ms=1.5), role="nanny"))
    assert found.read().at_ms == [at_ms, at_ms, 0]
    assert found.lost == {"unreadable-log-lines": 1}
    found.close()

"""Rows per task of a real scheduler, beside what was run."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from distributed import Scheduler, wait
from distributed.diagnostics.task_stream import TaskStreamPlugin

from daskscope import wire
from daskscope.collect import tasks as module
from daskscope.collect.groups import GroupReader
from daskscope.collect.tasks import TaskReader
from tests.plugin.rig import Cluster, boom, inc, running

pytestmark = pytest.mark.asyncio


class Rows:
    """A reader at work; each call is what one more interval would send, a dict a row."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.groups = GroupReader(scheduler)
        self.reader = TaskReader(scheduler, self.groups)
        self.reader.start()

    def __call__(self) -> list[dict[str, Any]]:
        self.groups.track_others(self.groups.n_groups)
        told = self.reader.read()
        self.groups.read()
        message = wire.Message(v=1, cluster="c" * 32, boot="b" * 24, seq=0, made_at_ms=0, uptime_us=0, next_s=1.0)
        message.tasks = told
        assert wire.decode(wire.encode(message)) == message, "what is made is of the format"
        columns = zip(told.group, told.worker, told.start_ms, told.duration_us, told.nbytes, told.erred, strict=True)
        return [
            {"no": told.first_no + n, "group": group, "worker": told.addresses[worker],
             "start_ms": told.from_ms + start, "us": us, "nbytes": nbytes, "erred": erred, "weight": told.weight}
            for n, (group, worker, start, us, nbytes, erred) in enumerate(columns)
        ]  # fmt: skip


async def test_each_task_has_a_row_as_dasks_own_task_stream_has_it() -> None:
    async with running(3) as cluster:
        stream = TaskStreamPlugin(cluster.scheduler)
        cluster.scheduler.add_plugin(stream)
        look = Rows(cluster.scheduler)
        good = cluster.client.map(inc, range(50), key="good")
        bad = cluster.client.map(boom, range(5), key="bad")
        await wait(good + bad)
        rows = look()
        truth = [
            (row["worker"], round(span["start"] * 1e3), span["stop"] - span["start"], row["status"] == "error")
            for row in stream.buffer
            for span in row["startstops"]
            if span["action"] == "compute"
        ]
        assert len(rows) == len(truth) == 55
        ours = sorted((row["worker"], row["start_ms"], row["us"], bool(row["erred"])) for row in rows)
        for (worker, start_ms, us, _), expected in zip(ours, sorted(truth), strict=True):
            assert (worker, start_ms) == expected[:2]
            assert us == pytest.approx(expected[2] * 1e6, rel=0.01, abs=1)
            assert len(str(us).rstrip("0")) <= 3
        assert sum(erred for *_, erred in ours) == 5
        assert [row["no"] for row in rows] == list(range(55))
        groups = cluster.scheduler.task_groups.values()
        numbers = {group.prefix.name: look.groups.number_of(group) for group in groups}
        assert Counter(row["group"] for row in rows) == {numbers["good"]: 50, numbers["bad"]: 5}
        assert {row["nbytes"] for row in rows if row["group"] == numbers["good"]} == {28}
        assert look() == []
        await cluster.client.submit(inc, 1, key="more")
        assert [row["no"] for row in look()] == [55]
        del good, bad


async def test_tasks_that_were_forgotten_between_two_reads_have_rows_and_their_group(cluster: Cluster) -> None:
    look = Rows(cluster.scheduler)
    for n in range(4):
        await cluster.client.submit(inc, n, key=f"short{n}")
    group = next(iter(cluster.scheduler.task_groups.values()))
    rows = look()
    assert len(rows) == 4
    assert rows[-1]["group"] == look.groups.number_of(group)


async def test_above_a_rate_rows_stand_for_more_tasks_and_memory_stays(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 100)
    look = Rows(cluster.scheduler)
    handle = cluster.scheduler.stream_handlers["task-finished"]
    await cluster.client.submit(inc, 1)
    look()
    for n in range(12_345):
        worker = f"tcp://10.0.0.{n % 2}:1"
        handle(key=f"k{n}", worker=worker, stimulus_id="s", run_id=n, startstops=span(1e9 + n), nbytes=n % 4)
        assert look.reader._n_rows < 100
    rows = look()
    (weight,) = {row["weight"] for row in rows}
    assert 12_345 / 100 <= weight <= 512, "a power of two that makes them fit"
    assert weight & (weight - 1) == 0
    assert len(rows) * weight == pytest.approx(12_345, abs=5 * weight)
    assert 0.25 < sum(row["worker"].endswith("0:1") for row in rows) / len(rows) < 0.75, "not always the same of two"
    starts = sorted(row["start_ms"] / 1e3 - 1e9 for row in rows)
    assert max(b - a for a, b in pairwise(starts)) < 4 * weight, "from all of the time"
    handle(key="k", worker="tcp://10.0.0.1:1", stimulus_id="s", run_id=1, startstops=span(1e9), nbytes=0)
    assert [row["weight"] for row in look()] == [1]
    assert not look.reader.lost


def span(start_s: float, took_s: float = 0.5) -> list[dict[str, Any]]:
    transfer = {"action": "transfer", "start": start_s - 1, "stop": start_s}
    return [transfer, {"action": "compute", "start": start_s, "stop": start_s + took_s}]


@pytest.mark.parametrize(
    ("us", "told"),
    [(0, 0), (7, 7), (999, 999), (1004, 1000), (1005, 1010), (12_349, 12_300), (99_950, 100_000),
     (98_765_432, 98_800_000)],
)  # fmt: skip
async def test_durations_have_three_digits(cluster: Cluster, us: int, told: int) -> None:
    look = Rows(cluster.scheduler)
    handle = cluster.scheduler.stream_handlers["task-finished"]
    handle(key="k", worker="w", stimulus_id="s", run_id=1, startstops=span(1e6, us / 1e6), nbytes=0)
    assert [row["us"] for row in look()] == [told]


@pytest.mark.parametrize(
    "odd",
    [
        {"startstops": []},
        {"startstops": None},
        {"startstops": [{"action": "transfer", "start": 1.0, "stop": 2.0}]},
        {"startstops": span(math.nan)},
        {"startstops": span(math.inf)},
        {"startstops": span(-1.0)},
        {"startstops": span(1e15)},
        {"startstops": [{"action": "compute", "start": "now", "stop": "then"}]},
        {"nbytes": -1},
        {"nbytes": 1 << 63},
        {"nbytes": "many"},
        {"worker": 7},
        {"worker": ["w"]},
        {"key": ["no", "key"]},
    ],
)
async def test_what_lacks_something_is_left_out_and_counted(cluster: Cluster, odd: dict[str, Any]) -> None:
    look = Rows(cluster.scheduler)
    message: dict[str, Any] = {"key": "k", "worker": "w", "startstops": span(1e9), "nbytes": 1, **odd}
    look.reader._note(message, failed=False)
    look.reader._note({"key": "k", "worker": "w", "startstops": span(1e9), "nbytes": 1}, failed=False)
    assert len(look()) == 1
    assert look.reader.lost == {"tasks": 1}


async def test_a_fault_of_ours_costs_neither_task_nor_worker(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    look = Rows(cluster.scheduler)
    monkeypatch.setattr(look.reader, "_is_chosen", lambda: 1 / 0)
    look.reader._weight = 4
    assert await cluster.client.submit(inc, 1) == 2
    await wait(cluster.client.submit(boom, 1))
    assert len(cluster.scheduler.workers) == 1
    assert look.reader.lost == {"tasks": 8}


async def test_an_error_of_dasks_own_handler_passes(cluster: Cluster) -> None:
    reader = TaskReader(cluster.scheduler, GroupReader(cluster.scheduler))

    def broken(**message: Any) -> None:
        raise KeyError(message["key"])

    cluster.scheduler.stream_handlers["task-finished"] = broken
    reader.start()
    with pytest.raises(KeyError, match="k"):
        cluster.scheduler.stream_handlers["task-finished"](key="k", worker="w", startstops=span(1e9), nbytes=1)
    assert len(reader.read().worker) == 1


async def test_close_puts_dasks_handlers_back(cluster: Cluster) -> None:
    handlers = cluster.scheduler.stream_handlers
    before = dict(handlers)
    look = Rows(cluster.scheduler)
    assert handlers != before
    look.reader.start()
    await cluster.client.submit(inc, 1)
    assert len(look()) == 1, "a second start wraps nothing again"
    look.reader.close()
    assert handlers == before
    look.reader.close()
    assert handlers == before


async def test_close_leaves_somebody_elses_wrap_in_place(cluster: Cluster) -> None:
    handlers: dict[str, Any] = cluster.scheduler.stream_handlers
    look = Rows(cluster.scheduler)
    ours = handlers["task-finished"]
    seen: list[Any] = []

    def theirs(**message: Any) -> Any:
        seen.append(message["key"])
        return ours(**message)

    handlers["task-finished"] = theirs
    look.reader.close()
    assert handlers["task-finished"] is theirs
    assert await cluster.client.submit(inc, 1, key="one") == 2
    assert seen == ["one"]
    assert look() == [], "and ours notes no more"


async def test_a_dask_without_the_handlers(cluster: Cluster) -> None:
    handlers = cluster.scheduler.stream_handlers
    kept = {op: handlers.pop(op) for op in ("task-finished", "task-erred")}
    look = Rows(cluster.scheduler)
    assert not set(kept) & set(handlers)
    assert look() == []
    look.reader.close()
    assert not set(kept) & set(handlers)
    handlers.update(kept)

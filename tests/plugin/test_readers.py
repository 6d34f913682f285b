"""All readers together: one that fails is left out and counted, the others and the workload go on."""

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from distributed import Scheduler, span, wait

from daskscope import readers as module
from daskscope import wire
from daskscope.attempts import OFF_AFTER
from daskscope.collect import events, spans
from daskscope.readers import DETAIL, Turn
from daskscope.watch import EXTENSION, Watch
from tests.plugin.rig import Clock, Cluster, Inbox, boom, fails, inc, look_at, settings, until

pytestmark = pytest.mark.asyncio

PARTS = [
    *("identity", "groups", "computations", "spans", "exceptions", "failures", "events", "workers", "deaths"),
    *("members", "logs", "profiles", "totals"),
]


@pytest.mark.parametrize("part", PARTS)
async def test_a_reader_that_raises_is_left_out_and_counted_and_the_workload_goes_on(
    cluster: Cluster, part: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    look = await look_at(cluster.scheduler)
    if part == "identity":
        look.watch.readers.want_identity()
        monkeypatch.setattr(module, "read_identity", fails)
    else:
        monkeypatch.setattr(getattr(look.watch.readers, f"_{part}"), "read", fails)
    assert await cluster.client.gather(cluster.client.map(inc, range(3))) == [1, 2, 3]
    inbox_message = look.watch._message("running", None)
    assert inbox_message.lost == {f"unreadable-{part}": 1}
    if part != "identity":
        again = look.watch._message("running", None)
        assert again.lost == {f"unreadable-{part}": 2}, "a running total"
    assert wire.decode(wire.encode(inbox_message)) == inbox_message
    if part != "workers":
        assert inbox_message.workers.address == [cluster.workers[0].address], "the others are not held up"
    if part != "groups":
        assert inbox_message.totals.n_tasks == 3
    warnings = [r.getMessage() for r in caplog.records if "daskscope could not read" in r.getMessage()]
    assert warnings == [f"daskscope could not read {part}, the workload goes on: RuntimeError: the reader is broken"], (
        "once a minute at most"
    )


async def test_running_totals_do_not_go_back_while_the_totals_cannot_be_read(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("the reader is broken")

    look = await look_at(cluster.scheduler)
    await until(lambda: all(state.metrics.get("memory") for state in cluster.scheduler.workers.values()))
    before = look().totals
    assert min(before.thread_us, before.peak_memory_bytes, before.peak_workers) > 0
    with monkeypatch.context() as patch:
        patch.setattr(look.watch.readers._totals, "read", fails)
        for _ in range(2):
            during = look.watch._message("running", None).totals
            assert (during.thread_us, during.peak_memory_bytes, during.peak_workers) == (
                before.thread_us, before.peak_memory_bytes, before.peak_workers,
            )  # fmt: skip
    after = look.watch._message("running", None).totals
    assert after.thread_us >= before.thread_us
    assert after.n_workers == 1


async def test_what_no_group_reader_takes_is_not_piled_up(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    look = await look_at(cluster.scheduler)
    readers = look.watch.readers
    for part in ("_groups", "_spans"):
        monkeypatch.setattr(getattr(readers, part), "read", fails)
    for _ in range(OFF_AFTER):
        look.watch._message("running", None)
    before = readers._groups.n_unread
    for n in range(5):
        await cluster.client.submit(inc, n, key=f"group{n}-0")
        look.watch._message("running", None)
    message = look.watch._message("running", None)
    assert message.lost["off-groups"] == message.lost["off-spans"] == 1
    assert message.lost["unreadable-groups"] == OFF_AFTER
    assert readers._groups.n_unread == before
    assert not readers._groups.touched


@pytest.mark.parametrize("what", ["behind", "lost", "resend"])
async def test_what_is_asked_beside_reading_may_fail_as_well(
    cluster: Cluster, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = await look_at(cluster.scheduler)
    readers = look.watch.readers
    if what == "resend":
        monkeypatch.setattr(readers._spans, "resend", fails)
    else:
        monkeypatch.setattr(type(readers._deaths), what, property(fails))
    look.watch.sender.lost["refused"] += 1
    await cluster.client.submit(inc, 1)
    message = look.watch._message("running", None)
    assert message.totals.n_tasks == 1
    assert not readers.behind
    assert readers.attempt.unreadable[what] >= 1


# Told more seldom than the rest.


async def submitted(cluster: Cluster, *names: str) -> None:
    for name in names:
        await cluster.client.submit(inc, 1, key=f"{name}-0")


async def timed(cluster: Cluster, **changes: Any) -> tuple[Callable[[], wire.Message], Clock]:
    """Each call is the next message, by a clock of the test's own."""
    clock = Clock()
    watching = Watch(cluster.scheduler, settings(**changes), Inbox(), now=clock)
    watching.readers.start()
    cluster.scheduler.extensions[EXTENSION] = watching  # it closes with the cluster
    return lambda: watching._message("running", None), clock


def told(message: wire.Message) -> tuple[list[str], int, int]:
    return message.groups.prefix, len(message.computations), len(message.spans)


async def test_work_is_told_when_it_is_time_and_nothing_of_it_is_lost(cluster: Cluster) -> None:
    look, clock = await timed(cluster, computation_interval_s=60.0)
    await submitted(cluster, "first")
    assert told(look()) == (["first"], 1, 1), "the first message tells all"
    await submitted(cluster, "second", "third")
    await wait(cluster.client.submit(boom, 1))
    message = look()
    for _ in range(5):
        clock.now_s += 10
        message = look()
        assert told(message) == ([], 0, 0)
    assert message.totals.n_groups == message.totals.n_tasks == 4, "they are counted at once"
    assert message.totals.n_tasks_erred == 1
    clock.now_s += 10
    message = look()
    assert {"boom", "second", "third"} <= set(message.groups.prefix)
    assert message.totals.n_tasks == 4
    assert not message.lost


async def test_running_totals_grow_in_every_message_whenever_work_is_told(cluster: Cluster) -> None:
    look, clock = await timed(cluster, computation_interval_s=3600.0)
    look()
    kept = []
    spent_us = 0
    for n in range(1, 4):  # of one group that is told already, and of new ones, some of which Dask forgets
        kept += [cluster.client.submit(inc, n, key=f"grows-{n}"), cluster.client.submit(inc, n, key=f"other{n}-0")]
        await wait(kept)
        await submitted(cluster, f"gone{n}")
        clock.now_s += 10
        message = look()
        assert told(message) == ([], 0, 0)
        assert message.totals.n_tasks == 3 * n
        assert message.totals.action_us["compute"] >= spent_us
        spent_us = message.totals.action_us["compute"]
    clock.now_s += 3600
    message = look()
    assert sorted(message.groups.prefix) == ["gone1", "gone2", "gone3", "grows", "other1", "other2", "other3"]
    assert sum(message.groups.n_tasks) == message.totals.n_tasks == 9
    assert sum(message.groups.action_us["compute"]) == message.totals.action_us["compute"] == spent_us
    kept.append(cluster.client.submit(inc, 9, key="grows-9"))
    await wait(kept)
    clock.now_s += 10
    message = look()
    assert (told(message), message.totals.n_tasks) == (([], 0, 0), 10), "of a group that was told before"


async def test_failures_do_not_wait_for_the_time_of_work_or_events(cluster: Cluster) -> None:
    look, clock = await timed(cluster, computation_interval_s=3600.0, events_interval_s=3600.0)
    look()
    await wait(cluster.client.submit(boom, 1))
    cluster.scheduler.log_event("worker-fail-hard", {"exception_text": "ValueError('x')", "worker": "tcp://w"})
    clock.now_s += 10
    message = look()
    assert [family.origin for family in message.exceptions] == ["user", "dask"]
    assert not message.events


async def test_a_restart_between_two_times_loses_no_work(cluster: Cluster) -> None:
    look, clock = await timed(cluster, computation_interval_s=3600.0)
    look()
    await submitted(cluster, "before")
    clock.now_s += 10
    assert told(look()) == ([], 0, 0)
    await cluster.client.restart(wait_for_workers=False)
    clock.now_s += 3600
    message = look()
    assert message.groups.prefix == ["before"]
    assert message.groups.n_tasks == [1]
    assert not message.lost


async def test_much_that_waits_is_told_before_its_time(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY", 3)
    look, clock = await timed(cluster, computation_interval_s=3600.0)
    look()
    for n, names in enumerate([["a"], ["b"], ["c"]]):
        await submitted(cluster, *names)
        clock.now_s += 10
        assert len(look().groups.no) == (3 if n == 2 else 0)


async def test_events_are_told_when_it_is_time_or_before_dask_drops_any(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HISTORY", 20)
    look, clock = await timed(cluster, events=("mine",), events_interval_s=60.0)
    look()
    for n in range(3):
        cluster.scheduler.log_event("mine", {"n": n})
    clock.now_s += 30
    assert not look().events
    clock.now_s += 30
    assert [event.no for event in look().events if event.topic == "mine"]
    for n in range(10):
        cluster.scheduler.log_event("mine", {"n": n})
    clock.now_s += 1
    message = look()
    assert len(message.events) == 10
    assert not message.lost


async def test_the_last_message_tells_all_whatever_the_time(cluster: Cluster) -> None:
    clock = Clock()
    given = settings(computation_interval_s=3600.0, events_interval_s=3600.0, events=("mine",))
    watching = Watch(cluster.scheduler, given, Inbox(), now=clock)
    watching.readers.start()
    cluster.scheduler.extensions[EXTENSION] = watching  # it closes with the cluster
    watching._message("running", None)
    await submitted(cluster, "last")
    cluster.scheduler.log_event("mine", {"n": 1})
    message = watching._message("closed", "closed")
    assert told(message)[:2] == (["last"], 1)
    assert [event.topic for event in message.events] == ["mine"]


async def test_a_clock_that_is_set_back_puts_nothing_off() -> None:
    turn = Turn(60.0)
    assert turn.take(1e6, now=False)
    assert not turn.take(1e6 + 30, now=False)
    assert turn.take(1e6 + 57, now=False), "messages come a little early"
    assert turn.take(5e5, now=False)
    assert Turn(None).take(0.0, now=False)


# In less detail.

PROFILE = {
    "kind": "profile", "from_ms": 1, "to_ms": 2, "sample_us": 50_000, "cut": 0, "frames": ["f (a.py:1)"],
    "prefix": ["inc"], "stack": [[0]], "count": [1],
}  # fmt: skip


def blank() -> wire.Message:
    return wire.Message(v=1, cluster="c" * 32, boot="b" * 24, seq=0, made_at_ms=0, uptime_us=0, next_s=1.0)


def grow_a_metric(scheduler: Scheduler) -> None:
    """Another value of a metric that belongs to no span."""
    totals: Any = scheduler.cumulative_worker_metrics
    totals["latency"] = totals.get("latency", 0.0) + 1.0


async def test_each_level_leaves_out_one_thing_more_and_counts_what_happens_once(cluster: Cluster) -> None:
    everything: dict[str, Any] = {"tasks": True, "events": ("mine",), "logs": logging.WARNING}
    look = await look_at(cluster.scheduler, **everything)
    readers = look.watch.readers
    await until(lambda: readers._agents.status(cluster.workers[0].address) == "running")
    seen: list[dict[str, bool]] = []
    for detail in range(len(DETAIL) + 1):
        lost = Counter(readers.lost())
        readers._leave_out(detail)  # as the message before did: tasks are noted as they end
        await submitted(cluster, f"level{detail}")
        await wait(cluster.client.submit(boom, detail, key=f"boom-{detail}"))
        logging.getLogger("theirs").warning("a warning")
        logging.getLogger("theirs").error("an error")
        cluster.scheduler.log_event("mine", {"n": detail})
        readers._profiles.take("tcp://w", PROFILE)
        grow_a_metric(cluster.scheduler)
        message = blank()
        readers.fill(message, 1e9 + detail, detail)
        assert wire.decode(wire.encode(message)) == message
        assert message.groups.prefix
        assert message.computations
        assert message.exceptions
        assert message.totals.n_workers == 1
        assert "an error" in message.logs.text
        seen.append(
            {
                "tasks": bool(message.tasks.start_ms),
                "profiles": bool(message.profiles),
                "metrics": bool(message.metrics.value),
                "logs": "a warning" in message.logs.text,
                "workers": bool(message.workers.address),
                "events": bool(message.events),
            }
        )
        grown = Counter(readers.lost()) - lost
        assert grown["tasks"] == (2 if detail >= 1 else 0)
        assert grown["profiles"] == (1 if detail >= 2 else 0)
        assert grown["log-lines"] == (1 if detail >= 4 else 0)
        assert grown["events"] == (1 if detail >= 6 else 0)
    for detail, there in enumerate(seen):
        assert there == {part: n >= detail for n, part in enumerate(DETAIL)}, f"level {detail}"
    message = look()  # and back
    assert message.workers.address
    assert message.metrics.value, "what changed meanwhile"


async def test_spans_that_end_while_nobody_looks_at_metrics_are_bounded(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "SETTLED_KEPT", 3)
    look = await look_at(cluster.scheduler)
    readers = look.watch.readers
    for n in range(8):
        with span(f"s{n}"):
            await cluster.client.submit(inc, n, key=f"s{n}-0")
        readers.fill(blank(), 1e9 + n, 3)
    assert len(readers._spans._active) <= 4


async def test_the_last_message_tells_metrics_and_workers_at_every_level(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    readers = look.watch.readers
    with span("mine"):
        await cluster.client.submit(inc, 1, key="mine-0")
    told = blank()
    readers.fill(told, 1e9, len(DETAIL))
    assert not told.metrics.value
    assert not told.workers.address
    last = blank()
    last.phase = "closed"
    readers.fill(last, 1e9 + 1, len(DETAIL))
    spans_told = {span_id for span_id in last.metrics.span if span_id}
    assert spans_told == {each.id for each in told.spans}
    assert last.workers.address == [cluster.workers[0].address]
    assert not readers.behind
    assert "metrics" not in readers.lost()

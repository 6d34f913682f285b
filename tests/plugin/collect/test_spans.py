"""Spans and fine performance metrics of a real scheduler, beside what Dask itself says of them."""

from __future__ import annotations

import gc
import math
from collections import Counter
from typing import Any

import dask.config
import pandas
import pytest
from dask import dataframe  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from dask.base import annotate  # pyright: ignore[reportPrivateImportUsage]
from distributed import Event, Scheduler, span, wait
from distributed.metrics import context_meter

from daskscope import wire
from daskscope.collect import metrics, span_tree
from daskscope.collect import spans as module
from daskscope.collect.computations import ComputationReader
from daskscope.collect.groups import GroupReader
from daskscope.collect.memory import LongMemory
from daskscope.collect.spans import SpanReader
from tests.plugin.rig import Cluster, boom, inc, until

pytestmark = pytest.mark.asyncio

Key = tuple[str | None, str, str, str, str]


class Readers:
    """The three readers that spans need, asked in the order in which a watch asks them; what was told adds up."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler: Any = scheduler
        self.groups = GroupReader(scheduler)
        self.computations = ComputationReader(scheduler, self.groups, transmit_code=False)
        self.spans = SpanReader(scheduler, self.groups)
        self.scheduler.computations = LongMemory(self.scheduler.computations, lambda: None)
        self.now_s = 2e9
        self.latest: dict[str, wire.Span] = {}
        self.stops: dict[int, int | None] = {}
        self.metrics: dict[Key, float] = {}
        self.group_tasks: dict[int, tuple[str, int]] = {}

    def __call__(self, *, last: bool = False) -> tuple[list[wire.Span], wire.Metrics]:
        self.now_s += 1
        first_new = self.groups.n_groups
        self.computations.discover()
        self.groups.track_others(first_new)
        groups = self.groups.read(last=last)
        self.group_tasks |= dict(zip(groups.no, zip(groups.name, groups.n_tasks, strict=True), strict=True))
        computations, _ = self.computations.read(self.now_s)
        self.stops |= {computation.no: computation.stop_ms for computation in computations}
        spans, told = self.spans.read(self.now_s, last=last)
        self.latest |= {told_span.id: told_span for told_span in spans}
        self.metrics |= dict(zip(keys(told), told.value, strict=True))
        message = wire.Message(v=1, cluster="c" * 32, boot="b" * 24, seq=0, made_at_ms=0, uptime_us=0, next_s=1.0)
        message.spans, message.metrics = spans, told
        assert wire.decode(wire.encode(message)) == message, "what is made is of the format"
        return spans, told


def keys(told: wire.Metrics) -> list[Key]:
    return list(zip(told.span, told.context, told.prefix, told.activity, told.unit, strict=True))


def spans_of(scheduler: Scheduler) -> dict[str, Any]:
    return scheduler.extensions["spans"].spans


async def beaten(cluster: Cluster) -> None:
    """Until the workers have told what they measured so far."""
    for worker in cluster.workers:
        await worker.heartbeat()


async def forgotten(cluster: Cluster, *, keep: int = 0) -> None:
    """Until the scheduler has forgotten all tasks whose futures were let go."""
    gc.collect()
    await until(lambda: len(cluster.scheduler.tasks) == keep)


def boomerang(x: int) -> int:
    context_meter.digest_metric("thrown", 3, "times")
    return x


async def test_a_span_is_told_when_it_starts_and_when_it_stops_and_no_more(cluster: Cluster) -> None:
    read = Readers(cluster.scheduler)
    gate = await Event("gate")
    with span("etl", "clean") as span_id:
        future = cluster.client.submit(wait_for, "gate")
    await until(lambda: cluster.scheduler.tasks)
    (outer, inner), _ = read()
    assert (outer.name, inner.name) == (["etl"], ["etl", "clean"])
    assert (outer.parent, inner.parent, inner.id) == (None, outer.id, span_id)
    assert (inner.start_ms, inner.stop_ms) == (outer.start_ms, outer.stop_ms) == (None, None)
    assert read()[0] == []
    await gate.set()
    await future
    told, _ = read()
    assert [told_span.id for told_span in told] == [inner.id, outer.id]
    for told_span in told:
        dasks = spans_of(cluster.scheduler)[told_span.id]
        assert told_span.enqueued_ms == round(dasks.enqueued * 1e3)
        assert told_span.start_ms == round(dasks.start * 1e3)
        assert told_span.stop_ms == round(dasks.stop * 1e3)
    assert read()[0] == []


def wait_for(name: str) -> None:
    Event(name).wait(30)


async def test_what_was_not_in_a_span_is_in_a_default_one(cluster: Cluster) -> None:
    read = Readers(cluster.scheduler)
    await cluster.client.submit(inc, 1)
    ((told,), _) = read()
    assert told.name == ["default"]
    if hasattr(spans_of(cluster.scheduler)[told.id], "metadata"):  # 2024.5.2 and later
        assert told.collections == '[{"type": "Future"}]'


async def test_metrics_are_those_that_dask_has_and_only_changes_are_told(cluster: Cluster) -> None:
    read = Readers(cluster.scheduler)
    with span("first") as first:
        await cluster.client.submit(inc, 1)
    with span("second") as second:
        await cluster.client.submit(boomerang, 1)
    await beaten(cluster)
    read(last=True)
    ours = {key: value for key, value in read.metrics.items() if key[0] is not None}
    assert ours == pytest.approx(
        {
            (dasks.id, *key): value
            for dasks in spans_of(cluster.scheduler).values()
            for key, value in dasks.cumulative_worker_metrics.items()
        },
        abs=1e-5,
    )
    assert ours[second, "execute", "boomerang", "thrown", "times"] == 3
    assert ours[first, "execute", "inc", "thread-cpu", "seconds"] > 0
    assert read()[1].value == []
    with span("third") as third:
        await cluster.client.submit(boomerang, 2)
    await beaten(cluster)
    told = {key[0] for key in keys(read()[1])}
    assert told - {None} == {third}


async def test_the_schedulers_own_totals_leave_out_what_spans_tell(cluster: Cluster) -> None:
    read = Readers(cluster.scheduler)
    await cluster.client.submit(inc, 1)
    await beaten(cluster)
    await beaten(cluster)
    read()
    own = {key[1:]: value for key, value in read.metrics.items() if key[0] is None}
    assert own["latency", "", "", "seconds"] > 0
    assert "execute" not in {key[0] for key in own}


async def test_metrics_of_a_shuffle_are_told_by_where_they_were_measured(cluster: Cluster) -> None:
    read = Readers(cluster.scheduler)
    frame: Any = dataframe.from_pandas(pandas.DataFrame({"a": range(80)}), npartitions=4)
    with dask.config.set({"dataframe.shuffle.method": "p2p"}):
        await cluster.client.compute(frame.shuffle("a"))
    await beaten(cluster)
    read(last=True)
    (dasks,) = spans_of(cluster.scheduler).values()
    theirs = {key: value for key, value in dasks.cumulative_worker_metrics.items() if key[0] == "p2p"}
    ours = {key[1:]: value for key, value in read.metrics.items() if key[1] == "p2p"}
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert {where for _, where, *_ in ours} >= {"foreground"}


async def test_the_schedulers_totals_are_found_behind_many_that_spans_tell(cluster: Cluster) -> None:
    read = Readers(cluster.scheduler)
    totals: Any = cluster.scheduler.cumulative_worker_metrics
    for n in range(module.METRICS_PER_READ + 1):
        totals["execute", f"prefix{n}", "thread-cpu", "seconds"] = 1.0
    read()
    totals["gather-dep", "decompress", "seconds"] = 0.25
    read()
    totals["gather-dep", "decompress", "seconds"] = 0.5
    read()
    assert read.metrics[None, "gather-dep", "", "decompress", "seconds"] == 0.5
    assert not read.spans.lost


async def test_without_the_extension_all_metrics_belong_to_no_span(cluster: Cluster) -> None:
    await cluster.client.submit(inc, 1)
    await beaten(cluster)
    for shape in (None, object(), type("Other", (), {"spans": [1, 2]})()):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(cluster.scheduler.extensions, "spans", shape)
            read = Readers(cluster.scheduler)
            read.groups.track_others(0)
            spans, told = read()
        assert spans == []
        seconds = cluster.scheduler.cumulative_worker_metrics["execute", "inc", "thread-cpu", "seconds"]
        assert dict(zip(keys(told), told.value, strict=True))[
            None, "execute", "inc", "thread-cpu", "seconds"
        ] == pytest.approx(seconds, abs=1e-6)
        assert not read.spans.lost


async def test_a_span_whose_tasks_all_failed_stops_by_our_clock(cluster: Cluster) -> None:
    read = Readers(cluster.scheduler)
    with span("doomed"):
        await wait(cluster.client.map(boom, range(3)))
    ((told,), _) = read()
    assert (told.start_ms, told.stop_ms) == (None, round(read.now_s * 1e3))
    await beaten(cluster)
    read(last=True)
    assert read.latest[told.id].stop_ms == told.stop_ms, "it does not move"
    assert read.metrics[told.id, "execute", "boom", "failed", "seconds"] > 0
    assert list(read.stops.values()) == [told.stop_ms], "and so does the computation"


async def test_where_tasks_fail_after_others_succeeded_the_stop_is_that_of_the_failures(cluster: Cluster) -> None:
    read = Readers(cluster.scheduler)
    gate = await Event("gate")
    with span("half"):
        good = cluster.client.submit(inc, 1)
        bad = cluster.client.submit(fail_late, "gate")
    await good
    read()
    read.now_s += 1000  # by now no success lies in the interval
    assert read()[0] == []
    await gate.set()
    await wait(bad)
    ((told,), _) = read()
    assert told.start_ms is not None
    last = max(read.stops)  # a busy machine may have made two of them
    assert told.stop_ms == read.stops[last] == round(read.now_s * 1e3)
    for _ in range(3):
        assert read()[0] == []


def fail_late(name: str) -> None:
    Event(name).wait(30)
    raise ValueError(name)


async def test_a_settled_span_that_comes_to_life_again_is_told(cluster: Cluster) -> None:
    read = Readers(cluster.scheduler)
    with span("loop") as span_id:
        await cluster.client.submit(inc, 1, key="one")
        await beaten(cluster)
        for _ in range(module.SETTLED_AFTER + 2):
            read()
        assert list(read.spans._settled) == [span_id]
        before, idle_s = read.latest[span_id], read.metrics[idle(span_id)]
        gate = await Event("gate")
        future = cluster.client.submit(wait_for, "gate", key="two")
        await until(lambda: len(cluster.scheduler.tasks) > 0 and cluster.scheduler.tasks.get("two"))
        ((open_again,), _) = read()
        assert open_again.stop_ms is None
        await gate.set()
        await future
    await beaten(cluster)
    read(last=True)
    after = read.latest[span_id]
    assert after.start_ms == before.start_ms
    assert after.stop_ms is not None
    assert before.stop_ms is not None
    assert after.stop_ms >= before.stop_ms
    dasks = spans_of(cluster.scheduler)[span_id].cumulative_worker_metrics
    assert read.metrics[idle(span_id)] != idle_s
    assert read.metrics[idle(span_id)] == pytest.approx(
        dasks["execute", "N/A", "idle or other spans", "seconds"], abs=1e-4
    )


def idle(span_id: str) -> Key:
    return span_id, "execute", "N/A", "idle or other spans", "seconds"


async def test_an_old_settled_span_is_let_go_and_comes_back_with_its_start(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SETTLED_KEPT", 1)
    read = Readers(cluster.scheduler)
    with span("outer") as outer:
        with span("old") as old:
            future = cluster.client.submit(inc, 1, key=("shared", 1))
            await future
        read(last=True)
        first = read.latest[old]
        for n in range(3):
            with span("new"):
                await cluster.client.submit(inc, n, key=f"new{n}")
            await forgotten(cluster, keep=1)
            read(last=True)
        assert old not in read.spans._tree.followed
        assert len(read.spans._tree.followed) == len(read.spans._settled) == 1
        assert len(read.groups.spans) <= 2
        gate = await Event("gate")
        again = cluster.client.submit(wait_for, "gate", key=("shared", 2))  # a living group stays in its span
        await until(lambda: len(cluster.scheduler.tasks) == 2)
        read()
        assert (read.latest[old].stop_ms, read.latest[outer].stop_ms) == (None, None)
        await gate.set()
        await again
    read(last=True)
    for span_id in (old, outer):
        dasks = spans_of(cluster.scheduler)[span_id]
        told = read.latest[span_id]
        assert (told.start_ms, told.stop_ms) == (round(dasks.start * 1e3), round(dasks.stop * 1e3))
    assert read.latest[old].start_ms == first.start_ms
    assert read.latest[old].parent == outer


async def test_more_spans_than_fit_wait_their_turn(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_tree, "SPANS_PER_READ", 2)
    read = Readers(cluster.scheduler)
    for n in range(5):
        with span(f"s{n}"):
            await cluster.client.submit(inc, n, key=f"s{n}")
    told = [[told_span.name for told_span in read()[0]] for _ in range(4)]
    assert told == [[["s0"], ["s1"]], [["s2"], ["s3"]], [["s4"]], []]
    assert not read.spans.behind


async def test_more_metrics_than_fit_wait_their_turn(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "METRICS_PER_READ", 5)
    read = Readers(cluster.scheduler)
    with span("s"):
        await cluster.client.submit(inc, 1)
    await beaten(cluster)
    n_told: list[int] = []
    while not n_told or read.spans.behind:
        n_told.append(len(read(last=True)[1].value))
    assert max(n_told) == 5
    (dasks,) = spans_of(cluster.scheduler).values()
    ours = {key[1:]: value for key, value in read.metrics.items() if key[0] == dasks.id}
    assert ours == pytest.approx(dasks.cumulative_worker_metrics, abs=1e-5)


async def test_after_resend_everything_followed_is_told_again(cluster: Cluster) -> None:
    read = Readers(cluster.scheduler)
    with span("s"):
        await cluster.client.submit(inc, 1)
    await beaten(cluster)
    read(last=True)
    read.spans.resend()
    latest, told = dict(read.latest), {key: value for key, value in read.metrics.items() if key[0] is not None}
    spans, again = read(last=True)
    assert {told_span.id: told_span for told_span in spans} == latest
    assert told.items() <= dict(zip(keys(again), again.value, strict=True)).items()


async def test_metrics_that_cannot_be_told_are_left_out_and_counted_once(cluster: Cluster) -> None:
    read = Readers(cluster.scheduler)
    with span("s") as span_id:
        await cluster.client.submit(inc, 1)
    await beaten(cluster)
    kept: Any = spans_of(cluster.scheduler)[span_id]._cumulative_worker_metrics
    n_good = len(kept)
    kept["execute", "inc", ("a", "tuple"), "seconds"] = 1.0
    kept["execute", "inc", "x" * (metrics.MAX_NAME + 1), "seconds"] = 1.0
    kept["execute", "inc", "too", "many", "parts"] = 1.0
    kept["execute", "inc", "never", "seconds"] = math.nan
    kept["execute", "inc", "endless", "seconds"] = math.inf
    kept["execute", "inc", "huge", "count"] = 10**400
    kept["execute", "inc", "text", "count"] = "7 o'clock"
    kept["execute", "inc", "good", "count"] = 1
    for n in range(3):
        kept["execute", "inc", "good", "count"] = n
        kept["execute", "inc", "endless", "seconds"] = -math.inf
        read()
    assert read.spans.lost == {"metrics": 7}
    assert read.metrics[span_id, "execute", "inc", "good", "count"] == 2
    assert len([key for key in read.metrics if key[0] == span_id]) == n_good + 1


async def test_metrics_without_end_are_cut_and_counted(cluster: Cluster) -> None:
    read = Readers(cluster.scheduler)
    with span("s") as span_id:
        await cluster.client.submit(inc, 1)
    kept: Any = spans_of(cluster.scheduler)[span_id]._cumulative_worker_metrics
    for n in range(span_tree.ENTRIES_PER_SPAN + 30 - len(kept)):
        kept["execute", "inc", f"m{n}", "count"] = n
    read()
    read()
    assert read.spans.lost == {"metrics": 30}
    assert len([key for key in read.metrics if key[0] == span_id]) == span_tree.ENTRIES_PER_SPAN


@pytest.mark.parametrize("missing", ["enqueued", "_cumulative_worker_metrics", "groups"])
async def test_a_span_of_another_shape_is_counted_and_left_alone(cluster: Cluster, missing: str) -> None:
    read = Readers(cluster.scheduler)
    with span("odd") as odd:
        await cluster.client.submit(inc, 1, key="odd")
    with span("good") as good:
        await cluster.client.submit(inc, 2, key="good")
    await forgotten(cluster)
    delattr(spans_of(cluster.scheduler)[odd], missing)
    spans_of(cluster.scheduler)[7] = spans_of(cluster.scheduler)[good]  # pyright: ignore[reportArgumentType]
    if missing == "groups":  # it is asked for only where no group is known
        cluster.scheduler.computations.clear()
    for _ in range(3):
        read()
    assert read.latest[good].stop_ms is not None
    assert read.spans.lost == {"spans": 2}


async def test_tags_that_are_no_texts(cluster: Cluster) -> None:
    read = Readers(cluster.scheduler)
    with annotate(span={"name": ("s", 7), "ids": ("a", "b")}):
        await cluster.client.submit(inc, 1)
    spans, _ = read()
    assert [told.name for told in spans] == [["s"], ["s", "<int>"]]


async def test_idle_time_of_a_large_tree_is_left_out_and_counted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_TREE", 2)
    read = Readers(cluster.scheduler)
    with span("outer") as outer:
        for n in range(3):
            with span("inner"):
                await cluster.client.submit(inc, n, key=f"s{n}")
    read(last=True)
    read(last=True)
    assert sum(key[3] == "idle or other spans" for key in read.metrics) == 3
    assert idle(outer) not in read.metrics
    assert read.spans.lost == {"idle": 1}


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("pipelined", [False, True])
async def test_3000_short_graphs_between_two_reads_are_all_there(cluster: Cluster, pipelined: bool) -> None:
    """Counted by hand: what was submitted, under which name and in which span. Those that follow each other while the
    cluster is busy share computations, and groups where their names are the same: then Dask knows no more."""
    read = Readers(cluster.scheduler)
    names, pending = 3000, list[Any]()
    if pipelined:
        names = 100
    with dask.config.set({"distributed.diagnostics.computations.nframes": 0}):  # to look for code takes the client long
        for n in range(3000):
            with span(f"tag{n % 7}"):
                future = cluster.client.submit(inc, n, key=(f"step{n % names}", n))
            if pipelined:
                pending.append(future)
            else:
                await future
            del future
    await cluster.client.gather(pending)
    pending.clear()
    await forgotten(cluster)
    read()
    while read.groups.behind or read.spans.behind:
        read()
    n_tasks: Counter[str] = Counter()
    for name, n in read.group_tasks.values():
        n_tasks[name] += n
    assert n_tasks == {f"step{n}": 3000 // names for n in range(names)}
    assert (read.groups.n_groups, read.groups.n_tasks) == (len(read.group_tasks), 3000)
    assert read.latest.keys() == spans_of(cluster.scheduler).keys()
    for span_id, dasks in spans_of(cluster.scheduler).items():
        ours = read.latest[span_id]
        assert ours.name == list(dasks.name)
        assert (ours.start_ms, ours.stop_ms) == (round(dasks.start * 1e3), round(dasks.stop * 1e3))
    assert read.computations.n_computations == len(read.stops) == len(cluster.scheduler.computations)
    assert None not in read.stops.values()
    if not pipelined:
        assert read.groups.n_groups == read.computations.n_computations == len(read.latest) == 3000
        tags = Counter(told.name[0] for told in read.latest.values())
        assert tags == Counter(f"tag{n % 7}" for n in range(3000))
    assert not read.spans.lost

"""Spans and fine performance metrics of a real scheduler, beside what Dask itself says of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import dask.config
import pytest
from dask.base import annotate  # pyright: ignore[reportPrivateImportUsage]
from distributed import Event, span, wait

from daskscope.collect import span_tree
from daskscope.collect import spans as module
from tests.plugin.collect.span_readers import Readers, beaten, forgotten, idle, keys, spans_of
from tests.plugin.rig import Cluster, boom, inc, until

pytestmark = pytest.mark.asyncio


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
    await until(lambda: bad.key in cluster.scheduler.tasks)
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

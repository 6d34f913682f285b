"""Fine performance metrics of a real scheduler, beside what Dask itself says of them."""

from __future__ import annotations

import math
from typing import Any

import dask.config
import pandas
import pytest
from dask import dataframe  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from distributed import span

from daskscope.collect import metrics, span_tree
from daskscope.collect import spans as module
from tests.plugin.collect.span_readers import Readers, beaten, boomerang, idle, keys, spans_of
from tests.plugin.rig import Cluster, inc

pytestmark = pytest.mark.asyncio


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

"""All that a run sends against what Dask's own performance_report writes of it."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.rows import Budget, Row


def report_size(tiny: bool) -> Iterator[Row]:
    """One row: how many times smaller."""
    name, unit, budget = "report-size", "x smaller", Budget("at least", 100)
    if importlib.util.find_spec("bokeh") is None:
        how = "performance_report needs bokeh (pip install --group bench), so there is nothing to compare with."
        yield Row(name=name, value=None, unit=unit, budget=budget, how=how)
        return
    sent, html, n_tasks = _run(1 if tiny else 8)
    yield Row(
        name=name,
        value=html / sum(sent),
        unit=unit,
        budget=budget,
        peers={"performance_report, bytes": html, "ours, bytes": sum(sent)},
        how=f"LocalCluster runs a dataframe shuffle, an array and futures of which some raise, {n_tasks} tasks: bodies "
        f"of all {len(sent)} messages at the usual pace against the HTML made in the same run.",
    )


def _run(scale: int) -> tuple[list[int], int, int]:
    """Sizes of the messages, size of the report, number of tasks."""
    from distributed import Client, LocalCluster, performance_report

    from bench.watched import Kept
    from daskscope import settings
    from daskscope.watch import Watch

    kept = Kept()
    started: Any = LocalCluster(
        n_workers=2, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0", protocol="inproc://"
    )
    with tempfile.TemporaryDirectory() as folder, started as cluster, Client(cluster) as client:
        running: Any = client
        scheduler = cluster.scheduler

        async def watch() -> Watch:
            watched = Watch(scheduler, settings.load(), kept)
            watched.start()
            return watched

        watched = running.sync(watch)
        report = Path(folder, "report.html")
        with performance_report(str(report)):
            _workload(client, scale)
        html = report.stat().st_size

        async def close() -> int:
            watched.teardown()
            return watched.readers._groups.n_tasks

        n_tasks = running.sync(close)
    return [len(body) for body in kept.bodies], html, n_tasks


def _workload(client: Any, scale: int) -> None:
    import dask.array as da
    import dask.datasets

    frame = dask.datasets.timeseries(end=f"2000-01-{10 * scale // 3 + 2:02d}", freq="10s", partition_freq="6h")
    frame.shuffle("name").groupby("id")[["x", "y"]].mean().compute()
    square = da.random.random((scale * 500, scale * 500), chunks=250)
    (square @ square.T).mean(axis=0).compute()
    futures = client.map(_sometimes, range(100 * scale), pure=False)
    client.gather(futures, errors="skip")


def _sometimes(number: int) -> int:
    if number % 20 == 0:
        raise ValueError("every twentieth fails")
    return number

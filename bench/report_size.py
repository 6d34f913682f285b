"""All that a run sends against what Dask's own performance_report writes of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

from bench.one_run import one_run
from bench.rows import Budget, Row


def report_size(tiny: bool) -> Iterator[Row]:
    """One row: how many times smaller."""
    name, unit, budget = "report-size", "x smaller", Budget("at least", 100)
    if importlib.util.find_spec("bokeh") is None:
        how = "performance_report needs bokeh (pip install --group bench), so there is nothing to compare with."
        yield Row(name=name, value=None, unit=unit, budget=budget, how=how)
        return
    ran = one_run(lambda client: workload(client, 1 if tiny else 8), processes=False)
    sent = [len(body) for body, _ in ran.sent]
    yield Row(
        name=name,
        value=ran.html_bytes / sum(sent),
        unit=unit,
        budget=budget,
        peers={"performance_report, bytes": ran.html_bytes, "ours, bytes": sum(sent)},
        how="LocalCluster runs a dataframe shuffle, an array and futures of which some raise, "
        f"{ran.n_tasks} tasks: bodies of all {len(sent)} messages at the usual pace against the HTML of the same run.",
    )


def workload(client: Any, scale: int) -> None:
    """A shuffle, an array, futures of which some raise: 7,899 tasks at scale 8, and no more than that."""
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

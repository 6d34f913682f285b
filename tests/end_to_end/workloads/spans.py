"""Named spans, one within the other, and what their tasks measured themselves."""

from __future__ import annotations

from typing import Any

from distributed import span, wait
from distributed.metrics import context_meter

import daskscope
from tests.end_to_end.workloads.workload import only

ROWS_A_TASK = 1000


def loaded(n: int) -> int:
    context_meter.digest_metric("rows-read", ROWS_A_TASK, "rows")
    return n


def cleaned(n: int) -> int:
    if n == 0:
        raise ValueError("dirt")
    return n


class Spans:
    def work(self, client: Any) -> None:
        with span("etl") as self.etl:
            with span("load", "nightly") as self.load:
                first = client.map(loaded, range(12))
            with span("clean") as self.clean:
                second = client.map(cleaned, range(5))
            wait([*first, *second])
        self.kept = [*first, *second]

    def check(self, cluster_id: int) -> None:
        told = {tuple(row["name"]): row for row in daskscope.list_spans(cluster_id)}
        etl, load, clean = told["etl",], told["etl", "load", "nightly"], told["etl", "clean"]
        assert (etl["id"], load["id"], clean["id"]) == (self.etl, self.load, self.clean)
        # Dask makes a span of each tag, so `load` stands between `etl` and `nightly`.
        assert (etl["parent"], clean["parent"]) == (None, etl["id"])
        assert (load["n_tasks"], clean["n_tasks"]) == (12, 5)
        assert clean["states"] == {"memory": 4, "erred": 1}
        for row in (load, clean):
            assert row["enqueued"] <= row["start"] <= row["stop"]
        metrics = daskscope.list_metrics(cluster_id)
        rows = only([m for m in metrics if m["activity"] == "rows-read"])
        assert (rows["span"], rows["prefix"], rows["unit"]) == (load["id"], "loaded", "rows")
        assert rows["value"] == 12 * ROWS_A_TASK
        assert [m["span"] for m in metrics if m["prefix"] == "cleaned" and m["activity"] == "failed"] == [clean["id"]]

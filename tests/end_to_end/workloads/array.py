"""Blocks of an array, whose number and size can be counted by hand."""

from __future__ import annotations

from typing import Any

import dask.array as da
from distributed import span, wait

import daskscope
from tests.end_to_end.workloads.dask_version import SAYS_COLLECTIONS
from tests.end_to_end.workloads.workload import only, totals


class Array:
    n_blocks, block_bytes = 16, 100 * 100 * 8

    def work(self, client: Any) -> None:
        with span("grid"):
            self.grid: Any = da.random.random((400, 400), chunks=100).persist()
            wait(self.grid)
        self.prefix = self.grid.name.rpartition("-")[0]
        (self.grid + self.grid.T).sum().compute()

    def check(self, cluster_id: int) -> None:
        assert self.grid.npartitions == self.n_blocks
        assert totals(cluster_id)[self.prefix] == self.n_blocks
        assert totals(cluster_id, "bytes")[self.prefix] == self.n_blocks * self.block_bytes
        group = only([group for group in daskscope.list_groups(cluster_id) if group["prefix"] == self.prefix])
        assert group["types"] == ["numpy.ndarray"]
        assert group["states"] == {"memory": self.n_blocks}
        assert group["start"] <= group["stop"]
        grid = only([row for row in daskscope.list_spans(cluster_id) if row["name"] == ["grid"]])
        assert (grid["n_tasks"], grid["bytes"]) == (self.n_blocks, self.n_blocks * self.block_bytes)
        assert ("Array" in grid["collections"]) == SAYS_COLLECTIONS

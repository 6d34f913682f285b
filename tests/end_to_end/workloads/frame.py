"""A dataframe through a peer-to-peer shuffle."""

from __future__ import annotations

from typing import Any

import dask.datasets

import daskscope
from tests.end_to_end.workloads.workload import only, totals


class Frame:
    def work(self, client: Any) -> None:
        frame = dask.datasets.timeseries(end="2000-01-08", freq="60s", partition_freq="1D")
        self.n_partitions = frame.npartitions
        shuffled = frame.shuffle("name", shuffle_method="p2p")
        self.n_shuffled = shuffled.npartitions
        self.means = len(shuffled.groupby("name").x.mean().compute())

    def check(self, cluster_id: int) -> None:
        assert self.means > 1
        told = totals(cluster_id)
        assert told["shuffle-transfer"] == self.n_partitions
        assert told["p2pshuffle"] + told["shuffle_p2p"] == self.n_shuffled  # as newer and older Dasks call it
        assert told["shuffle-barrier"] == 1
        groups = daskscope.list_groups(cluster_id)
        barrier = only([group for group in groups if group["prefix"] == "shuffle-barrier"])
        assert [name.rpartition("-")[0] for name in barrier["dependencies"]] == ["shuffle-transfer"]
        # What the shuffle itself measures, beside the tasks.
        p2p = [row for row in daskscope.list_metrics(cluster_id) if row["context"] == "p2p"]
        assert sum(row["value"] for row in p2p if row["unit"] == "bytes") > 0

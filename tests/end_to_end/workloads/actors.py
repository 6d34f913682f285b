"""An actor: one task that stays, whose methods are no tasks."""

from __future__ import annotations

from typing import Any

import daskscope
from tests.end_to_end.workloads.workload import totals


class Tally:
    """Adds up on a worker."""

    def __init__(self) -> None:
        self.n = 0

    def add(self, n: int) -> int:
        self.n += n
        return self.n

    def fail(self) -> None:
        raise RuntimeError("the scheduler never hears of this")


class Actors:
    def work(self, client: Any) -> None:
        self.kept = client.submit(Tally, actor=True)
        tally = self.kept.result()
        for n in range(25):
            self.sum = tally.add(n).result()
        try:
            tally.fail().result()
        except RuntimeError as error:
            self.error = error

    def check(self, cluster_id: int) -> None:
        assert self.sum == sum(range(25))
        assert str(self.error) == "the scheduler never hears of this"
        told = totals(cluster_id)
        assert told["Tally"] == 1
        assert not {"add", "fail"} & told.keys()
        assert "RuntimeError" not in {row["type"] for row in daskscope.list_exceptions(cluster_id=cluster_id)}

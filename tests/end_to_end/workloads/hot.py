"""One function that takes nearly all the time: the profile must find it."""

from __future__ import annotations

import time
from typing import Any

import daskscope

BURN_S = 1.0


def burn(n: int) -> int:
    stop = time.thread_time() + BURN_S
    while time.thread_time() < stop:
        n = (n * 31 + 7) % 1009
    return n


class Hot:
    def work(self, client: Any) -> None:
        client.gather(client.map(burn, range(4)))

    def check(self, cluster_id: int) -> None:
        stacks = daskscope.get_profile(cluster_id, prefix="burn")
        n_samples = sum(row["count"] for row in stacks)
        in_burn = sum(row["count"] for row in stacks if any(f.startswith("burn (") for f in row["stack"]))
        assert n_samples > 0
        assert in_burn / n_samples > 0.8

"""The demo's workload, written as a user would write it: what its page shows is what stands here."""

from __future__ import annotations

import random
from collections.abc import Callable

import dask.array as da
import dask.datasets
from distributed import Client

MESSY = ["12.50", "7.00", "n/a", "3.20", "", "19.99"]
"""Two of six cannot be read as an amount."""


def run(client: Client, say: Callable[[str], None]) -> int:
    """Run it all; the number of tasks that failed, as the client saw it."""
    say("  a dataframe, grouped with a shuffle ...")
    sales = dask.datasets.timeseries(start="2026-01-01", end="2026-01-31", freq="30s", partition_freq="2D")
    sales.shuffle("name", shuffle_method="p2p").groupby("name").x.mean().compute()

    say("  an array, multiplied ...")
    grid = da.random.default_rng(0).random((3000, 3000), chunks="4 MiB")
    (grid @ grid.T).std(axis=0).compute()

    say("  futures, of which some fail ...")
    amounts = client.map(read_amount, MESSY * 10, pure=False)
    samples = client.map(estimate_pi, range(40))
    client.gather(samples)
    return sum(future.exception() is not None for future in amounts)


def read_amount(text: str) -> float:
    """An amount of money; raises ValueError for what is none."""
    if not text:
        raise ValueError("An empty field where an amount should be.")
    return float(text)


def estimate_pi(seed: int) -> float:
    """By throwing 50,000 darts."""
    throw = random.Random(seed).random  # noqa: S311 - darts, not secrets
    return 4 * sum(throw() ** 2 + throw() ** 2 <= 1 for _ in range(50_000)) / 50_000

"""Very many at once, between two messages: nothing may be missing."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import dask.config
import pytest
from distributed import wait

import daskscope
from tests.end_to_end.conftest import Cluster
from tests.end_to_end.house import eventually
from tests.end_to_end.workloads.witness import Account, Witness, account_of
from tests.end_to_end.workloads.workload import agrees, only, totals

pytestmark = pytest.mark.timeout(400)

ONE_INTERVAL = {"daskscope.analytics.interval": "1h"}
"""The first message goes at once, the next ones when the cluster closes."""


def inc(n: int) -> int:
    return n + 1


def boom(n: int) -> None:
    logging.getLogger("tests.many").warning("about to fail")
    raise ValueError("all of us fail alike")


def after(n: int) -> int:
    return n


def in_one_interval(cluster: Cluster, work: Callable[[Any], None]) -> tuple[int, Account]:
    """Work between the first message and the close; the cluster's number, and what the witness saw."""
    client: Any = cluster.client
    client.register_plugin(Witness())
    with dask.config.set(ONE_INTERVAL):
        daskscope.register(client)
    scheduler_id = client.scheduler_info()["id"]
    found = eventually(lambda: daskscope.get_cluster(scheduler_id), lambda told: told["workers"] == 2)
    work(client)
    seen = account_of(client)
    client.shutdown()
    over = eventually(lambda: daskscope.get_cluster(scheduler_id), lambda told: told["status"] == "stopped")
    # Where each task logs a line, that is faster than lines are taken: those left out are counted.
    assert over["lost"].keys() <= {"log-lines"}, cluster.scheduler.output
    return found["id"], seen


def test_short_graphs_one_after_the_other(served_cluster: Cluster) -> None:
    one_after_the_other(served_cluster, 300)


@pytest.mark.long
def test_3000_short_graphs_one_after_the_other(served_cluster: Cluster) -> None:
    one_after_the_other(served_cluster, 3000)


def one_after_the_other(cluster: Cluster, n: int) -> None:
    def work(client: Any) -> None:
        for number in range(n):
            assert client.submit(inc, number, pure=False).result() == number + 1

    cluster_id, seen = in_one_interval(cluster, work)

    def check() -> None:
        assert totals(cluster_id) == {"inc": n} == dict(seen.done)
        computations = daskscope.list_computations(cluster_id)
        assert len(computations) == seen.n_computations
        # One name of group for all: Dask counts tasks to the computation that made the group, as long as it lives.
        assert {(c["status"], c["n_tasks"] > 0) for c in computations} <= {("finished", True), ("unknown", False)}
        assert sum(row["n_tasks"] for row in daskscope.list_spans(cluster_id)) == n

    agrees(check)


def test_3000_short_graphs_at_once(served_cluster: Cluster) -> None:
    n, kinds = 3000, 50

    def work(client: Any) -> None:
        wait([client.submit(inc, number, key=f"kind{number % kinds}-{number}") for number in range(n)])

    cluster_id, seen = in_one_interval(served_cluster, work)

    def check() -> None:
        assert totals(cluster_id) == {f"kind{kind}": n // kinds for kind in range(kinds)}
        assert seen.done.total() == n
        assert sum(c["n_tasks"] for c in daskscope.list_computations(cluster_id)) == n

    agrees(check)


def test_2000_tasks_that_fail(served_cluster: Cluster) -> None:
    all_fail(served_cluster, 2_000)


@pytest.mark.long
def test_10000_tasks_that_fail(served_cluster: Cluster) -> None:
    all_fail(served_cluster, 10_000)


def all_fail(cluster: Cluster, n: int) -> None:
    def work(client: Any) -> None:
        failing = client.map(boom, range(n))
        dependents = client.map(after, failing[:100], pure=False)
        wait([*failing, *dependents])

    cluster_id, seen = in_one_interval(cluster, work)
    assert seen.failed == Counter(boom=n)

    def check() -> None:
        rows = daskscope.list_exceptions(cluster_id=cluster_id)
        assert {(row["type"], row["prefix"], row["origin"]) for row in rows} == {("ValueError", "boom", "user")}
        assert sum(row["count"] for row in rows) == n == daskscope.get_cluster(cluster_id)["n_tasks_erred"]
        assert totals(cluster_id) == {"boom": n, "after": 100}
        # Each of them logged a line: it is there, or counted, unless it came in the last second before the shutdown.
        lines = daskscope.logs(cluster_id, filter="about to fail")
        n_dropped = daskscope.get_cluster(cluster_id)["lost"].get("log-lines", 0)
        assert 0 < len(lines) <= n
        assert n_dropped
        assert sum(row["dropped"] for row in daskscope.logs(cluster_id)) <= n_dropped
        # Dask's own line shows a task's arguments: it is never sent.
        assert not daskscope.logs(cluster_id, filter="Compute Failed")
        # They have a start and an end although Dask has none for a group in which nothing succeeded.
        computation = only(daskscope.list_computations(cluster_id))
        assert computation["status"] == "erred"
        assert computation["start"] <= computation["stop"]
        span = only(daskscope.list_spans(cluster_id))
        assert span["enqueued"] <= span["stop"]

    agrees(check)

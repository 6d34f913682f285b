"""How clusters end."""

from __future__ import annotations

import signal
from datetime import datetime
from typing import Any

import pytest

import daskscope
from tests.end_to_end.conftest import Cluster
from tests.end_to_end.house import INTERVAL_S, eventually

pytestmark = pytest.mark.timeout(600)  # the first of them deploys


def double(x: int) -> int:
    return 2 * x


def found(scheduler_id: str) -> dict[str, Any]:
    return daskscope.get_cluster(scheduler_id)


def test_a_killed_scheduler_is_lost_after_three_missed_messages(cluster: Cluster) -> None:
    daskscope.register(cluster.client)
    scheduler_id = cluster.client.scheduler_info()["id"]
    eventually(lambda: found(scheduler_id), lambda c: c["workers"] == 2)
    cluster.scheduler.stop(signal.SIGKILL)
    seen: list[dict[str, Any]] = []

    def look() -> dict[str, Any]:
        now = cluster.place.get("/healthz").headers["date"]  # the server's clock decides
        seen.append(found(scheduler_id) | {"now": datetime.strptime(now, "%a, %d %b %Y %H:%M:%S %Z").timestamp()})
        return seen[-1]

    lost = eventually(look, lambda c: c["status"] == "lost")
    assert lost["stopped"] == lost["last_seen"]
    assert lost["answers"]["finished"]["verdict"] == "lost"
    for before in seen:
        silent_s = before["now"] - datetime.fromisoformat(before["last_seen"]).replace(tzinfo=None).timestamp()
        assert before["status"] == "lost" or silent_s <= 3 * INTERVAL_S + 1  # a Date header has whole seconds
    page = cluster.place.page(f"/{cluster.place.account}/analytics").text
    assert "lost" in page


def test_a_cluster_that_closes_says_so_and_keeps_its_story(cluster: Cluster) -> None:
    daskscope.register(cluster.client)
    scheduler_id = cluster.client.scheduler_info()["id"]
    assert cluster.client.gather(cluster.client.map(double, range(9))) == [2 * x for x in range(9)]
    cluster.client.shutdown()
    over = eventually(lambda: found(scheduler_id), lambda c: c["status"] == "stopped")
    assert over["n_tasks"] == 9
    assert over["answers"]["finished"]["verdict"] == "finished"
    # Depth follows once the queue is written, and may come in two parts.
    eventually(
        lambda: [(c["n_tasks"], c["status"]) for c in daskscope.list_computations(scheduler_id=scheduler_id)],
        lambda told: told == [(9, "finished")],
    )

"""With every switch off, what the switches govern is not there; all else is."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import dask.config
import pytest
from distributed import get_worker, wait

import daskscope
from daskscope.options import OPTIONS
from tests.end_to_end.conftest import Cluster
from tests.end_to_end.house import eventually
from tests.end_to_end.workloads.hot import burn
from tests.end_to_end.workloads.workload import agrees, totals

pytestmark = pytest.mark.timeout(240)

OFF = {f"daskscope.{option.key}": option.off for option in OPTIONS if option.governs}


def loud(n: int) -> float:
    logging.getLogger("tests.silent").error("nobody hears this")
    get_worker().log_event("worker-fail-hard", {"action": "told to nobody"})
    return 1 / n


def asked(cluster_id: int) -> dict[str, Callable[[], list[Any]]]:
    """For each table or column that a switch governs, what the API has of it."""

    hardware = ("cores", "memory_bytes", "gpus", "provider", "instance_type", "region", "zone", "lifecycle")

    def machines() -> list[Any]:
        return [row["hardware"] for row in daskscope.list_members(cluster_id) if row["hardware"]]

    return {
        "computations.code": lambda: [c["code"] for c in daskscope.list_computations(cluster_id) if c["code"]],
        "exceptions": lambda: daskscope.list_exceptions(cluster_id=cluster_id),
        "events": lambda: daskscope.list_events(cluster_id),
        "logs": lambda: daskscope.logs(cluster_id),
        "profiles": lambda: list(daskscope.get_profile(cluster_id)),
        "tasks": lambda: daskscope.list_tasks(cluster_id),
        **{f"members.{column}": machines for column in hardware},
    }


def test_what_is_turned_off_is_not_there(served_cluster: Cluster) -> None:
    client: Any = served_cluster.client
    with dask.config.set(OFF):
        daskscope.register(client)
    scheduler_id = client.scheduler_info()["id"]
    wait([*client.map(loud, range(3)), *client.map(burn, range(2))])
    plugins: Any = client.run(lambda dask_worker: [name for name in dask_worker.plugins if "daskscope" in name])
    assert all(names == [] for names in plugins.values())
    client.shutdown()
    found = eventually(lambda: daskscope.get_cluster(scheduler_id), lambda told: told["status"] == "stopped")

    def check() -> None:
        # The story is there to its end, but for what was turned off.
        assert totals(found["id"]) == {"loud": 3, "burn": 2}
        assert found["n_tasks_erred"] == 1
        assert {row["role"] for row in daskscope.list_members(found["id"])} == {"scheduler", "worker", "client"}
        answers = asked(found["id"])
        assert answers.keys() == {place for option in OPTIONS for place in option.governs}
        assert {place: ask() for place, ask in answers.items() if ask()} == {}

    agrees(check)

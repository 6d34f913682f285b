"""How the server on one machine comes and goes: no other can be stopped by a test."""

from __future__ import annotations

import signal
from typing import Any

import dask.config
import pytest
from distributed import Client, LocalCluster, wait

import daskscope
from tests.end_to_end.conftest import Cluster
from tests.end_to_end.house import House, eventually
from tests.end_to_end.places import Embedded

pytestmark = pytest.mark.timeout(240)


def double(x: int) -> int:
    return 2 * x


def found(scheduler_id: str) -> dict[str, Any]:
    return daskscope.get_cluster(scheduler_id)


def test_a_server_that_comes_back_has_the_whole_story(embedded: Embedded, embedded_cluster: Cluster) -> None:
    client = embedded_cluster.client
    daskscope.register(client)
    scheduler_id = client.scheduler_info()["id"]
    assert client.gather(client.map(double, range(9))) == [2 * x for x in range(9)]
    client.shutdown()
    eventually(lambda: found(scheduler_id), lambda c: c["status"] == "stopped")
    assert embedded.server.stop() == 0
    embedded.serve_again()
    assert found(scheduler_id)["n_tasks"] == 9
    # The last messages may still have been in the queue: it outlives the server too, and is written at once.
    eventually(
        lambda: [c["n_tasks"] for c in daskscope.list_computations(scheduler_id=scheduler_id)], lambda told: told == [9]
    )


def test_a_server_that_is_away_costs_nothing_and_loses_nothing(embedded: Embedded, embedded_cluster: Cluster) -> None:
    client, scheduler = embedded_cluster.client, embedded_cluster.scheduler
    daskscope.register(client)
    scheduler_id = client.scheduler_info()["id"]
    eventually(lambda: found(scheduler_id), lambda c: c["workers"] == 2)
    embedded.server.stop(signal.SIGKILL)
    assert client.gather(client.map(double, range(200))) == [2 * x for x in range(200)]
    warnings = eventually(
        lambda: [line for line in scheduler.output if "daskscope" in line and "WARNING" in line], bool
    )
    assert len(warnings) == 1
    embedded.serve_again()
    back = eventually(lambda: found(scheduler_id), lambda c: c["n_tasks"] == 200)
    assert back["status"] == "running"
    assert back["lost"] == {}
    assert [line for line in scheduler.output if "daskscope" in line and "WARNING" in line] == warnings


def test_without_a_server_the_story_is_spooled_and_served_later(house: House) -> None:
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0") as local,
        Client(local) as client,
    ):
        registration = daskscope.register(client)
        assert "daskscope serve" in str(registration)
        wait(client.map(double, range(7)))
        scheduler_id = client.scheduler_info()["id"]
    spool = house.folder / "home" / "spool"
    assert list(spool.glob("*.msg"))
    assert all(path.stat().st_mode & 0o077 == 0 for path in spool.iterdir())
    _, url = house.serve()
    with dask.config.set({"daskscope.server": url}):
        over = eventually(lambda: found(scheduler_id), lambda c: c["status"] == "stopped")
        assert over["n_tasks"] == 7
    eventually(lambda: list(spool.iterdir()), lambda left: left == [])

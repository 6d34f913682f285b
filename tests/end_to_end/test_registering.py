"""The ways by which a cluster comes to report."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, Scheduler

import daskscope
from daskscope.transport import Http
from tests.end_to_end.conftest import Cluster
from tests.end_to_end.house import House, eventually
from tests.end_to_end.places import Place, environment

pytestmark = pytest.mark.timeout(600)  # the first of them deploys


def sent_with(dask_scheduler: Scheduler) -> set[str | None]:
    """The tokens with which this scheduler posts."""
    return {thing._token for thing in gc.get_objects() if isinstance(thing, Http)}


def found(scheduler_id: str) -> dict[str, Any]:
    return daskscope.get_cluster(scheduler_id)


def test_registering_twice_changes_nothing(cluster: Cluster) -> None:
    registration = daskscope.register(cluster.client)
    assert registration is daskscope.register(cluster.client)
    scheduler_id = cluster.client.scheduler_info()["id"]
    eventually(lambda: found(scheduler_id), lambda c: c["workers"] == 2)
    (listed,) = daskscope.list_clusters()
    assert listed["scheduler_id"] == scheduler_id
    assert f"daskscope: this cluster can be seen at {cluster.place.url}/c/" in str(registration)
    page = cluster.place.page(f"/c/{scheduler_id}")
    assert page.headers["location"] == f"../{cluster.place.account}/analytics/clusters/{listed['id']}"


def test_a_scheduler_holds_a_token_that_reads_nothing(cluster: Cluster) -> None:
    daskscope.register(cluster.client)
    held: Any = cluster.client.run_on_scheduler(sent_with)
    assert held == {cluster.place.ingest_token}
    assert cluster.place.get("/api/v1/whoami", cluster.place.ingest_token).json()["scopes"] == ["ingest"]


def test_preload_on_the_scheduler(house: House, place: Place) -> None:
    scheduler, address = house.scheduler("--preload", "daskscope", **environment(place.scheduler))
    assert scheduler.line(r"daskscope: this cluster can be seen at (http\S+)")[1].startswith(place.url)
    with Client(address) as client:
        scheduler_id = client.scheduler_info()["id"]
        eventually(lambda: found(scheduler_id), lambda c: c["clients"] == 1)
        # Registering what reports already changes nothing.
        registration = daskscope.register(client)
        assert registration is daskscope.register(client)
        # What brought us takes itself out in the turn of the loop after the one that let it in.
        eventually(lambda: plugins(client), lambda names: not [name for name in names if "daskscope" in name])


def plugins(client: Client) -> list[str]:
    found: Any = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.plugins))
    return found


def test_preload_from_yaml_on_the_client(house: House, place: Place, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "dask.yaml").write_text("distributed:\n  client:\n    preload: [daskscope]\n")
    script = tmp_path / "analysis.py"
    script.write_text(
        "from distributed import Client\n"
        "if __name__ == '__main__':\n"
        "    with Client(n_workers=1, threads_per_worker=1, dashboard_address=None) as client:\n"
        "        print(client.scheduler_info()['id'], client.submit(sum, [1, 2]).result())\n"
    )
    user = house.start(str(script), DASK_CONFIG=str(tmp_path / "config"), **environment(place.user))
    scheduler_id = user.line(r"(Scheduler-\S+) 3")[1]
    assert user.line(r"daskscope: this cluster can be seen at (http\S+)")[1].startswith(place.url)
    assert user.child.wait(60) == 0
    over = eventually(lambda: found(scheduler_id), lambda c: c["status"] == "stopped")
    assert over["n_tasks"] == 1

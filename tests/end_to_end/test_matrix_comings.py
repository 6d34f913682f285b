"""Who comes and goes: adaptive scaling, a client that dies, a cluster that closes itself when idle."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any, cast

import dask.config
import pytest
from distributed import Client, Event, LocalCluster, wait

import daskscope
from tests.end_to_end.conftest import Cluster
from tests.end_to_end.house import House, eventually
from tests.end_to_end.places import Place, environment
from tests.end_to_end.workloads.witness import Witness, account_of
from tests.end_to_end.workloads.workload import agrees, only, totals

pytestmark = pytest.mark.timeout(240)

SCRIPT = """
from distributed import Client, Event, wait

if __name__ == "__main__":
    client = Client({address!r})
    kept = client.map(str, range({n}), pure=False)
    wait(kept)
    print("id", client.id)
    Event("never").wait()
"""


def held(n: int) -> int:
    Event("over").wait()
    return n


@pytest.mark.usefixtures("house")
def test_adaptive_scaling(served: Place) -> None:
    with (
        dask.config.set(served.user),
        LocalCluster(
            n_workers=0, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0"
        ) as made,
        Client(made) as asking,
    ):
        cluster, client = cast("Any", made), cast("Any", asking)
        client.register_plugin(Witness())
        cluster.adapt(minimum=1, maximum=3, interval="50ms", wait_count=3, target_duration="500ms")
        tasks = client.map(held, range(12))
        client.wait_for_workers(3)
        desired = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.adaptive_target())
        daskscope.register(client)
        found = eventually(lambda: daskscope.get_cluster(client.scheduler_info()["id"]), lambda c: c["workers"] == 3)
        assert found["kind"] == "LocalCluster"
        assert found["desired_workers"] == desired
        Event("over").set()
        wait(tasks)
        eventually(lambda: len(client.scheduler_info(n_workers=-1)["workers"]), lambda n: n == 1)

        def check() -> None:
            told, seen = daskscope.get_cluster(found["id"]), account_of(client)
            assert (told["workers"], told["peak_workers"], told["workers_lost"]) == (1, 3, 0)
            assert (told["adaptive_minimum"], told["adaptive_maximum"]) == (1, 3)
            members = [row for row in daskscope.list_members(found["id"]) if row["role"] == "worker"]
            assert Counter(row["id"] for row in members) == Counter(seen.came)
            assert {row["id"] for row in members if row["left"]} == set(seen.went)
            deaths = daskscope.list_deaths(found["id"])
            assert Counter(row["worker"] for row in deaths) == Counter(seen.went)
            assert all(row["expected"] for row in deaths)

        agrees(check)


def test_a_client_that_dies(house: House, served_cluster: Cluster, tmp_path: Path) -> None:
    client: Any = served_cluster.client
    client.register_plugin(Witness())
    daskscope.register(client)
    scheduler_id = client.scheduler_info()["id"]
    script = tmp_path / "dying.py"
    script.write_text(SCRIPT.format(address=client.scheduler.address, n=50))
    user = house.start(str(script))
    other = user.line(r"id (Client-\S+)")[1]
    found = eventually(lambda: daskscope.get_cluster(scheduler_id), lambda c: c["clients"] == 2 and c["n_tasks"] >= 50)
    user.stop(signal.SIGKILL)
    eventually(lambda: account_of(client).clients_went, lambda went: other in went)

    def check() -> None:
        told = daskscope.get_cluster(found["id"])
        assert (told["clients"], told["status"]) == (1, "running")
        clients = {row["id"]: row["left"] for row in daskscope.list_members(found["id"]) if row["role"] == "client"}
        assert {name for name, left in clients.items() if left} == {other}
        assert clients.keys() == {other, client.id}
        # What it held is let go: nobody else wants it.
        assert totals(found["id"])["str"] == 50
        group = only([row for row in daskscope.list_groups(found["id"]) if row["prefix"] == "str"])
        assert group["states"] == {"forgotten": 50}
        assert told["held_bytes"] == 0

    agrees(check)


def test_a_cluster_that_is_idle_closes_itself(house: House, served: Place) -> None:
    told = served.scheduler | {"daskscope.analytics.idle.timeout": "1s", "daskscope.name": "idle"}
    scheduler, address = house.scheduler("--preload", "daskscope", **environment(told))
    house.worker(address, "alpha")
    assert scheduler.child.wait(60) == 0
    with dask.config.set(served.user):
        over = only([row for row in daskscope.list_clusters() if row["name"] == "idle"])
        over = eventually(lambda: daskscope.get_cluster(over["id"]), lambda c: c["status"] == "stopped")
    assert over["reason"] == "idle-timeout-exceeded"
    assert over["idle_timeout"] == 1

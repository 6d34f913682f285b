"""How clusters end, and how servers come and go."""

from __future__ import annotations

import signal
from datetime import datetime
from pathlib import Path
from typing import Any

import dask.config
import httpx
import pytest
from distributed import Client, LocalCluster, wait

import daskscope
from tests.end_to_end.conftest import INTERVAL_S, Cluster, House, eventually

pytestmark = pytest.mark.timeout(180)


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
        now = httpx.get(cluster.url).headers["date"]  # the server's clock decides
        seen.append(found(scheduler_id) | {"now": datetime.strptime(now, "%a, %d %b %Y %H:%M:%S %Z").timestamp()})
        return seen[-1]

    lost = eventually(look, lambda c: c["status"] == "lost")
    assert lost["stopped"] == lost["last_seen"]
    assert lost["answers"]["finished"]["verdict"] == "lost"
    for before in seen:
        silent_s = before["now"] - datetime.fromisoformat(before["last_seen"]).replace(tzinfo=None).timestamp()
        assert before["status"] == "lost" or silent_s <= 3 * INTERVAL_S + 1  # a Date header has whole seconds
    page = httpx.get(f"{cluster.url}/local/analytics").text
    assert "lost" in page


def test_a_cluster_that_closes_says_so_and_keeps_its_story(cluster: Cluster) -> None:
    daskscope.register(cluster.client)
    scheduler_id = cluster.client.scheduler_info()["id"]
    assert cluster.client.gather(cluster.client.map(double, range(9))) == [2 * x for x in range(9)]
    cluster.client.shutdown()
    over = eventually(lambda: found(scheduler_id), lambda c: c["status"] == "stopped")
    assert over["n_tasks"] == 9
    assert over["answers"]["finished"]["verdict"] == "finished"

    # The server goes and comes back: the history is still there.
    port = cluster.url.rpartition(":")[2]
    assert cluster.server.stop() == 0
    cluster.house.serve(int(port))
    assert found(scheduler_id)["n_tasks"] == 9
    # The last messages may still have been in the queue: it outlives the server too, and is written at once.
    (computation,) = eventually(lambda: daskscope.list_computations(scheduler_id=scheduler_id), bool)
    assert computation["n_tasks"] == 9


def test_a_server_that_is_away_costs_nothing_and_loses_nothing(cluster: Cluster) -> None:
    daskscope.register(cluster.client)
    scheduler_id = cluster.client.scheduler_info()["id"]
    eventually(lambda: found(scheduler_id), lambda c: c["workers"] == 2)
    cluster.server.stop(signal.SIGKILL)
    assert cluster.client.gather(cluster.client.map(double, range(200))) == [2 * x for x in range(200)]
    warnings = eventually(
        lambda: [line for line in cluster.scheduler.output if "daskscope" in line and "WARNING" in line], bool
    )
    assert len(warnings) == 1
    cluster.house.serve(int(cluster.url.rpartition(":")[2]))
    back = eventually(lambda: found(scheduler_id), lambda c: c["n_tasks"] == 200, within_s=60)
    assert back["status"] == "running"
    assert back["lost"] == {}
    assert [line for line in cluster.scheduler.output if "daskscope" in line and "WARNING" in line] == warnings


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


def test_preload_on_the_scheduler(house: House) -> None:
    _, url = house.serve()
    scheduler, address = house.scheduler("--preload", "daskscope", DASK_DASKSCOPE__SERVER=url)
    assert scheduler.line(r"daskscope: this cluster can be seen at (http\S+)")[1].startswith(url)
    with dask.config.set({"daskscope.server": url}), Client(address) as client:
        scheduler_id = client.scheduler_info()["id"]
        eventually(lambda: found(scheduler_id), lambda c: c["clients"] == 1)
        # Registering what reports already changes nothing.
        registration = daskscope.register(client)
        assert registration is daskscope.register(client)
        plugins: Any = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.plugins))
        assert not [name for name in plugins if "daskscope" in name]


def test_preload_from_yaml_on_the_client(house: House, tmp_path: Path) -> None:
    _, url = house.serve()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "dask.yaml").write_text("distributed:\n  client:\n    preload: [daskscope]\n")
    script = tmp_path / "analysis.py"
    script.write_text(
        "from distributed import Client\n"
        "if __name__ == '__main__':\n"
        "    with Client(n_workers=1, threads_per_worker=1, dashboard_address=None) as client:\n"
        "        print(client.scheduler_info()['id'], client.submit(sum, [1, 2]).result())\n"
    )
    user = house.start(str(script), DASK_CONFIG=str(tmp_path / "config"), DASK_DASKSCOPE__SERVER=url)
    scheduler_id = user.line(r"(Scheduler-\S+) 3")[1]
    assert user.line(r"daskscope: this cluster can be seen at (http\S+)")[1].startswith(url)
    assert user.child.wait(30) == 0
    with dask.config.set({"daskscope.server": url}):
        over = eventually(lambda: found(scheduler_id), lambda c: c["status"] == "stopped")
        assert over["n_tasks"] == 1

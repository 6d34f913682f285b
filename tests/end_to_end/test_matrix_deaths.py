"""Workers that go: killed, out of memory, broken, restarted, retired. One record each, with what is known about why."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import dask.config
import pytest
from distributed import Client, Event, get_worker, wait

import daskscope
from tests.end_to_end.house import START_S, House, Process, eventually
from tests.end_to_end.places import Place
from tests.end_to_end.workloads.dask_version import SAYS_LOST_RESULTS, SAYS_NANNY_KILLED
from tests.end_to_end.workloads.witness import Witness, account_of
from tests.end_to_end.workloads.workload import agrees, only, totals

pytestmark = pytest.mark.timeout(240)

LIMIT_MIB = 400


@pytest.fixture
def client(house: House, served: Place) -> Iterator[Any]:
    """Of a scheduler that gives a task up at the first worker it kills; a witness is there, workers are not yet."""
    _, address = house.scheduler(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    with dask.config.set(served.user), Client(address) as made:
        asked: Any = made
        asked.register_plugin(Witness())
        daskscope.register(asked)
        yield asked


def worker(house: House, client: Any, name: str, *options: str) -> tuple[Process, str]:
    """Start one, wait until it can tell its last words; its process and address."""
    known = set(client.scheduler_info(n_workers=-1)["workers"])
    process = house.worker(client.scheduler.address, name, *options)
    client.wait_for_workers(len(known) + 1, timeout=START_S)
    (address,) = set(client.scheduler_info(n_workers=-1)["workers"]) - known
    scheduler_id = client.scheduler_info()["id"]

    def running() -> bool:
        found = daskscope.get_cluster(scheduler_id)
        return ("running", address) in {(row["agent"], row["id"]) for row in daskscope.list_members(found["id"])}

    eventually(running, bool)
    return process, address


def held(n: int) -> int:
    """Runs until the test ends it."""
    logging.getLogger("tests.deaths").warning("task %d holds on to %s", n, get_worker().name)
    Event("over").wait()
    return n


def kept(n: int) -> bytes:
    return bytes(1000 + n)


def hoard(mib: int) -> int:
    """Takes more memory than its worker may have, and keeps it."""
    hoarded = b"x" * (mib << 20)
    Event("over").wait()
    return len(hoarded)


def begun(client: Any, name: str, prefix: str) -> list[str]:
    """Keys of what a worker of that name is executing."""
    found = client.run_on_scheduler(
        lambda dask_scheduler: [
            task.key for ws in dask_scheduler.workers.values() if ws.name == name for task in ws.processing
        ]
    )
    return sorted(key for key in found if key.startswith(prefix))


def test_a_killed_worker(house: House, client: Any) -> None:
    process, address = worker(house, client, "victim")
    results = client.map(kept, range(3), workers=["victim"])
    wait(results)
    tasks = client.map(held, range(5), workers=["victim"], pure=False)
    eventually(lambda: begun(client, "victim", "held"), lambda keys: len(keys) == 5)
    given = begun(client, "victim", "held")
    cluster = daskscope.get_cluster(client.scheduler_info()["id"])
    # What it said in its very last moment dies with it: on a busy machine that may be all of it.
    eventually(lambda: daskscope.logs(cluster["id"], filter="holds on to victim"), bool)
    process.stop(signal.SIGKILL)
    wait(tasks)
    (raised,) = {str(task.exception()).replace(task.key, "KEY") for task in tasks}

    def check() -> None:
        death = only(daskscope.list_deaths(cluster["id"]))
        assert (death["worker"], death["name"]) == (address, "victim")
        assert (death["expected"], death["reason"]) == (False, "lost")
        assert (death["n_processing"], sorted(death["processing"])) == (5, given)
        assert death["n_results_lost"] == (3 if SAYS_LOST_RESULTS else 0)
        assert 0 < death["memory"] < death["memory_limit"] == 512 << 20
        words = {line["text"] for line in death["logs"]}
        assert words & {f"task {n} holds on to victim" for n in range(5)}
        row = only(daskscope.list_exceptions(cluster_id=cluster["id"]))
        assert (row["origin"], row["prefix"], row["count"]) == ("scheduler", "held", 5)
        assert row["type"].rpartition(".")[2] == "KilledWorker"
        assert raised in row["text"].replace(row["key"], "KEY")
        assert address in row["text"]
        member = only([row for row in daskscope.list_members(cluster["id"]) if row["role"] == "worker"])
        assert member["left"] is not None
        assert daskscope.get_cluster(cluster["id"])["workers_lost"] == 1

    agrees(check)


def test_a_worker_out_of_memory(house: House, client: Any) -> None:
    options = ("--nanny", "--memory-limit", f"{LIMIT_MIB} MiB")
    process, address = worker(house, client, "hungry", *options)
    task = client.submit(hoard, LIMIT_MIB + 100, pure=False)
    wait(task)
    process.line("Restarting")
    cluster = daskscope.get_cluster(client.scheduler_info()["id"])

    def check() -> None:
        death = only(daskscope.list_deaths(cluster["id"]))
        assert (death["worker"], death["expected"]) == (address, False)
        assert death["memory_limit"] == LIMIT_MIB << 20
        assert death["reason"] == ("nanny-memory" if SAYS_NANNY_KILLED else "lost")
        assert death["memory"] > 0.95 * death["memory_limit"] * SAYS_NANNY_KILLED
        assert death["processing"] == [task.key]
        line = only([row for row in daskscope.logs(cluster["id"], role="nanny") if "memory budget" in row["text"]])
        assert line["worker"] == address
        # The nanny has started another one in its place.
        members = [row for row in daskscope.list_members(cluster["id"]) if row["role"] == "worker"]
        assert sorted(row["left"] is None for row in members) == [False, True]
        assert {row["id"] for row in members} == set(account_of(client).came)

    agrees(check)


def break_dask(dask_worker: Any) -> None:
    """An event that no worker knows: Dask's own failure, after which a worker gives itself up."""
    dask_worker.loop.add_callback(dask_worker.handle_stimulus, "no event that Dask knows")


def test_a_worker_that_fails_within_dask(house: House, client: Any) -> None:
    _, address = worker(house, client, "broken")
    client.run(break_dask)
    eventually(lambda: account_of(client).went, lambda went: went == [address])
    cluster = daskscope.get_cluster(client.scheduler_info()["id"])

    def check() -> None:
        row = only(daskscope.list_exceptions(cluster_id=cluster["id"]))
        assert (row["origin"], row["type"], row["count"]) == ("dask", "AttributeError", 1)
        assert "to_loggable" in row["text"]
        assert row["workers"] == [address]
        assert daskscope.list_exceptions(cluster_id=cluster["id"], origin="dask") == [row]
        death = only(daskscope.list_deaths(cluster["id"]))
        assert (death["worker"], death["expected"], death["reason"]) == (address, False, "worker-fail-hard")
        found = daskscope.get_cluster(cluster["id"])
        assert (found["n_tasks_erred"], found["workers_lost"]) == (0, 1)

    agrees(check)


def test_a_restart_is_no_death_unasked_for(house: House, client: Any) -> None:
    _, before = worker(house, client, "again", "--nanny")
    wait(client.map(kept, range(4)))
    client.restart()
    wait(client.map(kept, range(6)))
    # The client's own list of workers is a moment old.
    (after,) = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.workers))
    cluster = daskscope.get_cluster(client.scheduler_info()["id"])

    def check() -> None:
        death = only(daskscope.list_deaths(cluster["id"]))
        assert (death["worker"], death["expected"], death["reason"]) == (before, True, "client-restart")
        assert totals(cluster["id"]) == {"kept": 10}
        members = [row for row in daskscope.list_members(cluster["id"]) if row["role"] == "worker"]
        assert {row["id"]: row["left"] is None for row in members} == {before: False, after: True}
        assert {row["agent"] for row in members} == {"running"}
        found = daskscope.get_cluster(cluster["id"])
        assert (found["n_tasks"], found["workers_lost"], found["lost"]) == (10, 0, {})

    agrees(check)


def test_a_retired_worker_was_asked_to_go(house: House, client: Any, tmp_path: Path) -> None:
    _, leaving = worker(house, client, "leaving")
    worker(house, client, "staying")
    results = client.map(kept, range(6), pure=False)
    wait(results)
    client.retire_workers([leaving])
    assert [len(result) for result in client.gather(results)] == [1000 + n for n in range(6)]
    cluster = daskscope.get_cluster(client.scheduler_info()["id"])

    def check() -> None:
        death = only(daskscope.list_deaths(cluster["id"]))
        assert (death["worker"], death["name"], death["expected"]) == (leaving, "leaving", True)
        assert death["reason"] == "retired"
        assert (death["n_processing"], death["n_results_lost"]) == (0, 0)
        assert account_of(client).went == [leaving]
        found = daskscope.get_cluster(cluster["id"])
        assert (found["workers"], found["workers_lost"]) == (1, 0)
        assert datetime.fromisoformat(death["time"]) >= datetime.fromisoformat(found["created"])

    agrees(check)

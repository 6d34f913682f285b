"""Many kinds of work on one cluster, in both worlds: what the API tells of it is what was done."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import dask.config
import psutil
import pytest
from distributed import Client, Scheduler

import daskscope
from daskscope_lambdas.service.price_file import packaged
from tests.end_to_end.conftest import housed, serving
from tests.end_to_end.house import START_S, House, eventually
from tests.end_to_end.places import Place, in_stack
from tests.end_to_end.workloads.actors import Actors
from tests.end_to_end.workloads.array import Array
from tests.end_to_end.workloads.events import TOPIC, Events
from tests.end_to_end.workloads.frame import Frame
from tests.end_to_end.workloads.futures import Futures
from tests.end_to_end.workloads.hot import Hot
from tests.end_to_end.workloads.logs import Logs
from tests.end_to_end.workloads.spans import Spans
from tests.end_to_end.workloads.witness import Account, Witness, account_of
from tests.end_to_end.workloads.workload import Workload, agrees

pytestmark = pytest.mark.timeout(600)  # the first of them deploys

KINDS = ("actors", "array", "events", "frame", "futures", "hot", "logs", "spans")
ASKED = {
    "daskscope.analytics.tasks.transmit": True,
    "daskscope.analytics.events.allow": [TOPIC],
    "daskscope.analytics.profile.interval": "1s",
}
_NUMBERS = itertools.count(1)


@dataclass
class Ran:
    """A cluster on which all of it was done, still running, and what was seen there."""

    cluster_id: int
    client: Any
    workloads: dict[str, Workload]
    seen: Account


@pytest.fixture(scope="module", params=["embedded", pytest.param("aws", marks=pytest.mark.long)])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("matrix")
    with housed(folder) as house, ExitStack() as stack:
        if request.param == "aws":
            deployed = request.getfixturevalue("deployed")
            place: Place = stack.enter_context(in_stack(deployed, f"matrix-{next(_NUMBERS)}"))
        else:
            place = serving(house)
        stack.enter_context(dask.config.set(place.user | ASKED))
        client: Any = stack.enter_context(running(house))
        client.register_plugin(Witness())
        daskscope.register(client, name="matrix", tags={"team": "blue"})
        cluster_id = ready(client)
        workloads: dict[str, Workload] = {
            "actors": Actors(), "array": Array(), "events": Events(), "frame": Frame(), "futures": Futures(folder),
            "hot": Hot(), "logs": Logs(), "spans": Spans(),
        }  # fmt: skip
        for workload in workloads.values():
            workload.work(client)
        yield Ran(cluster_id, client, workloads, account_of(client))


@contextmanager
def running(house: House) -> Generator[Client]:
    """A scheduler and two workers with nannies; the environment of the second claims another version of toolz."""
    older = older_toolz(house.folder / "older")
    _, address = house.scheduler()
    house.worker(address, "alpha", "--nanny")
    house.worker(address, "beta", "--nanny", "--preload", str(older))
    with Client(address) as client:
        client.wait_for_workers(2, timeout=START_S)
        yield client


def older_toolz(folder: Path) -> Path:
    """A preload after which Dask takes toolz for an older one: newer Dasks ask the metadata, older ones the module."""
    metadata = folder / "toolz-0.0.1.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: toolz\nVersion: 0.0.1\n")
    preload = folder / "older.py"
    preload.write_text(f"import sys, toolz\nsys.path.insert(0, {str(folder)!r})\ntoolz.__version__ = '0.0.1'\n")
    return preload


def ready(client: Client) -> int:
    """The cluster's number, once it is known and its workers can send lines and profiles."""
    scheduler_id = client.scheduler_info()["id"]
    found = eventually(lambda: daskscope.get_cluster(scheduler_id), lambda cluster: cluster["workers"] == 2)

    def agents() -> list[str]:
        return [row["agent"] for row in daskscope.list_members(found["id"]) if row["role"] == "worker"]

    eventually(agents, lambda told: told == ["running"] * 2)
    return found["id"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_workload_is_told_as_it_was(ran: Ran, kind: str) -> None:
    agrees(lambda: ran.workloads[kind].check(ran.cluster_id))


def test_every_group_is_told_as_the_scheduler_counted(ran: Ran) -> None:
    def check() -> None:
        told, failed, scattered = Counter[str](), Counter[str](), Counter[str]()
        for group in daskscope.list_groups(ran.cluster_id):
            (scattered if group["prefix"] == "bytes" else told)[group["name"]] += group["n_tasks"]
            failed[group["name"]] += group["n_tasks_erred"]
        assert +failed == +ran.seen.failed
        assert told == ran.seen.done + ran.seen.failed + dependents(ran.client)
        assert scattered.total() == 2

    agrees(check)


def dependents(client: Any) -> Counter[str]:
    """Tasks that erred because of another, by group, as the scheduler has them."""
    found: Any = client.run_on_scheduler(_dependents)
    return Counter(found)


def _dependents(dask_scheduler: Scheduler) -> list[str]:
    tasks = [task for task in dask_scheduler.tasks.values() if task.state == "erred"]
    return [task.group.name for task in tasks if task.exception_blame is not task]


def test_seconds_and_bytes_are_those_of_dask(ran: Ran) -> None:
    def check() -> None:
        seconds: dict[str, Counter[str]] = {}
        nbytes = Counter[str]()
        for group in daskscope.list_groups(ran.cluster_id):
            seconds.setdefault(group["prefix"], Counter()).update(group["seconds"])
            nbytes[group["prefix"]] += group["bytes"]
        assert seconds.keys() >= ran.seen.seconds.keys()
        for prefix, actions in ran.seen.seconds.items():
            # Dask counts whole microseconds of each step, and so do we.
            assert dict(seconds[prefix]) == pytest.approx(dict(actions), abs=1e-3), prefix
            assert nbytes[prefix] == ran.seen.nbytes[prefix]

    agrees(check)


def test_computations_are_as_many_as_the_scheduler_made(ran: Ran) -> None:
    def check() -> None:
        assert len(daskscope.list_computations(ran.cluster_id)) == ran.seen.n_computations

    agrees(check)


def test_every_task_has_its_row(ran: Ran) -> None:
    def check() -> None:
        told = Counter[tuple[str, str]]()
        for row in daskscope.list_tasks(ran.cluster_id):
            # A try that failed is no end where another one follows.
            if (row["status"], row["group"]) != ("erred", "healing"):
                told[row["worker"], row["group"]] += row["weight"]
        assert told == ran.seen.done_by

    agrees(check)


def test_fine_metrics_add_up_to_the_schedulers_own(ran: Ran) -> None:
    def check() -> None:
        told = Counter[tuple[str, ...]]()
        for row in daskscope.list_metrics(ran.cluster_id):
            if row["context"] == "execute" and row["prefix"] != "N/A":
                told[row["context"], row["prefix"], row["activity"], row["unit"]] += row["value"]
        counted: Any = ran.client.run_on_scheduler(_executed)
        assert dict(told) == pytest.approx(counted, rel=1e-3, abs=1e-3)

    agrees(check)


def _executed(dask_scheduler: Scheduler) -> dict[tuple[str, ...], float]:
    metrics = dask_scheduler.cumulative_worker_metrics.items()
    return {key: value for key, value in metrics if isinstance(key, tuple) and key[0] == "execute"}


def test_members_are_those_that_are_there(ran: Ran) -> None:
    def check() -> None:
        versions = ran.client.get_versions()
        workers = ran.client.scheduler_info(n_workers=-1)["workers"]
        members = daskscope.list_members(ran.cluster_id)
        assert Counter(row["role"] for row in members) == {"scheduler": 1, "worker": 2, "client": 1}
        for row in members:
            assert row["left"] is None
            if row["role"] != "client":
                machine = (row["hardware"]["cores"], row["hardware"]["memory"])
                assert machine == (psutil.cpu_count(), psutil.virtual_memory().total)
            if row["role"] == "worker":
                worker = workers[row["id"]]
                assert (row["name"], row["host"]) == (worker["name"], worker["host"])
                assert (row["threads"], row["memory_limit"]) == (worker["nthreads"], worker["memory_limit"])
                assert row["python_path"] == sys.executable
                packages = versions["workers"][row["id"]]["packages"]
                theirs = {name: version for name, version in packages.items() if version and name != "python"}
                assert row["packages"].items() >= theirs.items()
            else:
                assert row["id"] == (ran.client.id if row["role"] == "client" else ran.client.scheduler.address)
        mismatched = {row["name"]: row["mismatched"] for row in members if row["mismatched"]}
        ours = versions["scheduler"]["packages"]["toolz"]
        assert mismatched == {"beta": {"toolz": ["0.0.1", ours]}}

    agrees(check)


def test_samples_grow_to_what_was_done(ran: Ran) -> None:
    def check() -> None:
        samples = daskscope.list_samples(ran.cluster_id)
        last = samples[-1]
        assert (last["workers"], last["threads"], last["clients"], last["workers_lost"]) == (2, 4, 1, 0)
        assert last["n_tasks"] == sum(group["n_tasks"] for group in daskscope.list_groups(ran.cluster_id))
        assert last["n_tasks_erred"] == ran.seen.failed.total()
        spent = sum(actions.total() for actions in ran.seen.seconds.values())
        assert sum(last["seconds"].values()) == pytest.approx(spent, abs=1e-2)
        assert 0 < last["managed"] <= last["memory"] <= last["memory_limit"]
        assert last["scheduler"]["memory"] > 0
        for name in ("messages", "bytes", "cpu_seconds", "slowest_seconds"):
            course = [sample["itself"][name] for sample in samples]
            assert course == sorted(course)
            assert course[-1] > 0

    agrees(check)


def test_the_cluster_says_who_it_is_and_what_nothing_cost(ran: Ran) -> None:
    found = daskscope.get_cluster(ran.cluster_id)
    assert (found["name"], found["tags"]) == ("matrix", {"team": "blue"})
    assert (found["workers"], found["threads"], found["clients"], found["status"]) == (2, 4, 1, "running")
    assert found["lost"] == {}
    assert not daskscope.list_deaths(ran.cluster_id)
    assert found["n_tasks_erred"] == ran.seen.failed.total()
    assert datetime.fromisoformat(found["created"]) <= datetime.fromisoformat(found["last_seen"])


def test_the_cost_is_an_estimate_for_these_machines_are_in_no_cloud(ran: Ran) -> None:
    def check() -> None:
        found = daskscope.get_cluster(ran.cluster_id)
        table = packaged().at(datetime.fromisoformat(found["created"]).timestamp())
        limit_gib = found["memory_limit"] / (1 << 30)
        of_an_hour = found["threads"] * table.core_hour + limit_gib * table.gib_hour
        cost = found["cost"]
        assert (cost["quality"], cost["currency"]) == ("estimated", "USD")
        assert cost["basis"].endswith(" GiB-hours at $0.00375: kinds of machine unknown")
        # Workers came a little after the scheduler, and a little before the plugin began to count their threads.
        counted = found["thread_seconds"] / 3600 / found["threads"] * of_an_hour
        assert 0 < 0.99 * counted <= cost["dollars"] <= 1.01 * of_an_hour * found["duration"] / 3600
        assert cost["failed"] is not None, "the metrics come with a later message"
        assert 0 < cost["failed"] < cost["idle"] + cost["failed"] <= 1.000001 * cost["dollars"]
        (row,) = daskscope.costs(by="user,cluster")
        assert (row["user"], row["cluster_id"], row["quality"]) == (found["user"], found["id"], "estimated")
        assert 0 < row["dollars"] <= 1.01 * of_an_hour * found["duration"] / 3600

    agrees(check)

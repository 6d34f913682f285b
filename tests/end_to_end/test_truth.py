"""What the API answers is what happened, as the client itself counted it."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import dask.array as da
import dask.datasets
import pytest
from dask.utils import key_split
from distributed import Client, Future, get_task_stream, wait

import daskscope
from tests.end_to_end.conftest import Cluster
from tests.end_to_end.house import eventually
from tests.end_to_end.places import environment

pytestmark = pytest.mark.timeout(600)  # the first of them deploys


def square(x: int) -> int:
    return x * x


def add(x: int, y: int) -> int:
    return x + y


def picky(x: int) -> float:
    if x % 3 == 0:
        raise ValueError(f"no {x % 2} today")
    return 1 / (x % 3 - 1)


def workload(client: Client) -> tuple[dict[str, list[Future]], Counter[tuple[str, str]]]:
    """A real mix: the futures of each function, and what they raised, by type and text."""
    frame = dask.datasets.timeseries(end="2000-01-15", freq="60s", partition_freq="1D")
    frame.shuffle("name", shuffle_method="p2p").groupby("name").x.mean().compute()
    grid = da.ones((400, 400), chunks=100)
    (grid + grid.T).sum().compute()
    squares = client.map(square, range(50))
    pairs = client.map(add, squares, squares[1:] + squares[:1])
    fussy = client.map(picky, range(30), pure=False)
    wait([*squares, *pairs, *fussy])
    raised = Counter[tuple[str, str]]()
    for future in fussy:
        error = future.exception()
        if error is not None:
            raised[type(error).__name__, repr(error)] += 1
    return {"square": squares, "add": pairs, "picky": fussy}, raised


def spent(stream: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Seconds per task prefix and action, from Dask's own task stream."""
    seconds: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for task in stream:
        if task["status"] == "OK":
            for step in task["startstops"]:
                seconds[key_split(task["key"])][step["action"]] += step["stop"] - step["start"]
    return seconds


def settled(cluster_id: int, n_tasks: int, n_failed: int) -> Callable[[], bool]:
    """Whether the lake has all of it: it follows the registry, in no promised order of messages."""

    def ask() -> bool:
        told = sum(row["count"] for row in daskscope.list_exceptions(cluster_id=cluster_id))
        computations = daskscope.list_computations(cluster_id)
        return (
            told == n_failed
            and sum(c["n_tasks"] for c in computations) == n_tasks
            and all(c["status"] != "running" for c in computations)
            and len(daskscope.list_events(cluster_id)) >= 2
        )

    return ask


def test_the_api_equals_what_the_client_counted(cluster: Cluster) -> None:
    client: Any = cluster.client  # whose methods Dask types as coroutines
    daskscope.register(client, name="truth", tags={"team": "blue"})
    recording: Any = get_task_stream(client=client)
    with recording as stream:
        futures, raised = workload(client)
    scheduler_id = client.scheduler_info()["id"]
    found = eventually(lambda: daskscope.get_cluster(scheduler_id), lambda c: c["n_tasks_erred"] == raised.total())
    eventually(settled(found["id"], found["n_tasks"], raised.total()), bool)

    # The cluster.
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    assert found["name"] == "truth"
    assert found["tags"] == {"team": "blue"}
    assert found["scheduler_id"] == scheduler_id
    assert found["status"] == "running"
    assert (found["workers"], found["threads"]) == (2, sum(worker["nthreads"] for worker in workers))
    assert found["memory_limit"] == sum(worker["memory_limit"] for worker in workers)
    assert 0 < found["memory"] <= found["peak_memory"] <= found["memory_limit"]
    assert found["clients"] == 1
    assert found["versions"]["distributed"] == client.get_versions()["client"]["packages"]["distributed"]
    (listed,) = daskscope.list_clusters()
    assert listed["id"] == found["id"]

    # Task groups, by prefix: how many, in which state, how long, doing what.
    computations = daskscope.list_computations(found["id"])
    groups = [group for computation in computations for group in computation["groups"]]
    tasks, states = Counter[str](), defaultdict[str, Counter[str]](Counter)
    seconds: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for group in groups:
        tasks[group["prefix"]] += group["n_tasks"]
        states[group["prefix"]].update(group["states"])
        for action, spent_s in group["seconds"].items():
            seconds[group["prefix"]][action] += spent_s
    assert {name: tasks[name] for name in futures} == {name: len(made) for name, made in futures.items()}
    executed = Counter(key_split(task["key"]) for task in stream.data)
    assert dict(tasks) == {name: n for name, n in executed.items() if n}
    for name, made in futures.items():
        statuses = Counter({"finished": "memory", "error": "erred"}[str(future.status)] for future in made)
        assert +states[name] == statuses
    truth = spent(stream.data)
    for prefix, actions in truth.items():
        assert dict(seconds[prefix]) == pytest.approx(dict(actions), abs=1e-6 * executed[prefix] * 2), prefix
    assert any("transfer" in actions for actions in truth.values())
    assert found["n_tasks"] == sum(executed.values())

    # Dependencies, and bytes where the client knows them.
    by_prefix = {group["prefix"]: group for group in groups}
    assert by_prefix["add"]["dependencies"] == ["square"]
    assert "shuffle-transfer" in {name.rpartition("-")[0] for name in by_prefix["shuffle-barrier"]["dependencies"]}
    held = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.task_prefixes["square"].nbytes_total)
    assert by_prefix["square"]["bytes"] == held

    # Exceptions, with text and traceback.
    told = Counter[tuple[str, str]]()
    for row in daskscope.list_exceptions(cluster_id=found["id"]):
        told[row["type"], row["text"]] += row["count"]
        assert row["prefix"] == "picky"
        assert "in picky" in row["traceback"]
    assert told == raised

    # The code around the calls is the code that stands above.
    snippets = {frame["text"] for c in computations for frame in c["code"]}
    assert inspect.getsource(workload) in snippets
    lines = {
        frame["text"].splitlines()[frame["line_in_code"] - 1].strip()
        for computation in computations
        for frame in computation["code"]
        if frame["text"] == inspect.getsource(workload)
    }
    assert "(grid + grid.T).sum().compute()" in lines

    # Events: both workers came.
    came = [event for event in daskscope.list_events(found["id"]) if event["action"] == "add-worker"]
    assert {event["worker"] for event in came} == set(client.scheduler_info(n_workers=-1)["workers"])

    # The command line says the same.
    for command, expected in (
        (["clusters"], daskscope.list_clusters()),
        (["computations", str(found["id"])], computations),
        (["exceptions", "--cluster", str(found["id"])], daskscope.list_exceptions(cluster_id=found["id"])),
    ):
        printed = json.loads(cli(*command, "--json", configured=cluster.place.user))
        assert [row["id"] for row in printed if "id" in row] == [row["id"] for row in expected if "id" in row]
        assert len(printed) == len(expected)


def cli(*arguments: str, configured: dict[str, str]) -> str:
    command = [sys.executable, "-m", "daskscope.cli", *arguments]
    told = os.environ | environment(configured)
    return subprocess.run(command, env=told, check=True, capture_output=True, text=True).stdout

"""`daskscope show`: a cluster or a computation, whole, for people or programs."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from daskscope import cli
from tests.plugin.api_server import Answer, ApiServer, error

ANSWERS = {
    name: {"verdict": "x", "sentence": f"Of {name}.\x1b"}
    for name in ("finished", "exceptions", "cost", "time", "running")
}
CLUSTER: dict[str, Any] = {
    "id": 12, "name": "etl\x1b[2J", "user": "ann", "status": "running", "created": "2026-11-21T08:00:00.000Z",
    "stopped": None, "memory": 1 << 30, "tasks": {"waiting": 3, "memory": 4}, "answers": ANSWERS,
    "completeness": {"sentence": "Complete: 360 of 360 messages.\x1b", "expected": 360, "missing": 0},
}  # fmt: skip
COMPUTATION: dict[str, Any] = {
    "id": "a-1", "cluster_id": 12, "status": "erred", "start": "2026-11-21T08:00:01.000Z", "duration": 2.0,
    "code": [{"text": "x.sum()\x1b[2J\ny = 1", "file": "job.py", "line": 3, "line_in_code": 1},
             {"text": None, "file": None, "line": None, "line_in_code": None}],
    "groups": [{"name": "sum-1", "n_tasks": 4, "n_tasks_erred": 1}],
}  # fmt: skip
DEATHS = [{"time": f"2026-11-21T08:00:0{n}.000Z", "worker": f"tcp://w{n}"} for n in range(5)]
ITEMS: dict[str, list[dict[str, Any]]] = {
    "clusters": [CLUSTER], "computations": [COMPUTATION], "exceptions": [], "deaths": DEATHS,
}  # fmt: skip


def api(path: str, query: dict[str, str]) -> Answer:
    what = path.rpartition("/")[2]
    if what in ITEMS:
        return 200, {"items": ITEMS[what], "cursor": None}
    if "/computations/" in path:
        return (200, COMPUTATION) if what == "a-1" else error(404, "not-found", f"No computation {what}.")
    return (
        (200, CLUSTER) if what in ("12", "Scheduler-1") else error(404, "not-found", f"No cluster {what}. Closest: 12.")
    )


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, ["show", *arguments])


def test_a_cluster_is_five_answers_and_what_is_known_and_its_latest(server: ApiServer) -> None:
    result = run("Scheduler-1")
    assert result.exit_code == 0, result.output
    assert server.asked[0][0] == "/api/v1/acme/clusters/Scheduler-1"
    assert result.stdout.splitlines() == [
        "Cluster 12, etl [2J, of ann",
        f"{server.url}/acme/analytics/clusters/Scheduler-1",
        "",
        "Did it finish?            Of finished. ",
        "What failed?              Of exceptions. ",
        "What did it cost?         Of cost. ",
        "What took the time?       Of time. ",
        "Why is it still running?  Of running. ",
        "",
        "Complete: 360 of 360 messages. ",
        "",
        "status   running",
        "created  2026-11-21 08:00:00",
        "memory   1.00 GiB",
        "tasks    waiting=3, memory=4",
        "",
        "Computations:",
        "id   status  start                stop  n_tasks  states  seconds  bytes",
        "a-1  erred   2026-11-21 08:00:01",
        "",
        "Deaths, the latest; `daskscope deaths 12` lists all:",
        "time                 worker    name  expected  reason  memory  memory_limit  n_processing  n_results_lost",
        *(f"2026-11-21 08:00:0{n}  tcp://w{n}" for n in range(5)),
    ]


def test_a_computation_is_its_figures_its_code_and_its_groups(server: ApiServer) -> None:
    assert run("a-1").stdout.splitlines() == [
        "Computation a-1 of cluster 12: erred",
        "",
        "start     2026-11-21 08:00:01",
        "duration  2.00 s",
        "",
        "job.py:3",
        "    x.sum() [2J",
        "    y = 1",
        "",
        "?:?",
        "    (the text is not kept)",
        "",
        "Task groups:",
        "name   n_tasks  n_tasks_erred  start  stop  seconds  bytes",
        "sum-1        4              1",
    ]
    assert json.loads(run("a-1", "--json").stdout) == COMPUTATION


def test_json_is_the_whole_record_of_the_latest(server: ApiServer) -> None:
    assert json.loads(run("latest", "--json", "--account", "other").stdout) == CLUSTER
    assert [path for path, _, _ in server.asked] == ["/api/v1/other/clusters", "/api/v1/other/clusters/12"]


@pytest.mark.parametrize(("which", "said"), [("13", "No cluster 13. Closest: 12."), ("b-1", "No computation b-1.")])
def test_what_is_not_there_says_what_was_looked_for(server: ApiServer, which: str, said: str) -> None:
    result = run(which)
    assert (result.exit_code, result.stdout, result.stderr) == (4, "", f"Error: {said}\n")

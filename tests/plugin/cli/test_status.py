"""`daskscope status`: five answers, and the exit code by how the cluster stands."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from daskscope import cli
from tests.plugin.api_server import Answer


def cluster(finished: str, failed: str) -> dict[str, Any]:
    verdicts = {"finished": finished, "exceptions": failed, "cost": "x", "time": "x", "running": "x"}
    answers = {name: {"verdict": verdict, "sentence": f"{name}: {verdict}."} for name, verdict in verdicts.items()}
    return {"id": 12, "name": "etl", "user": None, "answers": answers}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, ["status", *arguments])


@pytest.mark.parametrize(
    ("finished", "failed", "state", "code"),
    [
        ("finished", "none", "finished", 0),
        ("finished", "workers-lost", "finished", 0),
        ("finished", "failed", "failed", 10),
        ("unfinished", "none", "failed", 10),
        ("running", "none", "running", 11),
        ("running", "failed", "running", 11),
        ("lost", "failed", "lost", 12),
    ],
)
def test_the_exit_code_tells_how_it_stands(serve: Any, finished: str, failed: str, state: str, code: int) -> None:
    found = cluster(finished, failed)
    serve(lambda *_: (200, found))
    result = run("12")
    assert result.exit_code == code
    assert result.stdout.splitlines()[:3] == [
        f"Cluster 12, etl, of somebody unknown: {state}",
        "",
        f"Did it finish?            finished: {finished}.",
    ]
    told = run("12", "--json")
    assert told.exit_code == code
    assert json.loads(told.stdout) == {**found, "state": state}


def test_the_latest_is_the_one_that_started_last(serve: Any) -> None:
    def api(path: str, query: dict[str, str]) -> Answer:
        found = cluster("finished", "none")
        return 200, {"items": [found], "cursor": None} if path.endswith("/clusters") else found

    server = serve(api)
    assert run("latest").exit_code == 0
    assert [path for path, _, _ in server.asked] == ["/api/v1/acme/clusters", "/api/v1/acme/clusters/12"]


def test_of_no_cluster_it_says_how_to_make_one(serve: Any) -> None:
    serve(lambda *_: (200, {"items": [], "cursor": None}))
    result = run("latest")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "No cluster yet: `daskscope.register()`" in result.stderr

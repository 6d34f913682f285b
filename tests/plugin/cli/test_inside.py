import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from daskscope import cli
from tests.plugin.api_server import Answer, ApiServer

ITEMS: dict[str, list[dict[str, Any]]] = {
    "clusters": [{"id": 12}],
    "members": [{"role": "worker", "id": "tcp://w", "mismatched": {"numpy": ["1.26.4", "2.1.0"]}}],
    "workers": [{"address": "tcp://w"}],
    "deaths": [{"time": "2026-11-21T08:00:02.500Z", "worker": "tcp://w", "expected": False, "reason": "nanny-memory"}],
    "spans": [{"name": ["etl", "clean"], "n_tasks": 4}],
    "groups": [{"name": "sum-1", "n_tasks": 4}],
    "metrics": [{"span": None, "activity": "thread-cpu", "unit": "seconds", "value": 4.0}],
    "tasks": [{"group": "sum-1", "duration": 0.5}],
    "samples": [{"time": "2026-11-21T08:00:02.500Z", "workers": 2}],
    "profile": [{"prefix": None, "stack": ["main (job.py:1)"], "count": 40, "seconds": 0.4}],
}
MISMATCHES = [{"package": "numpy", "scheduler": "2.1.0", "others": [{"role": "worker", "version": "1.26.4", "n": 1}]}]
SUMS = {"total": {"count": 4_000, "seconds": 1_040.0}, "cut": {"count": 7, "seconds": 2.5}}


def api(path: str, query: dict[str, str]) -> Answer:
    what = path.rpartition("/")[2]
    more = {"profile": SUMS, "members": {"mismatches": MISMATCHES}}.get(what, {})
    return 200, {"items": ITEMS[what], "cursor": None, **more}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, arguments)


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        (["members", "12", "--role", "worker"], {"role": "worker"}),
        (["workers", "12"], {}),
        (["deaths", "12", "--expected"], {"expected": "true"}),
        (["spans", "12"], {}),
        (["groups", "12"], {}),
        (["metrics", "12", "--span", "a"], {"span": "a"}),
        (["metrics", "12", "--by", "prefix"], {"by": "prefix"}),
        (["tasks", "12", "--group", "sum-1"], {"group": "sum-1"}),
        (["samples", "12"], {}),
        (["samples", "12", "--worker", "tcp://w"], {"worker": "tcp://w"}),
        (["samples", "12", "--points", "60", "--since", "1h"], {"points": "60", "since": "3600"}),
        (["profile", "12", "--since", "2026-11-21 08:00", "--until", "1m"],
         {"since": "2026-11-21T08:00:00Z", "until": "60"}),
        (["profile", "12", "--prefix", "sum", "--by", "prefix"], {"prefix": "sum", "by": "prefix"}),
    ],
)  # fmt: skip
def test_options_reach_the_server(server: ApiServer, arguments: list[str], query: dict[str, str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    asked, told, _ = server.asked[0]
    assert (asked, {**told, "limit": ""}) == (f"/api/v1/acme/clusters/12/{arguments[0]}", {**query, "limit": ""})


@pytest.mark.parametrize("command", sorted(ITEMS.keys() - {"clusters"}))
def test_each_takes_the_latest_and_prints_json(server: ApiServer, command: str) -> None:
    result = run(command, "latest", "--json")
    assert json.loads(result.stdout) == ITEMS[command]
    assert server.asked[1][0] == f"/api/v1/acme/clusters/12/{command}"


def test_deaths_and_members_are_tables(server: ApiServer) -> None:
    head, row = run("deaths", "12").stdout.splitlines()
    assert head.split()[:5] == ["time", "worker", "name", "expected", "reason"]
    assert "nanny-memory" in row
    members = run("members", "12").stdout
    assert "numpy=1.26.4, 2.1.0" in members
    assert members.splitlines()[-1] == "numpy differs: scheduler 2.1.0, worker 1.26.4 (1)"


@pytest.mark.parametrize(
    "arguments", [["members"], ["members", "12", "--role", "nanny"], ["samples", "12", "--points", "601"], ["groups"]]
)
def test_wrong_use(server: ApiServer, arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2
    assert not server.asked

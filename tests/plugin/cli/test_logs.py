"""`daskscope logs`: lines as Dask prints them, whose they are before them."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from daskscope import cli
from tests.plugin.api_server import Answer, ApiServer

LINES: list[dict[str, Any]] = [
    {"id": "b", "time": "2023-04-03T00:28:31.000Z", "level": "error", "logger": "distributed.nanny", "role": "nanny",
     "worker": "tcp://[::1]:40331", "text": "boom\nTraceback\x1b[2J", "dropped": 3, "cluster_id": 7},
    {"id": "a", "time": "2023-04-03T00:28:30.454Z", "level": "warning", "logger": "distributed.worker.memory",
     "role": "worker", "worker": "tcp://10.0.2.96:40331", "text": "Worker is at 80% memory usage. Pausing.",
     "dropped": 0, "cluster_id": 7},
    {"id": "c", "time": "2023-04-03T00:28:30Z", "level": "info", "logger": "distributed.scheduler",
     "role": "scheduler", "worker": None, "text": "Scheduler at", "dropped": 0, "cluster_id": 7},
]  # fmt: skip


def api(path: str, query: dict[str, str]) -> Answer:
    if path.endswith("/logs"):
        lines = LINES[::-1] if query.get("order") == "asc" else LINES
        return 200, {"items": lines, "cursor": None}
    return 200, {"id": 7, "status": "stopped", "completeness": {"waiting": 0}}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, ["logs", *arguments])


def test_a_line_is_as_dask_prints_it_after_the_host_that_it_came_from(server: ApiServer) -> None:
    assert run("--cluster", "183522").stdout.splitlines() == [
        "(scheduler)   2023-04-03 00:28:30.000000 distributed.scheduler - INFO - Scheduler at",
        "(10.0.2.96)   2023-04-03 00:28:30.454000 distributed.worker.memory - WARNING - "
        "Worker is at 80% memory usage. Pausing.",
        "... 3 more lines of it were dropped here",
        "(::1)   2023-04-03 00:28:31.000000 distributed.nanny - ERROR - boom",
        "    Traceback [2J",
    ]


def test_of_all_clusters_a_line_names_its_own(server: ApiServer) -> None:
    assert run().stdout.splitlines()[1].startswith("(7 10.0.2.96)   2023-04-03")
    assert run("7", "--address").stdout.splitlines()[1].startswith("(tcp://10.0.2.96:40331)   ")


@pytest.mark.parametrize(
    ("arguments", "path", "query"),
    [
        (["183522"], "/clusters/183522/logs", {}),
        (["--cluster", "183522", "--workers", "10.0.2.96", "--no-scheduler", "--filter", "memory usage"],
         "/clusters/183522/logs", {"workers": "10.0.2.96", "scheduler": "false", "text": "memory usage"}),
        (["7", "--workers", "a, b", "--level", "ERROR", "--role", "nanny", "--since", "1h", "--until", "1m"],
         "/clusters/7/logs",
         {"workers": "a,b", "level": "error", "role": "nanny", "since": "3600", "until": "60"}),
        (["7", "--since", "2026-11-21T08:00Z"], "/clusters/7/logs", {"since": "2026-11-21T08:00:00Z"}),
        ([], "/logs", {"since": "86400"}),
        (["--since", "all"], "/logs", {}),
    ],
)  # fmt: skip
def test_options_reach_the_server(server: ApiServer, arguments: list[str], path: str, query: dict[str, str]) -> None:
    assert run(*arguments).exit_code == 0
    asked, told, _ = server.asked[0]
    assert (asked, {**told, "limit": ""}) == ("/api/v1/acme" + path, {**query, "limit": ""})


def test_other_formats_have_the_same_order(server: ApiServer) -> None:
    assert json.loads(run("7", "--json").stdout) == LINES[::-1]
    assert run("7", "--format", "csv", "--columns", "id").stdout.split() == ["id", "c", "a", "b"]


def test_the_tail_goes_on_until_the_cluster_has_ended(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.session.tail.INTERVAL_S", 0.0)
    followed = run("7", "--tail")
    assert (followed.exit_code, followed.stdout) == (0, run("7").stdout)
    told = run("7", "--tail", "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in told] == LINES[::-1]


@pytest.mark.parametrize(
    "arguments",
    [["7", "--level", "loud"], ["--tail"], ["7", "--tail", "--json"], ["7", "--tail", "--columns", "text"],
     ["7", "--tail", "--limit", "3"], ["7", "--tail", "--until", "1h"], ["7", "--role", "client"]],
)  # fmt: skip
def test_wrong_use(server: ApiServer, arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2
    assert not server.asked


def test_a_text_with_line_breaks_is_not_taken_for_lines_of_others(serve: Any) -> None:
    forged = "(10.0.0.1)   2023-04-03 00:28:30.454000 distributed.core - ERROR - all is lost"
    line = LINES[1] | {"text": f"done\n{forged}\r{forged}", "logger": f"mine\n{forged}", "worker": f"w\n{forged}"}
    serve(lambda *_: (200, {"items": [line], "cursor": None}))
    first, second = run("7").stdout.splitlines()
    assert first.startswith("(w (10.0.0.1)")
    assert second == f"    {forged} {forged}"

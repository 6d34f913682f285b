"""`daskscope cluster`: five answers, and the record for people or programs."""

import json
from typing import Any

from click.testing import CliRunner, Result

from daskscope import cli
from tests.plugin.api_server import Answer, ApiServer

CLUSTER: dict[str, Any] = {
    "id": 12, "name": "etl\x1b[2J", "status": "running", "created": "2026-11-21T08:00:00.000Z", "stopped": None,
    "memory": 1 << 30, "tasks": {"waiting": 3, "memory": 4},
    "answers": {name: {"verdict": "x", "sentence": f"Of {name}.\x1b"}
                for name in ("finished", "exceptions", "cost", "time", "running")},
    "completeness": {"sentence": "Complete: 360 of 360 messages.\x1b", "expected": 360, "missing": 0},
}  # fmt: skip


def api(path: str, query: dict[str, str]) -> Answer:
    return 200, {"items": [CLUSTER], "cursor": None} if path.endswith("/clusters") else CLUSTER


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, ["cluster", *arguments])


def test_five_answers_and_what_is_known(server: ApiServer) -> None:
    result = run("Scheduler-1")
    assert result.exit_code == 0, result.output
    assert server.asked[0][0] == "/api/v1/acme/clusters/Scheduler-1"
    assert result.stdout.splitlines() == [
        "Did it finish? Of finished. ",
        "What failed? Of exceptions. ",
        "What did it cost? Of cost. ",
        "What took the time? Of time. ",
        "Why is it still running? Of running. ",
        "Complete: 360 of 360 messages. ",
        "",
        "id       12",
        "name     etl [2J",
        "status   running",
        "created  2026-11-21 08:00:00",
        "memory   1.00 GiB",
        "tasks    waiting=3, memory=4",
    ]


def test_json_is_the_whole_record_of_the_latest(server: ApiServer) -> None:
    assert json.loads(run("latest", "--json", "--account", "other").stdout) == CLUSTER
    assert [path for path, _, _ in server.asked] == ["/api/v1/other/clusters", "/api/v1/other/clusters/12"]

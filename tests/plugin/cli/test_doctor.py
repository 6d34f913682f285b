"""`daskscope doctor`: what is well, what is not, and what to do."""

import json
import time
from pathlib import Path
from typing import Any

import dask.config
import pytest
from click.testing import CliRunner, Result

from daskscope import cli, login
from daskscope.api_version import VERSION_HEADER
from daskscope.cli import checks
from daskscope.connection import Connection
from tests.plugin.api_server import Answer, ApiServer, error

LOSING = {"id": 7, "name": "etl", "lost": {"buffer-full": 3, "failed": 0}}


def api(path: str, query: dict[str, str]) -> Answer:
    if path.endswith("/whoami"):
        return 200, {"account": "acme", "name": "lap\x1btop", "scopes": ["read"], "version": "0.1.0", "api": 1}
    return 200, {"items": [{"id": 6, "lost": {}}], "cursor": None}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, ["doctor", *arguments])


def states(result: Result) -> dict[str, str]:
    return {check: state for state, check, *_ in (line.split() for line in result.stdout.splitlines())}


def test_where_all_is_well_each_line_is_ok(server: ApiServer) -> None:
    result = run()
    assert result.exit_code == 0, result.output
    assert states(result) == dict.fromkeys(
        ("settings", "dask", "code", "extras", "spool", "server", "token", "clock", "report", "messages"), "ok"
    )
    assert "\x1b" not in result.stdout
    assert [each["state"] for each in json.loads(run("--json").stdout)] == ["ok"] * 10


def test_who_cannot_report_from_clusters_is_told(serve: Any) -> None:
    told = {"account": "acme", "name": "x", "scopes": ["read"], "user": "bea", "role": "viewer"}
    ours = {VERSION_HEADER: "0.1.0"}
    serve(lambda path, query: (200, told, ours) if path.endswith("/whoami") else api(path, query))
    result = run()
    assert (result.exit_code, states(result)["report"]) == (1, "fail")
    assert "bea is a viewer of account acme" in result.stdout


def test_what_is_amiss_says_what_to_do(serve: Any, data: Path) -> None:
    serve(lambda path, query: (200, {"items": [LOSING], "cursor": None}) if "limit" in query else api(path, query))
    (data / "spool").mkdir(parents=True)
    (data / "spool" / "a-b-00000001.gz.msg").write_bytes(b"")
    with dask.config.set({"distributed.diagnostics.computations.nframes": 0, "daskscope.analytics.tpyo": 1}):
        result = run()
    assert result.exit_code == 0
    found = states(result)
    assert {check for check, state in found.items() if state == "warn"} == {"settings", "code", "spool", "messages"}
    for said in ("tpyo", "set it to 2 or more", f"daskscope import {data / 'spool'}", "buffer-full 3", "show 7"):
        assert said in result.stdout


@pytest.mark.parametrize(
    ("status", "code", "check"), [(401, "not-logged-in", "token"), (500, "server-error", "server")]
)
def test_what_fails_is_an_exit_code(serve: Any, status: int, code: str, check: str) -> None:
    serve(lambda *_: error(status, code, "What, why."))
    result = run()
    assert result.exit_code == 1
    assert states(result)[check] == "fail"
    assert "What, why." in result.stdout


def test_a_server_that_is_gone_and_a_setting_that_cannot_be_used(serve: Any) -> None:
    with ApiServer(api).running() as gone:
        pass
    serve()
    assert states(run("--server", gone.url))["server"] == "fail"
    with dask.config.set({"daskscope.analytics.interval": "often"}):
        assert states(run())["settings"] == "fail"


def test_a_token_that_may_not_read_is_told_and_nothing_is_asked_with_it(serve: Any) -> None:
    told = {"account": "acme", "name": "x", "scopes": ["ingest"], "version": "0.1.0", "api": 1}
    serve(lambda path, _: (200, told) if path.endswith("/whoami") else error(403, "permission-denied", "No."))
    result = run()
    assert (result.exit_code, states(result)["token"]) == (0, "warn")
    assert "lists need one of scope read" in result.stdout


@pytest.mark.parametrize(("off_s", "state"), [(0, "ok"), (-3, "ok"), (3, "ok"), (-60, "warn"), (90, "warn")])
def test_clocks_that_are_apart_are_told(serve: Any, off_s: int, state: str) -> None:
    server = serve()
    with Connection(server.url) as connection:
        found = {each.check: each for each in checks.of_server(connection, clock=lambda: time.time() + off_s)}
    assert found["clock"].state == state


def test_a_login_that_others_may_read_is_warned_about(server: ApiServer) -> None:
    login.keep(login.Login(server=server.url, token="dks_asks", account="acme", user="ann"))
    (found,) = checks.of_login()
    assert (found.state, found.said) == ("ok", f"Logged in at {server.url} as ann, in account acme.")
    login.path().chmod(0o644)
    (found,) = checks.of_login()
    assert (found.state, "chmod 600" in found.said) == ("warn", True)
    assert states(run())["login"] == "warn"

"""`daskscope stop`: it says what will happen, asks, and prints one sentence."""

from typing import Any

import pytest
from click.testing import CliRunner, Result

from daskscope import cli
from tests.plugin.api_server import Answer, ApiServer, error

CLUSTER = {"id": 12, "name": "etl", "user": "ann", "answers": {"running": {"sentence": "Idle for 2 h."}}}


def api(path: str, query: dict[str, str]) -> Answer:
    if path.endswith("/close"):
        return 202, {"sentence": "Cluster 12 is asked to close."}
    return 200, {"items": [CLUSTER], "cursor": None} if path.endswith("/clusters") else CLUSTER


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(cli.scope, ["stop", *arguments], input=typed)


def asked_to_close(server: ApiServer) -> list[str]:
    return [path for path, _, _ in server.asked if path.endswith("/close")]


def test_with_yes_it_asks_nobody_and_says_one_sentence(serve: Any) -> None:
    server = serve()
    result = run("12", "--yes", "--reason", "nobody needs it")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "Cluster 12 is asked to close.\n", "")
    assert [path for path, _, _ in server.asked] == ["/api/v1/acme/clusters/12/close"]
    assert server.posted == [{"reason": "nobody needs it"}]


def test_it_says_which_cluster_that_is_and_asks(serve: Any) -> None:
    server = serve()
    result = run("Scheduler-1", typed="y\n")
    assert (result.exit_code, result.stdout) == (0, "Cluster 12 is asked to close.\n")
    assert "Cluster 12, 'etl' of ann: Idle for 2 h." in result.stderr
    assert "Running tasks and held results are lost" in result.stderr
    assert asked_to_close(server) == ["/api/v1/acme/clusters/12/close"]


@pytest.mark.parametrize("typed", ["n\n", "\n", ""])
def test_whatever_is_no_yes_closes_nothing(serve: Any, typed: str) -> None:
    server = serve()
    result = run("12", typed=typed)
    assert (result.exit_code, result.stdout) == (1, "")
    assert asked_to_close(server) == []


def test_latest_is_the_cluster_that_started_last(serve: Any) -> None:
    server = serve()
    assert run("latest", typed="y\n").exit_code == 0
    assert asked_to_close(server) == ["/api/v1/acme/clusters/12/close"]


def test_the_latest_is_not_closed_unseen(serve: Any) -> None:
    server = serve()
    result = run("latest", "--yes")
    assert result.exit_code == 2
    assert "name it by its number" in result.stderr
    assert server.asked == []


def test_account_and_server_can_be_named(serve: Any) -> None:
    named, configured = serve(), serve()
    assert run("12", "--yes", "--account", "other", "--server", named.url).exit_code == 0
    assert asked_to_close(named) == ["/api/v1/other/clusters/12/close"]
    assert configured.asked == []


@pytest.mark.parametrize(("status", "code"), [(400, 2), (401, 3), (403, 3), (404, 4), (409, 1)])
def test_a_refusal_is_one_line(serve: Any, status: int, code: int) -> None:
    serve(lambda *_: error(status, "code", "What, why."))
    result = run("12", "--yes")
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("Error: What, why.")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("status", ["stopped", "lost"])
def test_what_cannot_close_is_told_before_anything_is_asked(serve: Any, status: str) -> None:
    server = serve(lambda *_: (200, CLUSTER | {"status": status}))
    result = run("12", typed="y\n")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"Error: Cluster 12 cannot be asked to close: it is {status}. Idle for 2 h.\n"
    assert asked_to_close(server) == []

import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from daskscope import __version__, cli, errors
from tests.plugin.api_server import Answer, ApiServer, error

CLUSTER = {
    "id": 12,
    "name": "etl",
    "user": "ann",
    "status": "lost",
    "created": "2026-11-21T08:00:00.000Z",
    "workers": 3,
}
EXCEPTION = {
    "cluster_id": 12,
    "user": "ann",
    "type": "ValueError",
    "text": "no\x1b[31m amount\n" + "x" * 90,
    "count": 2,
}


def api(path: str, query: dict[str, str]) -> Answer:
    items = {"clusters": [CLUSTER], "exceptions": [EXCEPTION], "computations": [{"id": 1}], "events": [], "deaths": []}
    return 200, {"items": items[path.rpartition("/")[2]], "cursor": None}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, arguments)


def test_a_table_shows_what_a_list_holds(serve: Any) -> None:
    serve()
    result = run("clusters")
    assert result.exit_code == 0
    head, row = result.stdout.splitlines()
    assert head.split()[:5] == ["id", "name", "user", "status", "created"]
    assert row.split()[:6] == ["12", "etl", "ann", "lost", "2026-11-21", "08:00:00"]
    assert result.stderr == ""


def test_json_is_one_document_of_whole_records(serve: Any) -> None:
    serve()
    assert json.loads(run("exceptions", "--json").stdout) == [EXCEPTION]
    assert json.loads(run("events", "12", "--json").stdout) == []


def test_what_a_program_reads_is_not_cut_and_carries_no_escape_sequence(serve: Any) -> None:
    serve()
    text = run("exceptions").stdout
    assert "x" * 90 in text
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2


def test_an_empty_list_leaves_stdout_empty(serve: Any) -> None:
    serve()
    result = run("events", "12")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "path", "query"),
    [
        (["clusters"], "/clusters", {"since": "604800"}),
        (["clusters", "--since", "all", "--user", "ann"], "/clusters", {"user": "ann"}),
        (["clusters", "--since", "all", "--status", "lost"], "/clusters", {"status": "lost"}),
        (["clusters", "--until", "1h", "--kind", "LocalCluster", "--name", "etl", "--tag", "team=geo", "-q", "12",
          "--sort", "-cost"], "/clusters",
         {"since": "604800", "until": "3600", "kind": "LocalCluster", "name": "etl", "tag": "team=geo", "q": "12",
          "sort": "-cost"}),
        (["computations", "12"], "/clusters/12/computations", {}),
        (["computations", "--user", "ann", "--code", "f00", "--status", "erred", "--sort", "-duration"],
         "/computations",
         {"since": "604800", "user": "ann", "code": "f00", "status": "erred", "sort": "-duration"}),
        (["events", "Scheduler-1", "--topic", "all"], "/clusters/Scheduler-1/events", {"topic": "all"}),
        (["events", "--since", "2026-11-21", "--until", "1h"], "/events",
         {"since": "2026-11-21T00:00:00Z", "until": "3600"}),
        (["deaths", "--unexpected"], "/deaths", {"since": "604800", "expected": "false"}),
        (["exceptions", "--group", "--origin", "user"], "/exceptions",
         {"since": "604800", "group": "family", "origin": "user"}),
        (["exceptions"], "/exceptions", {"since": "604800"}),
        (["exceptions", "--cluster", "12"], "/exceptions", {"cluster": "12"}),
        (["exceptions", "--cluster", "12", "--since", "1h"], "/exceptions", {"cluster": "12", "since": "3600"}),
    ],
)  # fmt: skip
def test_options_reach_the_server(serve: Any, arguments: list[str], path: str, query: dict[str, str]) -> None:
    server = serve()
    assert run(*arguments).exit_code == 0
    asked, told, _ = server.asked[0]
    assert (asked, {**told, "limit": ""}) == ("/api/v1/acme" + path, {**query, "limit": ""})


@pytest.mark.parametrize("word", ["--account", "--workspace"])
def test_account_has_two_words(serve: Any, word: str) -> None:
    server = serve()
    assert run("clusters", word, "other", "--limit", "3").exit_code == 0
    assert server.asked[0][:2] == ("/api/v1/other/clusters", {"since": "604800", "limit": "3"})


def test_server_can_be_named(serve: Any) -> None:
    named, configured = serve(), serve()
    assert run("clusters", "--server", named.url).exit_code == 0
    assert named.asked
    assert not configured.asked


@pytest.mark.parametrize(
    "arguments", [["computations", "latest"], ["events", "latest"], ["exceptions", "--cluster", "latest"]]
)
def test_latest_is_the_cluster_that_started_last(serve: Any, arguments: list[str]) -> None:
    server = serve()
    assert run(*arguments).exit_code == 0
    assert server.asked[0][:2] == ("/api/v1/acme/clusters", {"limit": "1"})
    path, query, _ = server.asked[1]
    assert "12" in (*path.split("/"), query.get("cluster"))


def test_latest_of_none(serve: Any) -> None:
    serve(lambda *_: (200, {"items": [], "cursor": None}))
    result = run("events", "latest")
    assert result.exit_code == 4
    assert "No cluster yet" in result.stderr


@pytest.mark.parametrize(
    ("status", "code"), [(400, 2), (401, 3), (403, 3), (404, 4), (500, 1)]
)  # fmt: skip
def test_an_error_is_one_message_and_its_exit_code(serve: Any, status: int, code: int) -> None:
    serve(lambda *_: error(status, "code", "What, why."))
    result = run("clusters")
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith("Error: What, why.")
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_cluster_is_named_by_argument_or_option(serve: Any) -> None:
    server = serve()
    for arguments in (["events", "12"], ["events", "--cluster", "12"], ["events", "12", "--cluster", "12"]):
        assert run(*arguments).exit_code == 0
    assert {path for path, _, _ in server.asked} == {"/api/v1/acme/clusters/12/events"}


def test_exceptions_tell_by_exit_code_if_there_are_any(serve: Any) -> None:
    serve()
    found = run("exceptions", "--exit-code", "--json")
    assert (found.exit_code, json.loads(found.stdout)) == (10, [EXCEPTION])
    serve(lambda *_: (200, {"items": [], "cursor": None}))
    assert run("exceptions", "--exit-code").exit_code == 0


def test_a_later_server_has_an_exit_code_of_its_own(serve: Any) -> None:
    serve(lambda *_: (200, {"items": [], "cursor": None}, {"Daskscope-Api": "99", "Daskscope-Version": "9.0"}))
    result = run("clusters")
    assert result.exit_code == 6
    assert "Upgrade the client" in result.stderr


def test_how_long_to_wait_is_said_in_the_same_words_as_elsewhere(serve: Any) -> None:
    serve()
    assert run("clusters", "--timeout", "5m").exit_code == 0
    wrong = run("clusters", "--timeout", "soon")
    assert wrong.exit_code == 2
    assert "timeout is 'soon'; allowed:" in wrong.stderr


def test_unreachable_and_wrong_use(serve: Any) -> None:
    with ApiServer(api).running() as gone:
        pass
    serve()
    assert run("clusters", "--server", gone.url).exit_code == 5
    assert run("clusters", "--since", "soon").exit_code == 2
    assert run("clusters", "--server", "nonsense").exit_code == 2
    assert run("clusters", "--limit", "0").exit_code == 2
    assert run("clusters", "--status", "dead").exit_code == 2
    assert run("members").exit_code == 2
    assert run("clusters", "--json", "--format", "csv").exit_code == 2
    assert run("events", "12", "--cluster", "13").exit_code == 2
    assert run("nonsense").exit_code == 2


def test_every_daskscope_error_has_an_exit_code_of_the_documented_ones() -> None:
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.DaskscopeError)]
    made = [k("a", "b", "c") if k is errors.SettingsError else k("a") for k in kinds]
    assert {cli.Failure(problem).exit_code for problem in made} == {1, 2, 3, 4, 5, 6}


def test_an_interrupt_is_130(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    serve()
    monkeypatch.setattr("daskscope.session.Session.list_clusters", interrupted)
    assert run("clusters").exit_code == 130


def test_version() -> None:
    assert run("version").stdout == run("--version").stdout == __version__ + "\n"


def _entry_points(monkeypatch: pytest.MonkeyPatch, **commands: str) -> None:
    points = [EntryPoint(name, value, cli.GROUP) for name, value in commands.items()]

    def found(*, group: str, name: str | None = None) -> list[EntryPoint]:
        assert group == cli.GROUP
        return [point for point in points if name in (None, point.name)]

    monkeypatch.setattr("importlib.metadata.entry_points", found)


@click.command()
def late() -> None:
    """A command whose packages are missed only when it runs."""
    raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")


@pytest.mark.parametrize(
    ("points_to", "package"), [("no_such_package.serve:serve", "no_such_package"), (f"{__name__}:late", "uvicorn")]
)
def test_a_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch, points_to: str, package: str) -> None:
    _entry_points(monkeypatch, serve=points_to)
    result = run("serve")
    assert result.exit_code == 1
    assert result.stderr == f"Error: `daskscope serve` needs the package {package}: pip install 'daskscope[serve]'\n"


def test_help_says_how_to_get_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    _entry_points(monkeypatch, serve="no_such_package.serve:serve")
    assert "pip install 'daskscope[serve]'" in run("--help").stdout
    assert "pip install 'daskscope[serve]'" in run("serve", "--port", "1", "--help").stderr


def test_a_broken_installation_is_not_called_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    _entry_points(monkeypatch, serve="daskscope_no_such.serve:serve")
    assert isinstance(run("serve").exception, ModuleNotFoundError)


def test_help_names_every_command() -> None:
    text = run("--help").stdout
    for name in (*cli.COMMANDS, "serve", "demo"):
        assert f"\n  {name} " in text


PROGRAM = """
import sys
before = set(sys.modules)
import daskscope.cli
heavy = {"distributed", "httpx", "dask.array", "dask.dataframe", "numpy", "pandas", "tornado", "pyarrow", "duckdb"}
print(sorted(heavy & set(sys.modules)))
for name in daskscope.cli.COMMANDS:
    daskscope.cli.scope.get_command(None, name)
print(sorted(heavy & set(sys.modules)))
"""


def test_the_dask_command_loads_nothing_heavy_of_ours() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "[]"], "neither at first, nor where all commands are listed"


@pytest.mark.parametrize("command", [["daskscope.cli"], ["dask", "scope"]])
def test_it_is_reached_both_ways(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *command, "version"], capture_output=True, text=True, check=True)
    assert done.stdout == __version__ + "\n"

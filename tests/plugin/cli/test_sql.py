"""`daskscope sql`: a query goes to a lake on this machine, and what it finds is written like any list."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from daskscope import cli
from tests.plugin.api_server import Answer, ApiServer


class Lake:
    """Stands for the one that reads files: what it is asked is noted."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def sql(self, query: str, account: str, params: Any, since: Any, until: Any) -> pa.Table:
        self.asked.append((query, account, since, until))
        return pa.table({"n": [1, 2, 3], "what": ["=a", None, "c"]})

    def close(self) -> None:
        pass


def api(path: str, query: dict[str, str]) -> Answer:
    return 200, {}


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Lake:
    lake = Lake()
    monkeypatch.setattr("daskscope.direct._opener", lambda: lambda *_, **__: lake)
    return lake


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "here" / "lake" / "open").mkdir(parents=True)
    return str(tmp_path / "here")


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(cli.scope, ["sql", *arguments], input=typed)


def test_a_query_is_answered_by_the_lake_that_is_named(server: ApiServer, lake: Lake, folder: str) -> None:
    result = run("select 1", "--server", folder, "--since", "2026-11-20", "--json")
    assert json.loads(result.stdout) == [{"n": 1, "what": "=a"}, {"n": 2, "what": None}, {"n": 3, "what": "c"}]
    assert lake.asked == [("select 1", "acme", "2026-11-20T00:00:00Z", None)]
    assert run("select 1", "--server", folder, "--limit", "1").stdout.splitlines() == ["n  what", "1  =a"]


def test_a_query_may_stand_in_a_file(server: ApiServer, lake: Lake, folder: str, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("select 2")
    assert (
        run("--file", str(tmp_path / "q.sql"), "--server", folder, "--format", "csv").stdout.splitlines()[1] == "1,'=a"
    )
    assert run("--file", "-", "--server", folder, typed="select 3").exit_code == 0
    assert [query for query, *_ in lake.asked] == ["select 2", "select 3"]


def test_a_server_elsewhere_answers_no_sql_and_says_what_does(server: ApiServer) -> None:
    result = run("select 1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "s3://BUCKET/PREFIX" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["select 1", "--file", "-"], ["--file", "no-such.sql"]])
def test_wrong_use(server: ApiServer, arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2

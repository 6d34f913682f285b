"""A lake in place of a server, as far as the plugin goes: what is called, and what is not installed."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import daskscope
from daskscope import direct, errors


class Opened:
    """What an entry point gives, with an account `acme`."""

    def __init__(self, root: str, *, account: str | None = None, keys: str | None = None) -> None:
        self.opened, self.asked, self.is_open = (root, account, keys), list[tuple[Any, ...]](), True

    def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        self.asked.append((method, path, dict(query), body))
        if method != "GET":
            return 403, {"Content-Type": "application/json"}, json.dumps({"error": {"message": "Read alone."}}).encode()
        found: dict[str, Any] = (
            {"account": "acme"} if path.endswith("/whoami") else {"items": [{"id": 1}], "cursor": None}
        )
        return 200, {"Daskscope-Api": "1"}, json.dumps(found).encode()

    def sql(self, *asked: Any) -> pa.Table:
        self.asked.append(asked)
        return pa.table({"n": [1, 2]})

    def close(self) -> None:
        self.is_open = False


Entry = Callable[..., Any]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Opened]:
    lakes = list[Opened]()

    def opened(*given: Any, **options: Any) -> Opened:
        lakes.append(Opened(*given, **options))
        return lakes[-1]

    offered(monkeypatch, lambda: opened)
    return lakes


def offered(monkeypatch: pytest.MonkeyPatch, *loads: Entry) -> None:
    points = [type("Point", (), {"load": staticmethod(load)})() for load in loads]
    monkeypatch.setattr(
        direct.importlib.metadata, "entry_points", lambda *, group: points if group == direct.GROUP else []
    )


def test_a_bucket_is_asked_like_a_server(made: list[Opened]) -> None:
    with daskscope.connect("s3://bucket/prefix/", keys="ssm:/k") as session:
        found = session.list_events(7, topic="all")
        (lake,) = made
        assert (found, found.url) == ([{"id": 1}], None)
        assert lake.opened == ("s3://bucket/prefix", None, "ssm:/k")
        assert lake.asked == [
            ("GET", "/api/v1/whoami", {}, None),
            ("GET", "/api/v1/acme/clusters/7/events", {"topic": "all", "limit": "1000"}, None),
        ]
        with pytest.raises(errors.PermissionDenied, match=r"Read alone\."):
            session.close(7, reason="x")
        assert lake.asked[-1] == ("POST", "/api/v1/acme/clusters/7/close", {}, b'{"reason": "x"}')
        assert repr(session) == "<Session s3://bucket/prefix>"
    assert not lake.is_open


@pytest.mark.parametrize("inner", ["lake/open", "sealed", "lake/catalog", "seals"])
@pytest.mark.parametrize("form", [str, Path.as_uri, Path])
def test_a_folder_with_a_lake_is_one(made: list[Opened], tmp_path: Path, inner: str, form: Any) -> None:
    (tmp_path / inner).mkdir(parents=True)
    with daskscope.connect(form(tmp_path), account="team"):
        assert made[-1].opened == (str(tmp_path), "team", None)


def test_sql_is_answered_with_what_is_in_force(made: list[Opened]) -> None:
    with daskscope.connect("s3://bucket") as session:
        found = session.sql("SELECT ?", params=[5], since="1 hour", until="2026-11-21")
    assert found == [{"n": 1}, {"n": 2}]
    assert made[0].asked[-1] == ("SELECT ?", "acme", [5], 3600, "2026-11-21T00:00:00Z")


def missing(name: str) -> Entry:
    def load() -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    return load


def test_what_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, missing("duckdb"))
    with pytest.raises(ImportError, match=r"needs duckdb: pip install 'daskscope\[direct\]'"):
        daskscope.connect("s3://bucket")
    offered(monkeypatch)
    with pytest.raises(errors.ServerUnreachable, match=r"pip install 'daskscope\[direct\]'"):
        daskscope.connect("s3://bucket")


def test_a_module_of_our_own_that_is_missing_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, missing("daskscope_lambdas.gone"))
    with pytest.raises(ModuleNotFoundError, match="daskscope_lambdas"):
        daskscope.connect("s3://bucket")

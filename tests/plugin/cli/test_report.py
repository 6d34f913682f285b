"""`daskscope report`: what is kept on the server, and what is made of what the server knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.config
import pytest
from click.testing import CliRunner, Result

from daskscope import cli
from daskscope.cli import browser
from tests.plugin.report_server import ReportServer

HTML = b"<!doctype html><p>mine</p>"


@pytest.fixture
def server(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReportServer]:
    """Keeps two reports of `mine.html`, of which the second is private; the current folder has that file."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("mine.html").write_bytes(HTML)
    with ReportServer().running() as running:
        configured = {"server": running.url, "token": "secret-1", "data": str(data), "account": "acme"}
        with dask.config.set({"daskscope": configured}):
            yield running


def run(*arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(cli.scope, ["report", *arguments], input=typed)


def test_what_is_uploaded_has_its_address_on_stdout(server: ReportServer) -> None:
    result = run("upload", "mine.html", "--title", "nightly")
    assert (result.exit_code, result.stdout) == (0, f"{server.url}/acme/reports/1-{'k' * 22}\n")
    assert result.stderr == "Report 1 is for whoever has its address.\n"
    assert (server.announced[0]["title"], server.brought[0].n_bytes) == ("nightly", len(HTML))
    result = run("upload", "mine.html", "--private")
    assert result.stdout == f"{server.url}/acme/reports/2\n"
    assert result.stderr == "Report 2 is for members of the account alone.\n"
    assert json.loads(run("upload", "mine.html", "--json").stdout)["id"] == 3


def test_they_are_listed_with_whole_addresses(server: ReportServer) -> None:
    assert run("list").stdout == ""
    run("upload", "mine.html")
    head, row = run("list").stdout.splitlines()
    assert head.split() == [
        "id", "filename", "title", "user", "private", "size", "created", "expires", "status", "url"
    ]  # fmt: skip
    assert row.split()[-1] == f"{server.url}/acme/reports/1-{'k' * 22}"
    assert "26 B" in row
    assert json.loads(run("list", "--json").stdout)[0]["size"] == len(HTML)


def test_one_becomes_private_and_public_again(server: ReportServer) -> None:
    run("upload", "mine.html")
    assert run("private", "1").stdout == f"{server.url}/acme/reports/1\n"
    assert run("public", "1").stdout == f"{server.url}/acme/reports/1-{'k' * 22}\n"


def test_one_is_opened_in_the_browser_if_there_is_one(server: ReportServer, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, bool | None]] = []

    def show(url: str, wanted: bool | None) -> bool:
        opened.append((url, wanted))
        return True

    monkeypatch.setattr("daskscope.cli.report.show", show)
    run("upload", "mine.html")
    address = f"{server.url}/acme/reports/1-{'k' * 22}"
    for option, wanted in ((), None), (("--browser",), True), (("--no-browser",), False):
        assert run("open", "1", *option).stdout == f"{address}\n"
        assert opened.pop() == (address, wanted)
    assert not browser.show(address, False)


def test_one_is_saved_under_its_name_and_overwrites_nothing(server: ReportServer) -> None:
    run("upload", "mine.html")
    server.kept[1] |= {"size": len(server.content), "filename": "../kept.html"}
    assert run("download", "1").stdout == "kept.html\n"
    assert Path("kept.html").read_bytes() == server.content
    again = run("download", "1")
    assert again.exit_code == 2
    assert "kept.html is there already" in again.stderr
    assert "Say -o FILE." in again.stderr
    before = Path("mine.html").read_bytes()
    asked = run("download", "1", "-o", "mine.html", typed="n\n")
    assert (asked.exit_code, Path("mine.html").read_bytes()) == (1, before)
    assert "mine.html is there already: overwrite it" in asked.stderr
    assert run("download", "1", "-o", "mine.html", "--yes").exit_code == 0
    assert Path("mine.html").read_bytes() == server.content
    assert run("download", "1", "-o", "no/folder.html").exit_code == 1
    gone = run("download", "1", "--server", "http://127.0.0.1:1")
    assert (gone.exit_code, "No answer from http://127.0.0.1:1" in gone.stderr) == (5, True), "and no fault of a file's"


def test_one_is_deleted_after_it_was_asked(server: ReportServer) -> None:
    run("upload", "mine.html")
    refused = run("delete", "1", typed="n\n")
    assert refused.exit_code == 1
    assert "Report 1, 'mine.html' of ann: http" in refused.stderr
    assert list(server.kept) == [1]
    done = run("delete", "1", typed="y\n")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "It is [31m gone." in done.stderr
    assert not server.kept
    run("upload", "mine.html")
    server.kept[2] = server.kept.pop(2)
    assert run("delete", "2", "--yes").exit_code == 0


def made(serve: Any) -> Any:
    return serve(lambda *_: (200, HTML, {"Content-Type": "text/html; charset=utf-8"}))


def test_a_report_is_made_of_a_run(serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    server = made(serve)
    assert run("make", "12").stdout == "cluster-12.html\n"
    assert Path("cluster-12.html").read_bytes() == HTML
    assert run("make", "--computation", "c-1", "-o", "c.html", "--tasks").stdout == "c.html\n"
    assert [(path, query) for path, query, _ in server.asked] == [
        ("/api/v1/acme/clusters/12/report", {}), ("/api/v1/acme/computations/c-1/report", {"tasks": "true"})
    ]  # fmt: skip
    assert run("make", "12", "-o", "no/folder.html").exit_code == 1


def test_a_report_that_is_made_may_be_kept_at_once(server: ReportServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.connection.Connection.html", lambda *_: HTML)
    result = run("make", "12", "--upload", "--private")
    assert result.stdout == f"cluster-12.html\n{server.url}/acme/reports/1\n"
    assert server.announced[0]["title"] == "Cluster 12"


@pytest.mark.parametrize(
    "arguments",
    [
        ["make"], ["make", "12", "--computation", "c"], ["make", "12", "--private"], ["upload"],
        ["upload", "none.html"], ["upload", "."], ["open", "x"], ["delete", "0", "--yes"],
    ],
)  # fmt: skip
def test_wrong_use(server: ReportServer, arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2
    assert not server.asked


def test_what_the_server_refuses_is_told_with_its_exit_code(server: ReportServer) -> None:
    refusal = {
        "error": {"code": "permission-denied", "message": "This token may read; this needs one that may report."}
    }
    server.says["POST /api/v1/acme/reports"] = 403, refusal
    result = run("upload", "mine.html")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "needs one that may report" in result.stderr


def test_an_empty_file_is_no_report_and_nothing_is_announced(server: ReportServer) -> None:
    result = run("upload", "/dev/null")
    assert (result.exit_code, "this file is empty" in result.stderr) == (2, True)
    assert server.announced == []

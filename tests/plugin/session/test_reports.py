"""Reports of a session: brought, listed, changed, taken away; and files past the API, streamed, without the token."""

from __future__ import annotations

import hashlib
import os
import stat
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dask.config
import pytest

import daskscope
from daskscope import errors, transfer
from daskscope.collect.identity import system_user
from daskscope.progress import Progress
from daskscope.session.reports import MOST_TITLE
from daskscope_lambdas.service.report_checks import MAX_TITLE
from tests.plugin.report_server import ReportServer
from tests.plugin.test_progress import Terminal, screen

HTML = b"<!doctype html><title>r</title>" + b"x" * 200_000
LARGE = 60_000_000


@pytest.fixture
def keeping(data: Path) -> Iterator[Callable[..., ReportServer]]:
    """A server that keeps reports, as the configured one."""
    with ExitStack() as stack:

        def start(**options: Any) -> ReportServer:
            server = stack.enter_context(ReportServer(**options).running())
            configured = {"server": server.url, "token": "secret-1", "data": str(data), "account": "acme"}
            stack.enter_context(dask.config.set({"daskscope": configured}))
            return server

        yield start


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my report.html"
    path.write_bytes(HTML)
    return path


@pytest.mark.parametrize("form", [False, True], ids=["put", "form"])
def test_a_file_is_announced_brought_and_confirmed(keeping: Any, file: Path, form: bool) -> None:
    server = keeping(form=form)
    kept = daskscope.upload_performance_report(file, title="nightly")
    assert kept["url"] == kept.url == f"{server.url}/acme/reports/1-{'k' * 22}"
    assert kept["status"] == "kept"
    assert server.announced == [
        {"filename": "my report.html", "size_bytes": len(HTML), "private": False, "title": "nightly",
         "user": system_user()}
    ]  # fmt: skip
    (brought,) = server.brought
    assert (brought.n_bytes, brought.digest) == (len(HTML), hashlib.sha256(HTML).hexdigest())
    if form:
        assert list(brought.fields) == ["key", "Content-Type", "policy"]
    else:
        assert brought.headers["Content-Type"] == "text/html"
    assert [name for name, _ in server.asked] == [
        "POST /api/v1/acme/reports",
        f"{'POST' if form else 'PUT'} /api/v1/uploads/x",
        "POST /api/v1/acme/reports/1/uploaded",
    ]


def test_the_token_goes_to_the_api_and_nowhere_else(keeping: Any, file: Path, tmp_path: Path) -> None:
    server, elsewhere = keeping(form=True), ReportServer(form=True)
    with elsewhere.running():
        server.upload_url = f"{elsewhere.url}/bucket"
        daskscope.upload_performance_report(file)
        server.says["GET /api/v1/acme/reports/1"] = 200, {"url": "x", "size": len(elsewhere.content), "filename": "r",
                                                          "download_url": f"{elsewhere.url}/kept/file"}  # fmt: skip
        daskscope.download_performance_report(1, tmp_path / "got.html")
    assert [name for name, _ in elsewhere.asked] == ["POST /bucket", "GET /kept/file"]
    assert {token for _, token in elsewhere.asked} == {None}
    assert {token for _, token in server.asked} == {"Bearer secret-1"}


@pytest.mark.parametrize("form", [False, True], ids=["put", "form"])
def test_a_large_file_is_streamed_and_tells_how_far_it_is(
    keeping: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: bool
) -> None:
    server, path, times = keeping(form=form), tmp_path / "large.html", iter(range(10_000))
    with path.open("wb") as large:
        large.write(HTML)
        large.truncate(LARGE)
    watched: Any = Progress.__init__.__kwdefaults__
    monkeypatch.setitem(watched, "clock", lambda: float(next(times)))
    monkeypatch.setitem(watched, "shown", True)
    tracemalloc.start()
    try:
        daskscope.upload_performance_report(path)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert server.brought[0].n_bytes == LARGE
    assert peak_bytes < LARGE / 10
    out, said = capsys.readouterr()
    assert out == ""
    assert "30.00 MiB of 57.22 MiB uploaded" in said
    assert screen(said) == "", "it is wiped out at the end"


def test_what_takes_no_second_says_nothing(file: Path) -> None:
    out = Terminal()
    with Progress(None, "uploaded", stream=out, clock=lambda: 5.0) as progress, transfer.Outgoing(file, progress) as it:
        assert it.read() == HTML
    assert out.getvalue() == ""


def test_a_file_that_takes_for_ever_is_given_up(file: Path) -> None:
    times = iter([0.0, transfer.MOST_S, transfer.MOST_S + 1])
    with Progress() as progress, transfer.Outgoing(file, progress, lambda: next(times)) as outgoing:
        assert len(outgoing.read(10)) == 10
        with pytest.raises(errors.ServerUnreachable, match="not through after 60 minutes"):
            outgoing.read(10)


S3_SAYS = (
    b"<?xml version='1.0'?><Error><Code>EntityTooLarge</Code><Message>Your proposed upload exceeds the maximum allowed"
    b" size</Message></Error>"
)


@pytest.mark.parametrize(
    ("form", "status", "body", "said"),
    [
        (True, 400, S3_SAYS, "did not take the file: Your proposed upload exceeds the maximum allowed size"),
        (False, 403, {"error": {"code": "x", "message": "The upload's\x1b[31m time is over."}}, "The upload's .* over"),
        (False, 500, b"\xff" * 100_000, "did not take the file: HTTP 500 Internal Server Error"),
        (False, 301, b"", "HTTP 301"),
    ],
)
def test_whoever_keeps_files_refuses_with_a_reason(
    keeping: Any, file: Path, form: bool, status: int, body: Any, said: str
) -> None:
    server = keeping(form=form)
    server.says[f"{'POST' if form else 'PUT'} /api/v1/uploads/x"] = status, body
    with pytest.raises(errors.ServerError, match=said) as caught:
        daskscope.upload_performance_report(file)
    assert "\x1b" not in str(caught.value)
    assert "sig=" not in str(caught.value), "the address opens what it leads to"
    assert len(server.asked) == 2, "nothing is confirmed"


@pytest.mark.parametrize(
    ("place", "status", "code", "kind"),
    [
        ("reports", 403, "permission-denied", errors.PermissionDenied),
        ("reports", 413, "too-large", errors.TooLarge),
        ("reports/1/uploaded", 422, "bad-report", errors.BadRequest),
    ],
)
def test_the_server_refuses_with_a_reason(
    keeping: Any, file: Path, place: str, status: int, code: str, kind: type[Exception]
) -> None:
    server = keeping()
    server.says[f"POST /api/v1/acme/{place}"] = status, {"error": {"code": code, "message": "No, for a reason."}}
    with pytest.raises(kind, match=r"^No, for a reason\.$"):
        daskscope.upload_performance_report(file)


@pytest.mark.parametrize(
    "way",
    [
        {}, {"method": "PATCH", "url": "x", "fields": {}}, {"method": "PUT", "url": 7, "fields": {}},
        {"method": "PUT", "url": "file:///x", "fields": {}}, {"method": "PUT", "url": "http://[x", "fields": {}},
        {"method": "PUT", "url": "ftp://127.0.0.1/x", "fields": {}}, {"method": "POST", "url": "x", "fields": None},
    ],
)  # fmt: skip
def test_a_way_to_upload_that_is_none(keeping: Any, file: Path, way: dict[str, Any]) -> None:
    server = keeping()
    server.says["POST /api/v1/acme/reports"] = 201, {"id": 1, "upload": way}
    with pytest.raises(errors.ServerError, match=server.url):
        daskscope.upload_performance_report(file)
    assert not server.brought


def test_a_server_that_is_encrypted_sends_nobody_to_one_that_is_not(file: Path) -> None:
    with (
        Progress() as progress,
        transfer.Outgoing(file, progress) as outgoing,
        pytest.raises(errors.ServerError, match="goes unencrypted"),
    ):
        transfer.send(outgoing, {"method": "PUT", "url": "http://127.0.0.1:1/x", "fields": {}}, "https://acme.test")


def test_nobody_keeps_files_there(keeping: Any, file: Path) -> None:
    keeping().upload_url = "http://127.0.0.1:1/bucket"
    with pytest.raises(errors.ServerUnreachable, match=r"The way to http://127\.0\.0\.1:1, where reports are kept"):
        daskscope.upload_performance_report(file)


def test_a_file_that_is_not_there(keeping: Any, tmp_path: Path) -> None:
    server = keeping()
    with pytest.raises(FileNotFoundError):
        daskscope.upload_performance_report(tmp_path / "none.html")
    assert not server.asked


def test_they_are_listed_changed_and_deleted(keeping: Any, file: Path) -> None:
    server = keeping()
    daskscope.upload_performance_report(file)
    daskscope.upload_performance_report(file, private=True)
    found = daskscope.list_performance_reports()
    public, private = f"{server.url}/acme/reports/1-{'k' * 22}", f"{server.url}/acme/reports/2"
    assert [(each["filename"], each["private"], each["url"]) for each in found] == [
        ("my report.html", False, public), ("my report.html", True, private)
    ]  # fmt: skip
    assert found.url == f"{server.url}/acme/reports"
    assert public in repr(found), "an address is of use whole"
    assert daskscope.change_performance_report(1, private=True)["url"] == f"{server.url}/acme/reports/1"
    assert daskscope.change_performance_report(2, private=False).url == f"{server.url}/acme/reports/2-{'k' * 22}"
    assert daskscope.delete_performance_report(1)["id"] == 1
    assert [each["id"] for each in daskscope.list_performance_reports()] == [2]


@pytest.mark.parametrize(
    ("called", "saved"),
    [
        ("dask-report.html", "dask-report.html"), ("../../.bashrc", "bashrc"), ("C:\\x\\r.html", "r.html"),
        ("a\x1b[2J\nb.html", "a_2J_b.html"), ("..", "dask-report.html"), ("é" * 300, "é" * 100),
    ],
)  # fmt: skip
def test_what_is_saved_is_called_as_it_was_but_for_what_is_no_name(
    keeping: Any, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: str, saved: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    server = keeping()
    daskscope.upload_performance_report(file)
    server.kept[1] |= {"filename": called, "size": len(server.content)}
    assert daskscope.download_performance_report(1) == Path(saved)
    assert Path(saved).read_bytes() == server.content
    assert [each.name for each in Path().iterdir()] == [saved]
    assert sorted(each.name for each in tmp_path.iterdir() if each.is_file()) == ["my report.html"]


def test_what_is_there_is_overwritten_where_it_was_named(
    keeping: Any, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = keeping()
    daskscope.upload_performance_report(file)
    server.kept[1]["size"] = len(server.content)
    with pytest.raises(FileExistsError, match=r"my report\.html is there already"):
        daskscope.download_performance_report(1)
    assert file.read_bytes() == HTML
    assert daskscope.download_performance_report(1, file) == file
    assert file.read_bytes() == server.content


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
@pytest.mark.parametrize(("private", "mode"), [(True, 0o600), (False, 0o640)])
def test_a_private_one_is_saved_for_oneself(keeping: Any, file: Path, tmp_path: Path, private: bool, mode: int) -> None:
    server = keeping()
    daskscope.upload_performance_report(file, private)
    server.kept[1]["size"] = len(server.content)
    before = os.umask(0o027)
    try:
        saved = daskscope.download_performance_report(1, tmp_path / "got.html")
    finally:
        os.umask(before)
    assert stat.S_IMODE(saved.stat().st_mode) == mode


def test_a_title_that_no_server_takes_is_told_before_anything_is_sent(keeping: Any, file: Path) -> None:
    server = keeping()
    assert MOST_TITLE == MAX_TITLE
    daskscope.upload_performance_report(file, title="x" * MOST_TITLE)
    server.asked.clear()
    with pytest.raises(errors.SettingsError, match=r"title is 'x{20}\.\.\. \(201 characters\)'"):
        daskscope.upload_performance_report(file, title="x" * (MOST_TITLE + 1))
    assert not server.asked


@pytest.mark.parametrize(("status", "told"), [(200, 10), (200, 10_000), (404, None)])
def test_a_file_that_comes_otherwise_than_told_is_not_kept(
    keeping: Any, file: Path, tmp_path: Path, status: int, told: int | None
) -> None:
    server = keeping()
    daskscope.upload_performance_report(file)
    server.kept[1]["size"] = told or len(server.content)
    server.says["GET /kept/file"] = status, server.content
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(errors.ServerError, match="did not give the file" if status == 404 else "sent another file"):
        daskscope.download_performance_report(1, tmp_path / "got.html")
    assert sorted(tmp_path.rglob("*")) == before, "nothing is left half done"


def test_one_whose_file_is_not_there_yet(keeping: Any, file: Path, tmp_path: Path) -> None:
    server = keeping()
    server.says["GET /api/v1/acme/reports/1"] = 200, {"id": 1, "url": "x", "size": 7}
    with pytest.raises(errors.ServerError, match="its file is not there, or not yet"):
        daskscope.download_performance_report(1, tmp_path / "got.html")


def test_a_lake_without_its_server_keeps_none(tmp_path: Path, file: Path) -> None:
    (tmp_path / "lake" / "catalog").mkdir(parents=True)
    with daskscope.connect(tmp_path, account="acme") as lake:
        for ask in (lake.list_performance_reports, lambda: lake.upload_performance_report(file)):
            with pytest.raises(errors.BadRequest, match="a lake without its server"):
                ask()


@pytest.mark.parametrize(
    ("asked", "path", "name"),
    [
        ({"cluster_id": 12}, "clusters/12/report", "cluster-12.html"),
        ({"cluster_id": "Scheduler/1"}, "clusters/Scheduler%2F1/report", "1.html"),
        ({"computation_id": "c-1", "tasks": True}, "computations/c-1/report", "computation-c-1.html"),
    ],
)
def test_a_report_of_what_is_known(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], path: str, name: str
) -> None:
    html = b"<!doctype html><p>known</p>"
    server = serve(lambda *_: (200, html, {"Content-Type": "text/html; charset=utf-8"}), account="acme")
    monkeypatch.chdir(tmp_path)
    assert daskscope.report(**asked) == Path(name)
    assert Path(name).read_bytes() == html
    assert daskscope.report(**asked, filename="mine.html").read_bytes() == html
    assert server.asked[0][:2] == (f"/api/v1/acme/{path}", {"tasks": "true"} if asked.get("tasks") else {})


def test_a_report_needs_one_thing_to_report_on(serve: Any) -> None:
    server = serve(lambda *_: (200, {}))
    with pytest.raises(errors.SettingsError, match="cluster_id is None"):
        daskscope.report()
    with pytest.raises(errors.SettingsError, match="computation_id is 'c'"):
        daskscope.report(1, "c")
    assert not server.asked


def test_what_is_no_report_is_not_written(serve: Any, tmp_path: Path) -> None:
    answers = iter([(200, {"items": []}), (404, {"error": {"code": "not-found", "message": "No cluster 9."}})])
    serve(lambda *_: next(answers), account="acme")
    with pytest.raises(errors.ServerError, match="without HTML: is it a daskscope server"):
        daskscope.report(9, filename=tmp_path / "r.html")
    with pytest.raises(errors.NotFound, match=r"No cluster 9\."):
        daskscope.report(9, filename=tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()

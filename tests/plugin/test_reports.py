"""`performance_report()` around real work: Dask's report is there and kept, and the block is never touched by it."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dask.config
import pytest
from distributed import Client

import daskscope
from daskscope import errors
from tests.plugin.report_server import ReportServer
from tests.plugin.rig import UNHURRIED, Cluster, inc, running

LOCAL: dict[str, Any] = {
    "n_workers": 1,
    "threads_per_worker": 1,
    "processes": False,
    "protocol": "tcp",
    "host": "127.0.0.1",
    "dashboard_address": "127.0.0.1:0",
}


@pytest.fixture
def keeping(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ReportServer]]:
    """A server that keeps reports, as the configured one; and a folder of one's own to work in."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with ExitStack() as stack:

        def start(**options: Any) -> ReportServer:
            server = stack.enter_context(ReportServer(**options).running())
            configured = {"server": server.url, "token": "secret-1", "data": str(data), "account": "acme"}
            stack.enter_context(dask.config.set({"daskscope": configured}))
            return server

        yield start


@pytest.fixture
def client() -> Iterator[Client]:
    with dask.config.set(UNHURRIED), Client(**LOCAL) as started:
        yield started


def scheduler_of(client: Client) -> Any:
    """Of a cluster in this process."""
    cluster: Any = client.cluster
    return cluster.scheduler


async def made_at_once(code: str = "", mode: str | None = None, **_: Any) -> str:
    """In place of Dask's report, whose making takes a second."""
    return f"<!doctype html><title>{mode}</title><pre>{code}</pre>"


@pytest.fixture
def quick(client: Client) -> Client:
    scheduler_of(client).handlers["performance_report"] = made_at_once
    return client


def test_a_block_is_reported_on_and_the_report_is_kept(
    keeping: Any, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dask's real report, which needs no network, of the block's own code; also of a block that raises."""
    server, report = keeping(), daskscope.performance_report(title="nightly")

    def block() -> None:
        with report as entered:
            assert entered is report
            assert client.submit(inc, 1).result() == 2
            assert report.url is None
            raise ValueError("the user's own")

    with pytest.raises(ValueError, match="the user's own"):
        block()
    assert report.url == f"{server.url}/acme/reports/1-{'k' * 22}"
    assert report.filename == str(tmp_path / "work" / "dask-report.html")
    html = Path(report.filename).read_text()
    assert "Dask Performance Report" in html
    assert "with report as entered:" in html, "the calling code is that of the block"
    assert not re.search(r"<script[^>]* src=", html), "of the network it wants its icon, and nothing to draw"
    assert server.brought[0].n_bytes == len(html.encode())
    assert [server.announced[0][name] for name in ("filename", "title", "private")] == [
        "dask-report.html", "nightly", False
    ]  # fmt: skip
    out, err = capsys.readouterr()
    assert out == f"Performance Report Available at: {report.url}\n"
    assert "daskscope: " not in err


@pytest.mark.asyncio
async def test_a_block_of_an_asynchronous_client(keeping: Any, cluster: Cluster) -> None:
    server, report = keeping(), daskscope.performance_report("mine.html", private=True)
    cluster.scheduler.handlers["performance_report"] = made_at_once
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += not server.brought
            await asyncio.sleep(0)

    async def block() -> None:
        async with report:
            assert await cluster.client.submit(inc, 1) == 2
            raise ValueError("the user's own")

    ticking = asyncio.create_task(tick())
    with pytest.raises(ValueError, match="the user's own"):
        await block()
    ticking.cancel()
    assert report.url == f"{server.url}/acme/reports/1"
    assert "async with report:" in Path("mine.html").read_text()
    assert ticks > 1, "the event loop goes on while it is uploaded"


def test_arguments_are_passed_on(keeping: Any, quick: Client, tmp_path: Path) -> None:
    server = keeping()

    def of_a_helper() -> Any:
        return daskscope.performance_report(tmp_path / "new" / "r.html", True, "team", mode="cdn", stacklevel=2)

    def work() -> None:
        with of_a_helper():
            quick.submit(inc, 1).result()

    work()
    text = (tmp_path / "new" / "r.html").read_text()
    assert "<title>cdn</title>" in text
    assert "server = keeping()" in text, "two frames up is who called work()"
    assert server.asked[0][0] == "POST /api/v1/team/reports"
    assert server.announced[0]["private"] is True


def test_a_private_one_because_the_account_wants_no_others_says_so(
    keeping: Any, quick: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    server = keeping()
    server.says["POST /api/v1/acme/reports/1/uploaded"] = 200, {"id": 1, "url": "acme/reports/1", "private": True}
    with daskscope.performance_report() as report:
        pass
    assert capsys.readouterr().out == (
        f"Performance Report Available at: {report.url} (private: the account allows no public ones)\n"
    )


def later(err: str, *options: str, server: str | None = None) -> str:
    """The reason for which nothing was uploaded, out of the one sentence that is said."""
    if server := server or dask.config.get("daskscope.server", None):
        options = (*options, "--server", server)
    path = Path("dask-report.html").absolute()
    assert Path(path).read_bytes().startswith(b"<!doctype html>"), "the file stays"
    command = shlex.join(["daskscope", "report", "upload", *options, str(path)])
    found = re.fullmatch(
        rf"daskscope: The performance report is in {path} and was not uploaded\. (.*) To upload it later: {command}\n",
        err,
    )
    assert found, err
    return found[1]


def reported(capsys: pytest.CaptureFixture[str], **options: Any) -> tuple[Any, str]:
    """What a block of work gives that goes well, and what is said of it."""
    capsys.readouterr()
    with daskscope.performance_report(**options) as report:
        done = "the block is done"
    assert done
    assert report.url is None
    out, err = capsys.readouterr()
    assert out == ""
    return report, err


def test_without_a_server_the_file_stays_and_the_block_goes_on(
    keeping: Any, quick: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    _, err = reported(capsys, private=True, account="team")
    assert later(err, "--private", "--account", "team").startswith("No server: ")
    with dask.config.set({"daskscope.server": "http://127.0.0.1:1"}):
        _, err = reported(capsys)
        assert later(err).startswith("No answer from http://127.0.0.1:1 ")
        _, err = reported(capsys, title="to see")
        assert later(err, "--title", "to see").startswith("No answer from http://127.0.0.1:1 ")
    with dask.config.set({"daskscope.server": "nowhere at all"}):
        _, err = reported(capsys)
    assert later(err).startswith("daskscope.server is '(not shown)'")


def test_who_names_another_account_is_told_theirs(
    keeping: Any, quick: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    server = keeping()
    refused = {"error": {"code": "not-found", "message": "No account climate for this token."}}
    server.says["POST /api/v1/climate/reports"] = 404, refused
    theirs = [{"account": "acme", "role": "member"}, {"account": "beta", "role": "viewer"}]
    server.says["GET /api/v1/whoami"] = 200, {"account": "acme", "user": "ann", "accounts": theirs}
    _, err = reported(capsys, account="climate")
    assert later(err, "--account", "acme") == "No account climate for this token. ann is in acme, beta."


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("POST /api/v1/acme/reports", (403, {"error": {"code": "x", "message": "This token may not\x1b[31m report."}})),
        ("PUT /api/v1/uploads/x", (403, {"error": {"code": "x", "message": "The upload's time is over."}})),
        ("POST /api/v1/acme/reports/1/uploaded", (422, {"error": {"code": "bad-report", "message": "It is no HTML."}})),
        ("POST /api/v1/acme/reports", (200, [])),
        ("POST /api/v1/acme/reports/1/uploaded", (200, b"\xff")),
    ],
)
def test_who_is_refused_is_told_why_and_the_block_goes_on(
    keeping: Any, quick: Client, capsys: pytest.CaptureFixture[str], place: str, said: tuple[int, Any]
) -> None:
    server = keeping()
    server.says[place] = said
    _, err = reported(capsys)
    reason = later(err)
    assert "\x1b" not in err
    expected = said[1]["error"]["message"].replace("\x1b", " ") if isinstance(said[1], dict) else "HTTP 200"
    assert expected in reason


def test_whatever_fails_at_the_upload_raises_nothing(
    keeping: Any, quick: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping()

    def fails(*_: Any) -> None:
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr("daskscope.transfer.send", fails)
    _, err = reported(capsys)
    assert later(err) == "RuntimeError: nobody thought of this"


def test_who_interrupts_the_upload_is_told_how_to_do_it_later(
    keeping: Any, quick: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("daskscope.transfer.send", interrupted)
    with pytest.raises(KeyboardInterrupt), daskscope.performance_report():
        pass
    assert later(capsys.readouterr().err) == "It was interrupted."


def test_a_report_that_dask_cannot_make_raises_nothing(
    keeping: Any, quick: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    server = keeping()
    scheduler = scheduler_of(quick)

    async def fails(**_: Any) -> str:
        raise RecursionError("a worker died meanwhile")

    scheduler.handlers["performance_report"] = fails
    _, err = reported(capsys)
    assert err.startswith(
        "daskscope: Dask could not make its performance report (RecursionError: a worker died meanwhile)"
    )
    assert "`daskscope report make`, with its number, makes one" in err
    assert not server.asked
    scheduler.handlers["get_task_stream"] = fails
    with pytest.raises(ValueError, match="own"), daskscope.performance_report() as report:
        raise ValueError("the user's own")
    assert report.url is None
    assert capsys.readouterr().err.count("Dask could not make its performance report") == 1


def test_a_cluster_that_is_gone_by_the_end_of_the_block_is_told(
    keeping: Any, quick: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    keeping()
    with dask.config.set({"daskscope.server": "http://127.0.0.1:1"}):
        registered: Any = daskscope.register(quick)
        capsys.readouterr()
        with daskscope.performance_report() as report:
            quick.close()
    assert report.url is None
    err = capsys.readouterr().err
    assert "(the cluster was closed, or its scheduler lost, within the block: close it after the block)" in err
    assert f"`daskscope report make {registered.cluster}`" in err


def test_the_client_is_the_one_from_before_the_block(keeping: Any, quick: Client) -> None:
    keeping()
    with Client(**LOCAL) as other:
        scheduler_of(other).handlers.pop("performance_report")
        with quick.as_current():
            report = daskscope.performance_report()
            report.__enter__()
        assert Client.current() is other
        report.__exit__(None, None, None)
    assert report.url


def test_where_no_file_can_come_it_comes_elsewhere(
    keeping: Any, quick: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = keeping()
    (tmp_path / "no-folder").write_text("a file")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with daskscope.performance_report(tmp_path / "no-folder" / "r.html") as report:
        said = capsys.readouterr().err
    assert f"r.html cannot be written, so the performance report comes to {report.filename}." in said
    assert Path(report.filename).read_text().startswith("<!doctype html>")
    assert Path(report.filename).parent.parent == tmp_path
    assert report.url
    assert server.announced[0]["filename"] == "r.html"


def test_a_folder_of_that_name_is_called_one(
    keeping: Any, quick: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keeping()
    with daskscope.performance_report(tmp_path / "work") as report:
        pass
    assert f"{tmp_path / 'work'} is a folder, so the performance report comes to {report.filename}." in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"filename": "s3://bucket/r.html"}, "filename"), ({"filename": "r.html.gz"}, "filename"),
        ({"filename": ""}, "filename"), ({"filename": None}, "filename"), ({"filename": b"r.html"}, "filename"),
        ({"title": "x" * 201}, "title"), ({"title": "a\nb"}, "title"), ({"title": 7}, "title"),
        ({"private": "yes"}, "private"), ({"mode": "server"}, "mode"),
        ({"account": "Not A Name"}, "account"), ({"account": "a", "workspace": "b"}, "workspace"),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_used_are_told_before_the_work(options: dict[str, Any], key: str) -> None:
    with pytest.raises(errors.SettingsError) as caught:
        daskscope.performance_report(**options)
    assert caught.value.key.removeprefix("daskscope.") == key


def test_without_a_client_it_is_told_before_the_work() -> None:
    with pytest.raises(errors.DaskscopeError, match="no Dask client"), daskscope.performance_report():
        raise AssertionError("the work began")


@pytest.mark.asyncio
async def test_the_wrong_with_is_told_before_the_work() -> None:
    async with running():
        with pytest.raises(errors.DaskscopeError, match=r"`async with daskscope\.performance"):
            daskscope.performance_report().__enter__()


def test_async_with_needs_an_asynchronous_client(quick: Client) -> None:
    async def work() -> None:
        async with daskscope.performance_report():
            raise AssertionError("the work began")

    with pytest.raises(errors.DaskscopeError, match="is not asynchronous: write `with daskscope"):
        asyncio.run(work())

"""`daskscope import`: a folder's messages to the server that is configured, over HTTP."""

from __future__ import annotations

from pathlib import Path

import dask.config
import pytest
from click.testing import CliRunner, Result

from daskscope import cli, wire
from daskscope.cli import importing as command
from daskscope.compression import decompress
from daskscope.importing import Progress
from tests.plugin.ingest_server import Server, answers
from tests.plugin.rig import Clock
from tests.plugin.test_importing import lay

REPLY = {"id": 1, "url": "local/clusters/1"}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, ["import", *arguments])


def test_it_posts_what_lies_there_with_the_token_for_schedulers(tmp_path: Path) -> None:
    messages = lay(tmp_path / "shared" / "spool", 0, 1)
    server = Server(answers(200, REPLY))
    configured = {"daskscope.token": "reader", "daskscope.ingest-token": "t"}
    with server.running() as url, dask.config.set({"daskscope.server": url, **configured}):
        result = run(str(tmp_path / "shared"))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"daskscope: 2 messages in. The server is {url}.\n"
    assert [path for path, _, _ in server.posts] == [wire.PATH] * 2
    assert {headers["authorization"] for _, headers, _ in server.posts} == {"Bearer t"}
    assert [wire.decode(decompress(body, "zstd")) for _, _, body in server.posts] == messages
    assert list((tmp_path / "shared" / "spool").iterdir()) == []


def test_what_the_server_refuses_is_said_and_the_exit_code_is_1(tmp_path: Path) -> None:
    lay(tmp_path, 0)
    refuses = Server(answers(422, {"error": {"message": "no such field"}}))
    with refuses.running() as url, dask.config.set({"daskscope.server": url, "daskscope.token": "t"}):
        result = run(str(tmp_path))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "was set aside: HTTP 422: no such field" in result.stderr
    assert "0 messages in, 1 set aside." in result.stderr


def test_what_was_set_aside_goes_when_it_is_asked_for(tmp_path: Path) -> None:
    messages = lay(tmp_path, 0)
    for path in list(tmp_path.iterdir()):
        path.rename(path.with_suffix(".bad"))
    server = Server(answers(200, REPLY))
    with server.running() as url, dask.config.set({"daskscope.server": url, "daskscope.token": "t"}):
        assert run(str(tmp_path)).exit_code == 0
        assert server.posts == []
        assert run(str(tmp_path), "--again").exit_code == 0
    assert [wire.decode(decompress(body, "zstd")) for _, _, body in server.posts] == messages
    assert wire.SENT_AT.lower() not in server.posts[0][1]


def test_a_wrong_address_leaves_all_where_it_is(tmp_path: Path) -> None:
    lay(tmp_path, 0, 1)
    with Server(answers(404)).running() as url, dask.config.set({"daskscope.server": url, "daskscope.token": "t"}):
        result = run(str(tmp_path))
    assert result.exit_code == 1
    assert "is it a daskscope server? It answers HTTP 404" in result.stderr
    assert [path.suffix for path in tmp_path.iterdir()] == [".msg"] * 2


def test_a_server_that_denies_the_token_takes_none(tmp_path: Path) -> None:
    lay(tmp_path, 0, 1)
    with Server(answers(401)).running() as url, dask.config.set({"daskscope.server": url, "daskscope.token": "t"}):
        result = run(str(tmp_path))
    assert result.exit_code == 1
    assert "0 messages in, at least 2 left." in result.stderr


def test_without_a_server_it_says_what_to_do(tmp_path: Path, data: Path) -> None:
    lay(tmp_path / "shared", 0)
    for server in (None, f"file://{tmp_path}/shared"):
        with dask.config.set({"daskscope.server": server}):
            result = run(str(tmp_path / "shared"))
        assert result.exit_code == 5
        assert "set daskscope.server" in result.stderr
    assert len(list((tmp_path / "shared").iterdir())) == 1


@pytest.mark.parametrize("arguments", [(), ("no-such-folder",)])
def test_wrong_use_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize("is_terminal", [True, False])
def test_past_a_second_it_says_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    clock = Clock()
    shows = command._Shows(clock)
    monkeypatch.setattr(shows, "_is_terminal", is_terminal)
    for n in range(100):
        shows.progress(Progress(n_in=n))
        clock.now_s += 0.5
    shows.say("done.")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("daskscope: done.\n")
    n_told = err.count("messages in")
    assert n_told == (98 if is_terminal else 5)
    assert ("\r" in err) is is_terminal

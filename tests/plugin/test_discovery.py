import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daskscope.discovery import PORT, Server, find_server, is_loopback, rendezvous
from daskscope.login import Login
from daskscope.settings import Settings, load

DEAD = 2**22 + 1
"""Above the largest process id that Linux gives."""


def settings(tmp_path: Path, **changes: Any) -> Settings:
    return load().but(data=str(tmp_path), **changes)


def leave(tmp_path: Path, port: int = PORT, mode: int = 0o600, **changes: Any) -> Path:
    path = rendezvous(tmp_path, port)
    path.parent.mkdir(exist_ok=True)
    found = {"url": f"http://127.0.0.1:{port}", "token": "t", "ingest_token": "i", "pid": os.getpid(), "data": "d"}
    path.write_text(json.dumps(found | changes))
    path.chmod(mode)
    return path


def test_nothing_configured_and_nothing_running(tmp_path: Path) -> None:
    assert find_server(settings(tmp_path)) is None


def test_nothing_configured_finds_the_one_that_runs(tmp_path: Path) -> None:
    leave(tmp_path)
    assert find_server(settings(tmp_path)) == Server(f"http://127.0.0.1:{PORT}", "t", "i", "d")


def test_links_are_by_the_address_that_the_one_that_runs_tells(tmp_path: Path) -> None:
    assert Server("http://127.0.0.1:8790").pages == "http://127.0.0.1:8790"
    leave(tmp_path, address="https://daskscope.example.org/")
    for changes in ({}, {"server": f"http://localhost:{PORT}", "token": "mine"}):
        found = find_server(settings(tmp_path, **changes))
        assert found
        assert (found.pages, is_loopback(found.url)) == ("https://daskscope.example.org", True)
    leave(tmp_path, 9000, address="file:///etc")
    assert find_server(settings(tmp_path, server="http://127.0.0.1:9000")) == Server("http://127.0.0.1:9000")


def test_a_configured_token_wins(tmp_path: Path) -> None:
    leave(tmp_path)
    assert find_server(settings(tmp_path, token="mine")) == Server(f"http://127.0.0.1:{PORT}", "mine", "mine", "d")


def test_a_configured_ingest_token_is_the_one_for_schedulers(tmp_path: Path) -> None:
    elsewhere = settings(tmp_path, server="https://example.org", token="mine", ingest_token="theirs")
    assert find_server(elsewhere) == Server("https://example.org", "mine", "theirs")
    leave(tmp_path)
    found = find_server(settings(tmp_path, ingest_token="theirs"))
    assert found == Server(f"http://127.0.0.1:{PORT}", "t", "theirs", "d")


def test_a_configured_server_of_this_machine_takes_the_token_of_its_own_port(tmp_path: Path) -> None:
    leave(tmp_path)
    leave(tmp_path, 9000, token="t9", ingest_token="i9")
    assert find_server(settings(tmp_path, server="http://localhost:9000")) == Server(
        "http://localhost:9000", "t9", "i9", "d"
    )
    assert find_server(settings(tmp_path, server="http://127.0.0.1:9001")) == Server("http://127.0.0.1:9001")


def test_a_file_that_names_another_port_than_its_own_gives_no_token(tmp_path: Path) -> None:
    leave(tmp_path, 9000, url="http://127.0.0.1:9999")
    assert find_server(settings(tmp_path, server="http://127.0.0.1:9000")) == Server("http://127.0.0.1:9000")


def test_another_host_never_gets_the_token_of_this_machine(tmp_path: Path) -> None:
    leave(tmp_path)
    leave(tmp_path, 443)
    for url in (f"http://example.org:{PORT}", "https://example.org", f"http://127.0.0.1.example.org:{PORT}"):
        assert find_server(settings(tmp_path, server=url)) == Server(url)


@pytest.mark.parametrize(
    "url",
    ["http://example.org:8790", "http://10.0.0.1", "file:///etc/passwd", "", "http://[", "http://127.0.0.1:99999999",
     "http://127.0.0.1:x", "http://127.0.0.1:0", "http://127.0.0.1@example.org:8790", "https://127.0.0.1:8790"],
)  # fmt: skip
def test_a_file_that_points_elsewhere_is_not_believed(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    leave(tmp_path, url=url)
    assert find_server(settings(tmp_path)) is None
    assert "Ignored" in caplog.text


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620])
def test_a_file_that_others_may_touch_is_not_believed(
    tmp_path: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    leave(tmp_path, mode=mode)
    assert find_server(settings(tmp_path)) is None
    assert "chmod 600" in caplog.text


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_believed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.chown(leave(tmp_path), 65534, 65534)
    assert find_server(settings(tmp_path)) is None
    assert "belongs to another user" in caplog.text


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    real = leave(tmp_path, 9000)
    rendezvous(tmp_path, PORT).symlink_to(real)
    assert find_server(settings(tmp_path)) is None


def test_a_pipe_does_not_hang(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = rendezvous(tmp_path, PORT)
    path.parent.mkdir()
    os.mkfifo(path, 0o600)
    assert find_server(settings(tmp_path)) is None
    assert "no regular file" in caplog.text


@pytest.mark.parametrize("pid", [DEAD, -1, 0, 10**30])
def test_a_server_that_died_is_not_believed(tmp_path: Path, pid: int) -> None:
    leave(tmp_path, pid=pid)
    assert find_server(settings(tmp_path)) is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"url": "http://127.0.0.1:8790"}', '{"pid": []}', "\x00",
     "[" * 60_000, '{"url": "http://127.0.0.1:8790", "pid": 1e999}', '{"pid": 1' + "0" * 9_000 + "}"],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_a_broken_file_is_named_and_passed_over(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    path = leave(tmp_path)
    path.write_text(text)
    assert find_server(settings(tmp_path)) is None
    assert str(path) in caplog.text


def test_tokens_do_not_show() -> None:
    assert "secret" not in repr(Server("http://127.0.0.1:1", "secret", "secret"))


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://localhost:1", True),
        ("http://127.0.0.1", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:8790", True),
        ("http://0.0.0.0", False),
        ("http://localhost.example.org", False),
        ("http://user@example.org#127.0.0.1", False),
    ],
)
def test_is_loopback(url: str, here: bool) -> None:
    assert is_loopback(url) is here


ANN = Login(server="https://scope.example.org/x", token="asks", ingest_token="reports", account="team", user="ann")


def test_a_login_is_for_its_server_and_for_no_other(tmp_path: Path) -> None:
    there = Server("https://scope.example.org/x", "asks", "reports", None, "team", "team")
    assert find_server(settings(tmp_path, login=ANN)) == there
    for same in ("https://scope.example.org/x", "https://SCOPE.example.org:443/x/"):
        found = find_server(settings(tmp_path, login=ANN, server=same))
        assert found is not None
        assert (found.token, found.ingest_token, found.account, found.origin) == ("asks", "reports", "team", "login")
    for other in ("http://scope.example.org/x", "https://scope.example.org", "https://scope.example.org/y",
                  "https://scope.example.org:8443/x", "https://scope.example.org.evil.org/x"):  # fmt: skip
        assert find_server(settings(tmp_path, login=ANN, server=other)) == Server(other)
    assert find_server(settings(tmp_path, login=ANN, server="file:///shared")) is None


def test_a_login_wins_over_the_server_on_this_machine_and_a_configured_token_over_both(tmp_path: Path) -> None:
    leave(tmp_path)
    here = f"http://127.0.0.1:{PORT}"
    at_home = replace(ANN, server=here)
    assert find_server(settings(tmp_path, login=ANN, server=here)) == Server(here, "t", "i", "d")
    assert find_server(settings(tmp_path, login=at_home)) == Server(here, "asks", "reports", "d", "team", "team")
    assert find_server(settings(tmp_path, login=at_home, token="mine")) == Server(here, "mine", "mine", "d")
    of_site = find_server(settings(tmp_path, login=at_home, ingest_token="site"))
    assert of_site == Server(here, "asks", "site", "d", "team", None), "the site's token says for which account"
    named = find_server(settings(tmp_path, login=at_home, account="other"))
    assert named == Server(here, "asks", "reports", "d", "other", "other")


def test_who_may_not_report_ships_no_token_that_reads(tmp_path: Path) -> None:
    found = find_server(settings(tmp_path, login=replace(ANN, ingest_token=None)))
    assert found is not None
    assert (found.token, found.ingest_token) == ("asks", None)

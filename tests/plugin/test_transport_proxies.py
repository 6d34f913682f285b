"""What goes by a proxy, what does not, and what the proxy gets to see."""

import base64
import socket
import threading
from pathlib import Path

import pytest

from daskscope import transport
from tests.faults.certificates import Authority
from tests.plugin.ingest_server import Server, answers, request, talking
from tests.plugin.posting import PROXY_NAMES, REPLY, TAKEN, TOKEN, post


@pytest.mark.usefixtures("no_proxy")
def test_a_proxy_gets_nothing_of_what_is_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, server = Server(answers(200, REPLY)), Server(answers(200, REPLY))
    with proxy.running() as proxy_url, server.running() as url:
        for name in PROXY_NAMES:
            monkeypatch.setenv(name, proxy_url)
        assert post(url).verdict == "kept"
    assert proxy.posts == []
    assert len(server.posts) == 1


@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize("name", ["http_proxy", "all_proxy"])
@pytest.mark.parametrize("place", ["http://ann:se%40cret@{}", "ann:se%40cret@{}"])
def test_what_is_for_another_machine_goes_by_the_proxy(monkeypatch: pytest.MonkeyPatch, name: str, place: str) -> None:
    proxy = Server(answers(200, REPLY))
    with proxy.running() as proxy_url:
        monkeypatch.setenv(name, place.format(proxy_url.removeprefix("http://")))
        assert post("http://far.test:8790").verdict == "kept"
        monkeypatch.setenv("no_proxy", "far.test")
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [])
        assert "far.test has no address" in post("http://far.test:8790").reason, "it was not asked of the proxy"
    ((path, headers, _),) = proxy.posts
    assert path == "http://far.test:8790/api/v1/telemetry"
    assert headers["host"] == "far.test:8790"
    assert base64.b64decode(headers["proxy-authorization"].removeprefix("Basic ")) == b"ann:se@cret"


@pytest.mark.usefixtures("no_proxy")
def test_a_socks_proxy_whose_package_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport.httpcore, "SOCKSProxy", _no_socks)
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:1")
    outcome = post("http://far.test")
    assert (outcome.verdict, "socksio" in outcome.reason) == ("again", True)


def _no_socks(*_: object, **__: object) -> None:
    raise RuntimeError("Attempted to use SOCKS support, but the `socksio` package is not installed.")


@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize("is_trusted", [True, False])
def test_through_a_proxy_https_is_a_tunnel_and_the_proxy_never_sees_the_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_trusted: bool
) -> None:
    authority = Authority(tmp_path)
    seen: list[bytes] = []
    posted: list[bytes] = []

    def tunnel(connection: socket.socket, leave: threading.Event) -> None:
        seen.append(request(connection))
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with authority.context("far.test").wrap_socket(connection, server_side=True) as inner:
            for _ in range(2):
                posted.append(request(inner))
                inner.sendall(TAKEN)

    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    with talking(tunnel) as address:
        monkeypatch.setenv("https_proxy", f"http://{address}")
        outcome = post("https://far.test", times=2)
    assert outcome.verdict == ("kept" if is_trusted else "again")
    assert [head.partition(b"\r\n")[0] for head in seen] == [b"CONNECT far.test:443 HTTP/1.1"] * (
        1 if is_trusted else 2
    )
    assert TOKEN.encode() not in b"".join(seen)
    assert [TOKEN.encode() in post for post in posted] == ([True, True] if is_trusted else [])

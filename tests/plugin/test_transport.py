"""One attempt against a real server on loopback, a hostile one included."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Generator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope import __version__, transport, wire
from daskscope.transport import MAX_REPLY_BYTES, MAX_WAIT_S, Http, Outcome, judge

TOKEN = "dst_very-secret"
Answer = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Answers each POST as told and remembers it."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.posts: list[tuple[str, dict[str, str], bytes]] = []
        self.written = 0
        self.leave = threading.Event()

    @contextlib.contextmanager
    def running(self) -> Generator[str]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                server.posts.append((self.path, headers, body))
                with contextlib.suppress(ConnectionError):
                    server.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        http = Quiet(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}"
        finally:
            self.leave.set()
            http.shutdown()
            http.server_close()
            thread.join()


def answers(status: int, body: object = b"", **headers: str) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", str(len(raw)))
        handler.end_headers()
        handler.wfile.write(raw)

    return answer


def post(url: str, token: str | None = TOKEN, times: int = 1) -> Outcome:
    http = Http(url, token)
    try:
        return [http.deliver("c-b-1", b"body", "zstd") for _ in range(times)][-1]
    finally:
        http.close()


REPLY = {"id": 7, "url": "/acme/clusters/7", "next_s": 30, "wish": ["identity"]}


def test_a_message_is_posted_with_token_and_encoding_and_the_reply_is_read() -> None:
    server = Server(answers(200, REPLY))
    with server.running() as url:
        outcome = post(url, times=2)
    assert outcome == Outcome("kept", "", wire.Reply(id=7, url="/acme/clusters/7", next_s=30.0, wish=["identity"]))
    assert len(server.posts) == 2
    path, headers, body = server.posts[0]
    assert (path, body) == ("/api/v1/telemetry", b"body")
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert headers["content-encoding"] == "zstd"
    assert headers["content-type"] == "application/octet-stream"
    assert headers["user-agent"] == f"daskscope/{__version__}"
    assert headers["accept-encoding"] == "identity"


def test_without_a_token_none_is_sent() -> None:
    server = Server(answers(200, REPLY))
    with server.running() as url:
        assert post(url, token=None).verdict == "kept"
    assert "authorization" not in server.posts[0][1]


ERROR = {"error": {"code": "bad-message", "message": "Column x is short."}}


@pytest.mark.parametrize(
    ("status", "verdict", "reason"),
    [
        (200, "kept", ""), (202, "kept", ""), (204, "kept", ""),
        (301, "refused", "HTTP 301"), (307, "refused", "HTTP 307"),
        (400, "refused", "HTTP 400: Column x is short."),
        (401, "denied", "HTTP 401"), (403, "denied", "HTTP 403"),
        (404, "refused", "HTTP 404"), (408, "again", "HTTP 408"),
        (413, "refused", "HTTP 413"), (415, "refused", "HTTP 415"),
        (422, "refused", "HTTP 422: Column x is short."), (425, "again", "HTTP 425"), (429, "again", "HTTP 429"),
        (500, "again", "HTTP 500"), (502, "again", "HTTP 502"), (503, "again", "HTTP 503"), (504, "again", "HTTP 504"),
    ],
)  # fmt: skip
def test_what_a_status_means(status: int, verdict: str, reason: str) -> None:
    server = Server(answers(status, b"" if status == 204 else ERROR))
    with server.running() as url:
        outcome = post(url)
    assert outcome.verdict == verdict
    assert outcome.reason.startswith(reason)
    assert len(server.posts) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_token_goes_nowhere_else(status: int) -> None:
    other = Server(answers(200, REPLY))
    with other.running() as elsewhere:
        server = Server(answers(status, Location=elsewhere + wire.PATH))
        with server.running() as url:
            assert post(url).verdict == "refused"
    assert other.posts == []


def test_a_proxy_gets_nothing_of_what_is_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, server = Server(answers(200, REPLY)), Server(answers(200, REPLY))
    with proxy.running() as proxy_url, server.running() as url:
        for name in ("http_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy_url)
        assert post(url).verdict == "kept"
    assert proxy.posts == []
    assert len(server.posts) == 1


def test_an_endless_body_is_cut() -> None:
    server = Server(lambda _: None)

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", str(500 << 20))
        handler.end_headers()
        while server.written < 500 << 20:
            server.written += handler.wfile.write(b"x" * 65536)

    server.answer = endless
    with server.running() as url:
        assert post(url) == Outcome("kept", "", None)
    assert server.written < 64 << 20, "what the sockets' buffers took, at most"


def test_a_body_that_drips_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock moves a second at each look, so that the deadline comes by itself after ten drops."""
    server = Server(lambda _: None)
    drops = 0

    def drip(handler: BaseHTTPRequestHandler) -> None:
        nonlocal drops
        handler.send_response(503)
        handler.send_header("content-length", "1000000")
        handler.end_headers()
        while not server.leave.wait(0.005):
            handler.wfile.write(b"x")
            handler.wfile.flush()
            drops += 1

    server.answer = drip
    ticks = iter(range(10**9))
    monkeypatch.setattr(transport.time, "monotonic", lambda: float(next(ticks)))
    with server.running() as url:
        assert post(url) == Outcome("again", "HTTP 503")
        assert drops < 1000


def test_a_silent_server_is_left_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "DEADLINE_S", 0.2)
    server = Server(lambda _: None)

    def silent(handler: BaseHTTPRequestHandler) -> None:
        server.leave.wait(30)

    server.answer = silent
    with server.running() as url:
        outcome = post(url)
        assert not server.leave.is_set()
    assert outcome.verdict == "again"
    assert "ReadTimeout" in outcome.reason


def _closes(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)


def _garbage(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH_9\r\n\r\n")
    handler.close_connection = True


def _short(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "100")
    handler.end_headers()
    handler.wfile.write(b"{")
    handler.close_connection = True


@pytest.mark.parametrize("answer", [_closes, _garbage, _short])
def test_a_broken_answer_is_tried_again(answer: Answer) -> None:
    with Server(answer).running() as url:
        assert post(url).verdict == "again"


def test_a_dead_port_is_tried_again() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        outcome = post(f"http://127.0.0.1:{free.getsockname()[1]}")
    assert outcome.verdict == "again"
    assert "ConnectError" in outcome.reason


@pytest.mark.parametrize("token", ["dst_se\u00e9cret", "dst_secret\n", "dst_sec\r\nx: y", "dst_\x00secret"])
def test_a_token_that_cannot_be_sent_shows_in_no_reason(token: str) -> None:
    server = Server(answers(200, REPLY))
    with server.running() as url:
        outcome = post(url, token=token)
    assert outcome.verdict == "again"
    assert "daskscope.token" in outcome.reason
    assert "sec" not in outcome.reason
    assert server.posts == []


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"[]", b'"x"', b"{", b"\xff", b"[" * 60_000, b"{}", b'{"id": "7", "url": "/x"}', b'{"id": 7}',
        b'{"id": 7, "url": 3}', b'{"id": 7, "url": "/x", "wish": "identity"}',
        b'{"id": 7, "url": "/x", "next_s": 1' + b"0" * 400 + b"}", b'{"id": 1' + b"0" * 5000 + b"}",
    ],
    ids=lambda body: body[:24].decode("ascii", "replace"),
)  # fmt: skip
def test_a_2xx_with_a_hostile_body_is_kept_without_a_reply(body: bytes) -> None:
    with Server(answers(200, body)).running() as url:
        assert post(url) == Outcome("kept", "", None)


@pytest.mark.parametrize("pace", [0, -1, "30", None, [], "NaN", "-Infinity"])
def test_a_pace_that_is_none_leaves_it_to_the_plugin(pace: object) -> None:
    raw = json.dumps({**REPLY, "next_s": "?"}).replace(
        '"?"', pace if pace in ("NaN", "-Infinity") else json.dumps(pace)
    )
    outcome = judge(200, httpx.Headers(), raw.encode())
    assert outcome.reply is not None
    assert outcome.reply.next_s is None


def test_wishes_that_are_no_texts_are_left_out() -> None:
    outcome = judge(200, httpx.Headers(), json.dumps({**REPLY, "wish": [1, None, "identity", {}]}).encode())
    assert outcome.reply is not None
    assert outcome.reply.wish == ["identity"]


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("7", 7.0), ("0", 0.0), ("-5", 0.0), ("1e9", MAX_WAIT_S), ("inf", MAX_WAIT_S), ("nan", 0.0), ("soon", 0.0),
        ("", 0.0), (formatdate(4e9, usegmt=True), MAX_WAIT_S), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Mon, 01 Jan 0001 00:00:00 GMT", 0.0), ("Mon, 01 Jan 0001 00:00:00 -0000", 0.0),
        ("Mon, 99 Jan 2026 99:00:00 GMT", 0.0),
    ],
)  # fmt: skip
def test_retry_after_is_heeded_and_clamped(value: str, wait_s: float) -> None:
    assert judge(503, httpx.Headers({"retry-after": value}), b"").wait_s == wait_s


def test_retry_after_as_a_date_counts_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport.time, "time", lambda: 1_800_000_000.0)
    headers = httpx.Headers({"retry-after": formatdate(1_800_000_042.0, usegmt=True)})
    assert judge(429, headers, b"").wait_s == 42.0


@pytest.mark.parametrize("value", [None, "0", "junk", "-1"])
def test_a_bare_429_waits_a_minute(value: str | None) -> None:
    headers = httpx.Headers({"retry-after": value} if value else {})
    assert judge(429, headers, b"").wait_s == transport.BARE_429_S


def test_a_long_reason_is_cut() -> None:
    outcome = judge(400, httpx.Headers(), json.dumps({"error": {"message": "x" * 10_000}}).encode())
    assert outcome.reason == "HTTP 400: " + "x" * 500


@given(st.integers(200, 599), st.text(), st.binary(max_size=64) | st.text().map(lambda t: json.dumps(t).encode()))
def test_no_answer_makes_judging_raise(status: int, retry_after: str, body: bytes) -> None:
    headers = httpx.Headers([(b"retry-after", retry_after.encode("utf-8", "replace"))])
    outcome = judge(status, headers, body)
    assert outcome.verdict in ("kept", "again", "refused", "denied")
    assert 0 <= outcome.wait_s <= MAX_WAIT_S


def test_the_reply_is_read_up_to_its_limit() -> None:
    body = json.dumps({**REPLY, "future": "x" * (MAX_REPLY_BYTES // 2)}).encode()
    with Server(answers(200, body)).running() as url:
        outcome = post(url)
    assert outcome.reply is not None
    assert outcome.reply.id == 7

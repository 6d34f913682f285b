"""One attempt against a real server on loopback, a hostile one included."""

import contextlib
import gc
import json
import socket
import threading
import tracemalloc
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from daskscope import __version__, wire
from daskscope.compression import SAMPLED
from daskscope.outcome import MAX_WAIT_S
from daskscope.transport import MAX_REPLY_BYTES, Http, Outcome
from tests.plugin.ingest_server import Answer, Server, answers, request, talking
from tests.plugin.posting import REPLY, TAKEN, TOKEN, post

NO_REPLY = Outcome("again", "HTTP 200 and no reply of a daskscope server")


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


def test_each_try_says_when_it_was_made_by_the_clock_here() -> None:
    server = Server(answers(503))
    times = iter([1_800_000_000.0004, 1_800_000_009.5])
    with server.running() as url, contextlib.closing(Http(url, TOKEN, now=lambda: next(times))) as http:
        for _ in range(2):
            http.deliver("c-b-1", b"the same body", "zstd", is_own=True)
        http.deliver("c-b-0", b"of another scheduler", "zstd", is_own=False)
    said = [headers.get("daskscope-sent-at") for _, headers, _ in server.posts]
    assert said == ["1800000000000", "1800000009500", None], "another one's clock is not known here"
    assert [body for *_, body in server.posts][:2] == [b"the same body"] * 2


def test_the_account_that_is_named_goes_along_and_one_that_there_is_not_for_this_token_is_no_fault_of_a_message() -> (
    None
):
    nobody_s = {"error": {"code": "not-found", "message": "No account team for this token."}}
    server = Server(answers(404, nobody_s))
    with server.running() as url, contextlib.closing(Http(url, TOKEN, account="team")) as http:
        outcome = http.deliver("c-b-1", b"body", "zstd")
        assert post(url).verdict == "refused", "nobody named an account: this is another address"
    assert (outcome.verdict, outcome.reason) == ("denied", "HTTP 404: No account team for this token")
    assert [headers.get("daskscope-account") for _, headers, _ in server.posts] == ["team", None]


def test_without_a_token_none_is_sent() -> None:
    server = Server(answers(200, REPLY))
    with server.running() as url:
        assert post(url, token=None).verdict == "kept"
    assert "authorization" not in server.posts[0][1]


def test_of_an_answer_that_is_no_http_no_token_is_told() -> None:
    def talk(connection: socket.socket, leave: threading.Event) -> None:
        connection.sendall(b"what is " + request(connection).split(b"Bearer ")[1].split(b"\r\n")[0] + b"?\r\n\r\n")

    with talking(talk) as address:
        outcome = post(f"http://{address}")
    assert outcome.verdict == "again"
    assert "what is [secret]?" in outcome.reason


ERROR = {"error": {"code": "bad-message", "message": "Column x is short."}}


@pytest.mark.parametrize(
    ("status", "verdict", "reason"),
    [
        (200, "again", "HTTP 200 and no reply"), (204, "again", "HTTP 204 and no reply"),
        (301, "refused", "HTTP 301"), (307, "refused", "HTTP 307"),
        (400, "refused", "HTTP 400: Column x is short."),
        (401, "denied", "HTTP 401: Column x is short"), (403, "denied", "HTTP 403: Column x is short"),
        (404, "refused", "HTTP 404"), (408, "again", "HTTP 408"),
        (413, "split", "HTTP 413: Column x is short."), (415, "refused", "HTTP 415"),
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
@pytest.mark.parametrize("place", ["http://{}{}", "http://ada:secret@{}{}", "//{}{}", "https://{}{}"])
def test_a_redirect_is_not_followed_and_the_token_goes_nowhere_else(status: int, place: str) -> None:
    other = Server(answers(200, REPLY))
    with other.running() as elsewhere:
        server = Server(answers(status, Location=place.format(elsewhere.removeprefix("http://"), wire.PATH)))
        with server.running() as url:
            assert post(url).verdict == "refused"
        assert len(server.posts) == 1
    assert other.posts == []


def test_a_cookie_is_not_sent_back() -> None:
    server = Server(answers(200, REPLY, Set_Cookie="id=1; Path=/; Max-Age=99999"))
    with server.running() as url:
        assert post(url, times=2).verdict == "kept"
    assert ["cookie" in headers for _, headers, _ in server.posts] == [False, False]


def test_an_encoding_after_the_sample_that_is_not_taken_may_come_plain() -> None:
    with Server(answers(415, ERROR)).running() as url:
        assert [post(url, encoding=encoding).verdict for encoding in SAMPLED] == ["plain", "plain"]
        assert post(url).verdict == "refused"


def test_an_endless_body_is_cut() -> None:
    server = Server(lambda _: None)

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", str(500 << 20))
        handler.end_headers()
        _pour(server, handler, b"x" * 65536)

    server.answer = endless
    with server.running() as url, traced() as peak:
        assert post(url) == NO_REPLY
        assert peak() < 1 << 20
    assert server.written < 64 << 20, "what the sockets' buffers took, at most"


@pytest.mark.parametrize("drop", [b"x" * 65536, b"x: " + b"y" * 65533 + b"\r\n", b"x: y\r\n" * 9000])
def test_a_head_without_end_is_cut(drop: bytes) -> None:
    server = Server(lambda _: None)

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        _pour(server, handler, drop)

    server.answer = endless
    with server.running() as url, traced() as peak:
        assert post(url).verdict == "again"
        assert peak() < 2 << 20
    assert server.written < 64 << 20


def _pour(server: Server, handler: BaseHTTPRequestHandler, drop: bytes) -> None:
    while server.written < 500 << 20:
        server.written += handler.wfile.write(drop)


@contextlib.contextmanager
def traced() -> Generator[Callable[[], int]]:
    """How many bytes were held at most, of what was allocated since."""
    post("http://127.0.0.1:1")  # what is made once
    gc.collect()
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


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
        b'{"id": 7, "url": 3}', b'{"id": 1' + b"0" * 5000 + b"}",
    ],
    ids=lambda body: body[:24].decode("ascii", "replace"),
)  # fmt: skip
def test_a_2xx_with_a_hostile_body_keeps_no_message(body: bytes) -> None:
    with Server(answers(200, body)).running() as url:
        assert post(url) == NO_REPLY


def test_a_reply_of_a_million_keys_is_not_read_to_its_end() -> None:
    body = b'{"id": 7, "url": "/x"' + b', "k": 0' * 1_000_000 + b"}"
    with Server(answers(200, body)).running() as url, traced() as peak:
        assert post(url) == NO_REPLY
        assert peak() < 2 << 20


def test_a_connection_is_kept_from_one_message_to_the_next() -> None:
    connections: list[int] = []

    def talk(connection: socket.socket, leave: threading.Event) -> None:
        connections.append(connection.fileno())
        while True:
            request(connection)
            connection.sendall(TAKEN)

    with talking(talk) as address:
        assert post(f"http://{address}", times=3).verdict == "kept"
    assert len(connections) == 1


def test_a_connection_that_the_server_closed_meanwhile_is_made_anew() -> None:
    def talk(connection: socket.socket, leave: threading.Event) -> None:
        request(connection)
        connection.sendall(TAKEN)
        connection.shutdown(socket.SHUT_RDWR)
        closed.set()

    closed = threading.Event()
    with talking(talk) as address, contextlib.closing(Http(f"http://{address}", None)) as http:
        for _ in range(3):
            assert http.deliver("c-b-1", b"", "zstd").verdict == "kept"
            assert closed.wait(20)
            closed.clear()


def test_the_reply_is_read_up_to_its_limit() -> None:
    body = json.dumps({**REPLY, "future": "x" * (MAX_REPLY_BYTES // 2)}).encode()
    with Server(answers(200, body)).running() as url:
        outcome = post(url)
    assert outcome.reply is not None
    assert outcome.reply.id == 7


@pytest.fixture(scope="module")
def parrot() -> Generator[tuple[str, list[bytes]]]:
    """Its address, and what it says to whoever posts next."""
    said = [b""]

    def talk(connection: socket.socket, leave: threading.Event) -> None:
        request(connection)
        connection.sendall(said[0])

    with talking(talk) as address:
        yield f"http://{address}", said


HEAD = st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 415 No\r\n", b"HTTP/1.1 503 X\r\nretry-after: ",
                        b"HTTP/1.0 200\r\n\r\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
                        b"HTTP/1.1 101 Switch\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"])  # fmt: skip


@pytest.mark.usefixtures("no_proxy")
@examples(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.tuples(HEAD, st.binary(max_size=300)).map(b"".join))
def test_whatever_bytes_are_answered_there_is_an_outcome(parrot: tuple[str, list[bytes]], answer: bytes) -> None:
    url, said = parrot
    said[0] = answer
    outcome = post(url)
    assert outcome.verdict in ("kept", "again", "refused", "denied")
    assert 0 <= outcome.wait_s <= MAX_WAIT_S
    assert TOKEN not in outcome.reason

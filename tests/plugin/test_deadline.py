"""A request is over in its time, whatever the other side does with it: sockets on loopback, a clock that jumps."""

import contextlib
import itertools
import socket
import ssl
import threading
from collections.abc import Callable

import httpcore
import pytest

from daskscope import deadline, transport
from daskscope.deadline import Backend, Deadline
from daskscope.transport import DEADLINE_S, Http, Outcome
from tests.plugin.ingest_server import Talk, request, talking
from tests.plugin.rig import REPLY

DROP_S = 0.002


def hurried() -> Callable[[], float]:
    """A second passes at each look, so that the deadline comes by itself after ten."""
    return map(float, itertools.count()).__next__


def post(address: str, body: bytes = b"body", scheme: str = "http") -> Outcome:
    with contextlib.closing(Http(f"{scheme}://{address}", "dst_secret", hurried())) as http:
        return http.deliver("c-b-1", body, "zstd")


def drip(what: bytes, first: bytes = b"") -> Talk:
    """Drops without end, of which none comes late."""

    def talk(connection: socket.socket, leave: threading.Event) -> None:
        request(connection)
        connection.sendall(first)
        while not leave.wait(DROP_S):
            connection.sendall(what)

    return talk


@pytest.mark.parametrize(
    "talk",
    [
        drip(b"H"),
        drip(b"x", b"HTTP/1.1 200 OK\r\nx-long: "),
        drip(b"a: b\r\n", b"HTTP/1.1 200 OK\r\n"),
        drip(b"HTTP/1.1 100 Continue\r\n\r\n"),
        drip(b"HTTP/1.1 102 Processing\r\n\r\n"),
    ],
    ids=["no-line", "one-header", "headers", "continue", "processing"],
)
def test_a_head_that_drips_is_left_at_the_deadline(talk: Talk) -> None:
    with talking(talk) as address:
        outcome = post(address)
    assert outcome.verdict == "again"
    assert "over" in outcome.reason


@pytest.mark.parametrize(
    ("status", "verdict"), [("200 OK", "again"), ("503 Busy", "again"), ("422 Bad", "refused"), ("401 Who", "denied")]
)
@pytest.mark.parametrize(
    ("length", "drop"), [(b"content-length: 9999999", b"x"), (b"transfer-encoding: chunked", b"1\r\nx\r\n")]
)
def test_a_body_that_drips_is_left_at_the_deadline_and_the_status_counts(
    status: str, verdict: str, length: bytes, drop: bytes
) -> None:
    head = b"HTTP/1.1 " + status.encode() + b"\r\n" + length + b"\r\n\r\n"
    with talking(drip(drop, head)) as address:
        assert post(address).verdict == verdict


def test_a_server_that_takes_a_message_in_sips_is_left_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "DEADLINE_S", 0.2)
    taken = 0

    def sips(connection: socket.socket, leave: threading.Event) -> None:
        nonlocal taken
        while not leave.wait(DROP_S) and (sip := connection.recv(4096)):
            taken += len(sip)

    with talking(sips) as address, contextlib.closing(Http(f"http://{address}", None)) as http:
        assert http.deliver("c-b-1", bytes(64 << 20), "zstd").verdict == "again"
        assert 0 < taken < 64 << 20, "it went on taking, and was left all the same"


def _silent(connection: socket.socket, leave: threading.Event) -> None:
    leave.wait(30)


def _hole_in_the_head(connection: socket.socket, leave: threading.Event) -> None:
    request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-")
    leave.wait(30)


def _hole_in_the_body(connection: socket.socket, leave: threading.Event) -> None:
    request(connection)
    connection.sendall(b'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"id": ')
    leave.wait(30)


@pytest.mark.parametrize(
    ("talk", "scheme", "verdict"),
    [
        (_silent, "http", "again"), (_silent, "https", "again"), (_hole_in_the_head, "http", "again"),
        (_hole_in_the_body, "http", "again"),
    ],
)  # fmt: skip
def test_who_falls_silent_is_left_when_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, talk: Talk, scheme: str, verdict: str
) -> None:
    monkeypatch.setattr(transport, "DEADLINE_S", 0.2)
    with talking(talk) as address, contextlib.closing(Http(f"{scheme}://{address}", None)) as http:
        assert http.deliver("c-b-1", bytes(32 << 20) if talk is _silent else b"", "zstd").verdict == verdict


def test_a_connection_that_was_kept_has_the_time_of_the_request_under_way() -> None:
    """The second request waits for its own ten seconds, not for what the first one left."""
    now_s = 0.0

    def twice(connection: socket.socket, leave: threading.Event) -> None:
        for _ in range(2):
            request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(REPLY), REPLY))

    with talking(twice) as address, contextlib.closing(Http(f"http://{address}", None, lambda: now_s)) as http:
        assert http.deliver("c-b-1", b"", "zstd").verdict == "kept"
        now_s = 3 * DEADLINE_S
        assert http.deliver("c-b-2", b"", "zstd").verdict == "kept"


def test_all_addresses_of_a_name_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[float] = []

    class Dead:
        def connect_tcp(self, host: str, port: int, timeout: float, *_: object) -> httpcore.NetworkStream:
            tried.append(timeout)
            raise httpcore.ConnectTimeout

    monkeypatch.setattr(deadline.httpcore, "SyncBackend", Dead)
    hundred = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"10.0.0.{n}", 80)) for n in range(100)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: hundred)
    time_left = Deadline(hurried())
    time_left.start(10.0)
    with pytest.raises(httpcore.TimeoutException, match="over"):
        Backend(time_left, 3.0).connect_tcp("many.test", 80)
    assert len(tried) == 9
    assert max(tried) == 3.0
    assert min(tried) == 1.0


def test_the_next_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with talking(drip(b"", b"HTTP/1.1 422 No\r\n\r\n")) as address:
        port = int(address.rpartition(":")[2])
        known = [(0, 0, 0, "", (host, port)) for host in ("::1", "127.0.0.1")]  # at the first one nobody listens
        resolve = socket.getaddrinfo
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda host, *a, **k: known if host == "two.test" else resolve(host, *a, **k)
        )
        assert post(f"two.test:{port}").verdict == "refused"


def test_a_name_without_an_address_is_an_error_of_connecting(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    outcome = post("nowhere.test")
    assert (outcome.verdict, "ConnectError" in outcome.reason) == ("again", True)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [])
    assert "nowhere.test has no address" in post("nowhere.test").reason


def test_tls_within_tls_writes_to_no_socket_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """The socket below would carry the token in the clear."""
    context = ssl.create_default_context()
    with socket.socket() as plain, context.wrap_socket(plain, server_hostname="proxy.test") as wrapped:

        class Inner(httpcore.MockStream):
            def __init__(self) -> None:
                super().__init__([])
                self.written: list[bytes] = []

            def write(self, buffer: bytes, timeout: float | None = None) -> None:
                self.written.append(buffer)

            def start_tls(self, *_: object, **__: object) -> httpcore.NetworkStream:
                return inner

            def get_extra_info(self, info: str) -> object:
                return wrapped

        inner = Inner()
        time_left = Deadline(lambda: 0.0)
        time_left.start(10.0)
        stream = deadline._Stream(Inner(), time_left).start_tls(context, "server.test")
        stream.write(b"secret")
        assert inner.written == [b"secret"]

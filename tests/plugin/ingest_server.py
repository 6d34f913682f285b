"""Servers on loopback that answer posts as a test tells them: whole answers, or bytes and silence."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]
Talk = Callable[[socket.socket, threading.Event], None]
"""What a raw server does with a connection; the event says that the test is over."""


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


@contextlib.contextmanager
def talking(talk: Talk) -> Generator[str]:
    """A server below HTTP: `host:port`. What it is told to do may fail when the other side leaves."""
    leave = threading.Event()
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(20)
            talk(connection, leave)

    def accept(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                threads.append(threading.Thread(target=serve, args=(listener.accept()[0],)))
                threads[-1].start()

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        acceptor = threading.Thread(target=accept, args=(listener,))
        acceptor.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            leave.set()
            listener.shutdown(socket.SHUT_RDWR)
    for thread in (acceptor, *threads):
        thread.join()


def request(connection: socket.socket) -> bytes:
    """Head and body of the request that comes, as it is on the wire."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += connection.recv(65536) or _gone()
    head, _, body = got.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536) or _gone()
    return head + b"\r\n\r\n" + body


def _gone() -> bytes:
    raise ConnectionError("the other side has gone")

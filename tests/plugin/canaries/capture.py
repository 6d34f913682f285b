"""A server on loopback that keeps each request as it came."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from daskscope import wire
from daskscope.compression import decompress

TAKEN = json.dumps({"id": 1, "url": "c/1"}).encode()

Answer = tuple[int, bytes]


@dataclass(frozen=True)
class Asked:
    """One request; `body` as it was posted."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def plain(self) -> bytes:
        return decompress(self.body, self.headers.get("content-encoding"))


@dataclass
class Capture:
    """`answer(asked)` gives status and body; by default each message is taken."""

    answer: Callable[[Asked], Answer] = lambda _: (200, TAKEN)
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """Of each answer."""
    asked: list[Asked] = field(default_factory=list[Asked])
    n_connections: int = 0
    url: str = ""

    @property
    def bodies(self) -> list[bytes]:
        """What was posted, decompressed."""
        return [each.plain for each in self.asked if each.method == "POST"]

    @property
    def messages(self) -> list[wire.Message]:
        return [wire.decode(body) for body in self.bodies]

    @contextmanager
    def running(self) -> Generator[Capture]:
        capture = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, self.path, headers, body)
                capture.asked.append(asked)
                status, reply = capture.answer(asked)
                self.send_response(status)
                for name, value in {**capture.headers, "Content-Length": str(len(reply))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = answer  # noqa: N815  # names of http.server's

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

        class Counting(ThreadingHTTPServer):
            daemon_threads = True

            def verify_request(self, request: Any, client_address: Any) -> bool:
                capture.n_connections += 1
                return True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """The client may hang up."""

        with Counting(("127.0.0.1", 0), Handler) as http:
            self.url = f"http://127.0.0.1:{http.server_port}"
            serving = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
            serving.start()
            try:
                yield self
            finally:
                http.shutdown()
                serving.join()

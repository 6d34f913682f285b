"""A small HTTP server on loopback that answers as the test tells it, and remembers what it was asked."""

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]
Ask = tuple[str, dict[str, str], str | None]
"""Path, query, Authorization."""


class ApiServer:
    def __init__(self, answer: Callable[[str, dict[str, str]], Answer]) -> None:
        self.asked: list[Ask] = []
        self.posted: list[Any] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                server.posted.append(json.loads(self.rfile.read(length)))
                self.do_GET()

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = dict(parse_qsl(parts.query))
                server.asked.append((parts.path, query, self.headers.get("Authorization")))
                status, body, *headers = answer(parts.path, query)
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in (headers[0] if headers else {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def do_PUT(self) -> None:
                self.do_POST()

            def do_DELETE(self) -> None:
                self.do_GET()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Generator["ApiServer"]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()
            thread.join()


def error(status: int, code: str, message: str) -> Answer:
    return status, {"error": {"code": code, "message": message}}

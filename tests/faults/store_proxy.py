"""HTTP between AWS's own client and what stands for AWS: passes on, or fails as AWS does."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any
from urllib.parse import urlsplit

from tests.faults.stores import Trouble

_HOPS = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}
_JSON = {
    "AmazonSQS": "com.amazonaws.sqs#RequestThrottled",
    "DynamoDB_20120810": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
    "AmazonSSM": "ThrottlingException",
}
"""By service, what it answers when it is asked too often."""
_SLOW_DOWN = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)


@contextmanager
def store_proxy(target: str, trouble: Trouble) -> Generator[str]:
    """The URL under which `target` is, with `trouble`."""

    class Handler(_Handler):
        behind, harm, random = urlsplit(target).netloc, trouble, Random(7)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="store-proxy")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    behind: str
    harm: Trouble
    random: Random
    _onwards: http.client.HTTPConnection | None = None

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        harm = self.harm.strike()
        answer = None if harm == "before" else self._pass_on(body)
        if answer and not harm:
            self._answer(*answer)
        elif self.random.random() < 0.3:
            self._reset()
        else:
            self._answer(*self._refusal())

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _any  # noqa: N815 - the library's names

    def _pass_on(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if self._onwards is None:
            self._onwards = http.client.HTTPConnection(self.behind, timeout=60)
        self._onwards.request(self.command, self.path, body, dict(self.headers.items()))
        answer = self._onwards.getresponse()
        kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOPS}
        length = answer.getheader("Content-Length")
        told = answer.read()
        if self.command == "HEAD" and length:
            kept["Content-Length"] = length
        return answer.status, kept, told

    def _refusal(self) -> tuple[int, dict[str, str], bytes]:
        service = self.headers.get("X-Amz-Target", "").partition(".")[0]
        if kind := _JSON.get(service):
            if self.random.random() < 0.5:
                return 400, {"Content-Type": "application/x-amz-json-1.0"}, json.dumps({"__type": kind}).encode()
            return 503, {"Content-Type": "application/x-amz-json-1.0"}, b'{"__type":"ServiceUnavailable"}'
        return 503, {"Content-Type": "application/xml"}, _SLOW_DOWN

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RD)
        socket.close(self.connection.detach())

    def finish(self) -> None:
        if self._onwards:
            self._onwards.close()
        if self.connection.fileno() >= 0:
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: it answers thousands of calls."""

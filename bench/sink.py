"""Servers to report to: one that answers, and three that a network has in store."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Literal

Behaviour = Literal["up", "refusing", "black hole", "a byte a second"]
BEHAVIOURS: tuple[Behaviour, ...] = ("up", "refusing", "black hole", "a byte a second")
REPLY = json.dumps({"id": 1, "url": "/c/1"}).encode()


@dataclass(slots=True)
class Sink:
    """A running server and what it was sent."""

    url: str
    n_bytes: int = 0
    """Bodies, as posted."""
    n_messages: int = 0


@contextmanager
def sink(behaviour: Behaviour = "up") -> Generator[Sink]:
    """A server on 127.0.0.1 for the time of the block."""
    if behaviour == "refusing":
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets the port, and nobody answers
            yield Sink(f"http://127.0.0.1:{held.getsockname()[1]}")
        return
    found = Sink("")
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if behaviour == "black hole":
                over.wait()
                return
            found.n_bytes += len(body)
            found.n_messages += 1
            answer = f"HTTP/1.1 200 OK\r\ncontent-length: {len(REPLY)}\r\n\r\n".encode() + REPLY
            if behaviour == "up":
                self.wfile.write(answer)
                return
            for byte in answer:
                if over.wait(1):
                    return
                self.wfile.write(bytes([byte]))

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that leaves is no news here."""

    with Server(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield found
        finally:
            over.set()
            server.shutdown()

"""A server on loopback that keeps reports as the real one says it does, in either way, and fails as a test tells it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_BLOCK = 1 << 16


@dataclass
class Brought:
    """What came where the server said: the file as size and SHA-256, and the fields before it, in their order."""

    path: str
    headers: dict[str, str]
    fields: dict[str, str]
    n_bytes: int
    digest: str


@dataclass
class ReportServer:
    """`says`: by method and path, an answer in place of the usual one: status and body."""

    form: bool = False
    """As S3 has it: a form, posted."""
    says: dict[str, tuple[int, Any]] = field(default_factory=dict[str, tuple[int, Any]])
    upload_url: str | None = None
    kept: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    announced: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    asked: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])
    """Method and path; Authorization."""
    brought: list[Brought] = field(default_factory=list[Brought])
    content: bytes = b"<!doctype html><p>kept</p>"
    url: str = ""

    @contextlib.contextmanager
    def running(self) -> Generator[ReportServer]:
        http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            http.shutdown()
            http.server_close()
            thread.join()

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Of the API."""
        number = re.search(r"/reports/(\d+)", path)
        if path == "/api/v1/whoami":
            return 200, {"account": "acme"}
        if method == "POST" and path.endswith("/reports"):
            self.announced.append(body)
            made = self._record(len(self.announced), body["filename"], body["private"], body["size_bytes"])
            self.kept[made["id"]] = made
            fields = {"key": "incoming/x", "Content-Type": "text/html", "policy": "p=="} if self.form else {}
            way = {"method": "POST" if self.form else "PUT", "fields": fields, "expires": "2026-11-22T00:15:00.000Z"}
            return 201, {**made, "upload": {**way, "url": self.upload_url or "api/v1/uploads/x?size=1&sig=s"}}
        if number is None:
            return 200, {"items": [dict(each) for each in self.kept.values()], "cursor": None}
        found = self.kept[int(number[1])]
        if method == "PUT":
            found |= self._record(found["id"], found["filename"], body["private"], found["size"])
        if method == "DELETE":
            return 200, {**self.kept.pop(found["id"]), "sentence": "It is\x1b[31m gone."}
        return 200, {**found, "status": "kept", "download_url": f"{self.url}/kept/file"}

    def _record(self, number: int, filename: str, private: bool, size: int) -> dict[str, Any]:
        return {
            "id": number, "filename": filename, "title": None, "user": "ann", "user_claimed": False, "private": private,
            "size": size, "created": "2026-11-22T00:00:00.000Z", "expires": None, "status": "uploading",
            "url": f"acme/reports/{number}{'' if private else '-' + 'k' * 22}",
        }  # fmt: skip


def _handler(server: ReportServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answers(self) -> None:
            path = urlsplit(self.path).path
            name = f"{self.command} {path}"
            server.asked.append((name, self.headers.get("Authorization")))
            if path.startswith(("/api/v1/uploads/", "/bucket")):
                self._takes(path)
            elif path.startswith("/kept/"):
                self._say(*server.says.get(name, (200, server.content)))
            else:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                told = json.loads(body) if body else None
                self._say(*(server.says.get(name) or server.answer(self.command, path, told)))

        def do_GET(self) -> None:
            self._answers()

        def do_POST(self) -> None:
            self._answers()

        def do_PUT(self) -> None:
            self._answers()

        def do_DELETE(self) -> None:
            self._answers()

        def _takes(self, path: str) -> None:
            left, fields, tail = int(self.headers["Content-Length"]), dict[str, str](), b""
            if server.form:
                fields, tail, n_read = self._fields()
                left -= n_read + len(tail)
            digest, n_bytes = hashlib.sha256(), left
            while left and (block := self.rfile.read(min(left, _BLOCK))):
                digest.update(block)
                left -= len(block)
            assert self.rfile.read(len(tail)) == tail
            server.brought.append(Brought(path, dict(self.headers), fields, n_bytes, digest.hexdigest()))
            self._say(*server.says.get(f"{self.command} {path}", (204 if server.form else 200, b"")))

        def _fields(self) -> tuple[dict[str, str], bytes, int]:
            """Of a form, up to the file, which is the last; what ends the form; how many bytes were read."""
            edge = re.search(r"boundary=([^;]+)", self.headers["Content-Type"])
            assert edge
            fields, n_read, name = dict[str, str](), 0, ""
            while name != "file":
                part = b""
                while not part.endswith(b"\r\n\r\n"):
                    part += self.rfile.readline()
                n_read += len(part)
                found = re.search(rb'name="([^"]+)"', part)
                assert found
                name = found[1].decode()
                if name != "file":
                    value = self.rfile.readline()
                    n_read += len(value)
                    fields[name] = value.decode().rstrip("\r\n")
            return fields, f"\r\n--{edge[1]}--\r\n".encode(), n_read

        def _say(self, status: int, body: Any) -> None:
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler

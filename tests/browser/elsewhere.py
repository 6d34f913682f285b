"""Another site, which answers whatever it is asked, and remembers it."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qs, urlsplit

_PIXEL = bytes.fromhex(
    "47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b"
)  # a GIF of one
_TYPES = {
    "/pixel.png": ("image/gif", _PIXEL),
    "/events": ("text/event-stream", b"data: 1\n\n"),
    "/more.js": ("text/javascript", b";"),
    "/more.css": ("text/css", b"p { color: red }"),
}


class Elsewhere:
    """Runs from entering to leaving. `pages`: HTML by path."""

    def __init__(self) -> None:
        self.pages = dict[str, str]()
        self.probes = set[str]()
        """What came here with the parameter `probe`."""
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                site.probes |= set(parse_qs(url.query).get("probe", []))
                kind, body = _TYPES.get(url.path, ("text/html", site.pages.get(url.path, "<p>elsewhere").encode()))
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Access-Control-Allow-Origin", "*")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Elsewhere:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

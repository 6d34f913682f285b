"""The origin of reports, and of nothing else: what CloudFront is in AWS.

It knows no cookies and no tokens. Whoever has an address, which only this server can have made, gets its file; the
browser is told to trust nothing in it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import IO
from urllib.parse import parse_qsl, quote

from daskscope_lambdas.embedded.messages import Receive, Scope, Send, headers_of, misdirected, start
from daskscope_lambdas.isolation import HEADERS, NOT_CACHED
from daskscope_lambdas.ports import Missing, NotAdmitted, ReportHost, StoreError

logger = logging.getLogger("daskscope.serve")

_BUFFER_BYTES = 1 << 18
_ALWAYS = {**HEADERS, "Cache-Control": NOT_CACHED}


class ReportsOrigin:
    """An ASGI application. `hosts` as in Gateway."""

    def __init__(self, host: ReportHost, hosts: frozenset[str] | None) -> None:
        self._host, self._hosts = host, hosts

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", scope["type"]
        if (why := misdirected(headers_of(scope["headers"]).get("host", ""), self._hosts)) is not None:
            await _say(send, 421, why)
        elif scope["method"] not in ("GET", "HEAD"):
            await _say(send, 405, "Here are reports to look at, and nothing else.", ("Allow", "GET, HEAD"))
        else:
            await self._show(scope, send)

    async def _show(self, scope: Scope, send: Send) -> None:
        told = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        try:
            path, download = await asyncio.to_thread(self._host.find, scope["path"].removeprefix("/"), told)
            file = await asyncio.to_thread(path.open, "rb")
        except NotAdmitted:
            await _say(send, 403, "This address is over, or not whole: load the report's own page again.")
        except (Missing, FileNotFoundError):
            await _say(send, 404, "This report is gone, or is shown elsewhere: load its own page again.")
        except (StoreError, OSError):
            logger.exception("A report could not be shown.")
            await _say(send, 500, "The server failed; its log has the reason. Try again.")
        else:
            try:
                await _give(send, file, download, scope["method"])
            finally:
                file.close()


async def _give(send: Send, file: IO[bytes], download: str | None, method: str) -> None:
    size_bytes = os.fstat(file.fileno()).st_size
    headers = _ALWAYS | {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(size_bytes)}
    if download is not None:
        headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(download, safe='')}"
    await start(send, 200, headers.items())
    while method == "GET" and (part := await asyncio.to_thread(file.read, _BUFFER_BYTES)):
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body"})


async def _say(send: Send, status: int, text: str, *more: tuple[str, str]) -> None:
    body = f"{text}\n".encode()
    headers = [*_ALWAYS.items(), ("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    await start(send, status, [*headers, *more])
    await send({"type": "http.response.body", "body": body})

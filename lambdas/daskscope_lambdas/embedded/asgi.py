"""HTTP as API Gateway does it: a request becomes a v2 event, a v2 response becomes HTTP."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qsl

from daskscope import wire
from daskscope_lambdas.embedded.function import Handler
from daskscope_lambdas.embedded.messages import Receive, Scope, Send, answer, error, headers_of, misdirected, refuse
from daskscope_lambdas.embedded.turns import CrowdedError, Turns
from daskscope_lambdas.embedded.uploads import PATH as UPLOADS

logger = logging.getLogger("daskscope.serve")

Invoke = Callable[[dict[str, Any]], Awaitable[Any]]
Take = Callable[[Scope, Mapping[str, str], Receive, Send], Awaitable[None]]
"""As Uploads."""

READ_TIMEOUT_S = 30.0
"""For a whole body, however it trickles in."""
_CROWDED = "More messages of this token wait here than are taken in: post this one again later."


class Gateway:
    """The ASGI application. `ingest` runs in threads of this process, reports that somebody brings go to `take`; every
    other request goes to `api`.

    `hosts`: names this server answers to, None for any. A server that only this machine can reach must know its name,
    or a web page could reach it by a name of its own (DNS rebinding).
    """

    def __init__(self, ingest: Handler, api: Invoke, take: Take, hosts: frozenset[str] | None) -> None:
        self._ingest, self._api, self._take, self._hosts = ingest, api, take, hosts
        self._turns = Turns()
        self._threads = ThreadPoolExecutor(4, "ingest")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", scope["type"]
        headers = headers_of(scope["headers"])
        if (why := misdirected(headers.get("host", ""), self._hosts)) is not None:
            await answer(send, error(421, "misdirected", why))
            return
        if scope["path"].startswith(UPLOADS):
            await self._take(scope, headers, receive, send)
            return
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                body = await _read(receive)
        except TimeoutError:
            text = f"The body did not come whole within {READ_TIMEOUT_S:g} s: send it again."
            await answer(send, error(408, "timeout", text, {"Connection": "close"}))
            return
        except _BodyTooLargeError as found:
            text = f"The body has over {wire.MAX_BODY_BYTES} bytes: send less at a time."
            await refuse(receive, send, error(413, "too-large", text), found.more, READ_TIMEOUT_S)
            return
        if body is None:
            return
        event = _event(scope, headers, body)
        try:
            if scope["method"] == "POST" and scope["path"] == wire.PATH:
                async with self._turns.turn(headers.get("authorization", "")):
                    loop = asyncio.get_running_loop()
                    response = await loop.run_in_executor(self._threads, self._ingest, event, None)
            else:
                response = await self._api(event)
        except CrowdedError:
            response = error(429, "too-many-requests", _CROWDED, {"Retry-After": "1"})
        except Exception:
            request_id: str = event["requestContext"]["requestId"]
            logger.exception("Request %s failed.", request_id)
            text = f"The server failed; its log has the reason under request {request_id}. Try again."
            response = error(500, "server-error", text)
        await answer(send, response)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class _BodyTooLargeError(Exception):
    """The limit is passed; `more` if the client has not come to its end."""

    def __init__(self, more: bool) -> None:
        super().__init__()
        self.more = more


async def _read(receive: Receive) -> bytes | None:
    """The body; None if the client has gone. Raises _BodyTooLargeError."""
    parts, n_bytes = list[bytes](), 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part: bytes = message.get("body", b"")
        more = message.get("more_body", False)
        n_bytes += len(part)
        if n_bytes > wire.MAX_BODY_BYTES:
            raise _BodyTooLargeError(more)
        parts.append(part)
    return b"".join(parts)


def _event(scope: Scope, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    query = scope["query_string"].decode("latin-1")
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
    cookies = [part.strip() for part in headers.pop("cookie", "").split(";") if part.strip()]
    now = time.time()
    client = scope.get("client") or ("", 0)
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": scope["path"],
        "rawQueryString": query,
        "cookies": cookies,
        "headers": headers,
        "queryStringParameters": parameters,
        "requestContext": {
            "accountId": "local",
            "apiId": "local",
            "domainName": headers.get("host", ""),
            "domainPrefix": "local",
            "http": {
                "method": scope["method"],
                "path": scope["path"],
                "protocol": f"HTTP/{scope['http_version']}",
                "sourceIp": client[0],
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": uuid.uuid4().hex,
            "routeKey": "$default",
            "stage": "$default",
            "time": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
            "timeEpoch": int(now * 1000),
        },
        "body": base64.b64encode(body).decode("ascii"),
        "isBase64Encoded": True,
    }

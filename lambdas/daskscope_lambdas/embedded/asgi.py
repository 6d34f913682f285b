"""HTTP as API Gateway does it: a request becomes a v2 event, a v2 response becomes HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

from daskscope import wire
from daskscope_lambdas.embedded.function import Handler
from daskscope_lambdas.embedded.turns import CrowdedError, Turns
from daskscope_lambdas.handlers import versions

logger = logging.getLogger("daskscope.serve")

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Invoke = Callable[[dict[str, Any]], Awaitable[Any]]

DRAIN_BYTES = 32 << 20
"""Read on this far past the limit and throw it away, so that a client that only writes gets to see its 413."""
READ_TIMEOUT_S = 30.0
"""For a whole body, however it trickles in."""
_CROWDED = "More messages of this token wait here than are taken in: post this one again later."


class Gateway:
    """The ASGI application. `ingest` runs in threads of this process; every other request goes to `api`.

    `hosts`: names this server answers to, None for any. A server that only this machine can reach must know its name,
    or a web page could reach it by a name of its own (DNS rebinding).
    """

    def __init__(self, ingest: Handler, api: Invoke, hosts: frozenset[str] | None) -> None:
        self._ingest, self._api, self._hosts = ingest, api, hosts
        self._turns = Turns()
        self._threads = ThreadPoolExecutor(4, "ingest")

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", scope["type"]
        headers = _headers(scope["headers"])
        if self._hosts is not None and _name(headers.get("host", "")) not in self._hosts:
            await _answer(send, _error(421, "misdirected", _misdirected(headers.get("host", ""))))
            return
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                body = await _read(receive)
        except TimeoutError:
            text = f"The body did not come whole within {READ_TIMEOUT_S:g} s: send it again."
            await _answer(send, _error(408, "timeout", text, {"Connection": "close"}))
            return
        except _BodyTooLargeError as error:
            await _refuse(receive, send, error.more)
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
            response = _error(429, "too-many-requests", _CROWDED, {"Retry-After": "1"})
        except Exception:
            request_id: str = event["requestContext"]["requestId"]
            logger.exception("Request %s failed.", request_id)
            text = f"The server failed; its log has the reason under request {request_id}. Try again."
            response = _error(500, "server-error", text)
        await _answer(send, response)

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


async def _refuse(receive: Receive, send: Send, more: bool) -> None:
    text = f"The body has over {wire.MAX_BODY_BYTES} bytes: send less at a time."
    await _answer(send, _error(413, "too-large", text), last=False)
    drained = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(READ_TIMEOUT_S):
            while more and drained < DRAIN_BYTES:
                message = await receive()
                drained += len(message.get("body", b""))
                more = message["type"] == "http.request" and message.get("more_body", False)
    await send({"type": "http.response.body"})


async def _answer(send: Send, response: Mapping[str, Any], last: bool = True) -> None:
    text: str = response.get("body") or ""
    body = base64.b64decode(text) if response.get("isBase64Encoded") else text.encode()
    pairs: list[tuple[str, str]] = list((response.get("headers") or {}).items())
    pairs += [("Set-Cookie", cookie) for cookie in response.get("cookies") or ()]
    pairs += [("Content-Length", str(len(body)))] if last else [("Connection", "close")]
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
    await send({"type": "http.response.start", "status": response["statusCode"], "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": not last})


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}{'; ' if key == 'cookie' else ','}{text}" if key in found else text
    return found


def _event(scope: Mapping[str, Any], headers: dict[str, str], body: bytes) -> dict[str, Any]:
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


def _name(host: str) -> str:
    """A Host header without its port."""
    return host.rpartition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


def _misdirected(host: str) -> str:
    return (
        f"This server does not go by the name {host!r}. If you reach it through a proxy, start it with "
        f"`daskscope serve --allow-host {_name(host) or 'NAME'}`."
    )


def _error(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    body = json.dumps({"error": {"code": code, "message": message}})
    said = {"Content-Type": "application/json", **(headers or {})}
    return versions.told({"statusCode": status, "headers": said, "body": body})

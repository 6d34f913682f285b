"""What ASGI hands over and takes: headers, answers, bodies that nobody wants."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from daskscope_lambdas.handlers import versions

Scope = Mapping[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

DRAIN_BYTES = 32 << 20
"""Read on this far past what is wanted and throw it away, so that a client that only writes gets to see its answer."""


def headers_of(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """By name in lower case; of several alike one, as API Gateway joins them."""
    found: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}{'; ' if key == 'cookie' else ','}{text}" if key in found else text
    return found


async def start(send: Send, status: int, headers: Iterable[tuple[str, str]]) -> None:
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": raw})


async def answer(send: Send, response: Mapping[str, Any], last: bool = True) -> None:
    """A response as API Gateway v2 takes it from a function. Not `last`: the connection ends with it, once the caller
    has sent an empty body."""
    text: str = response.get("body") or ""
    body = base64.b64decode(text) if response.get("isBase64Encoded") else text.encode()
    pairs: list[tuple[str, str]] = list((response.get("headers") or {}).items())
    pairs += [("Set-Cookie", cookie) for cookie in response.get("cookies") or ()]
    pairs += [("Content-Length", str(len(body)))] if last else [("Connection", "close")]
    await start(send, response["statusCode"], pairs)
    await send({"type": "http.response.body", "body": body, "more_body": not last})


async def refuse(receive: Receive, send: Send, response: Mapping[str, Any], more: bool, timeout_s: float) -> None:
    """Answer, and only then read on, for `timeout_s` at most, if there is `more` of a body."""
    await answer(send, response, last=False)
    drained = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            while more and drained < DRAIN_BYTES:
                message = await receive()
                drained += len(message.get("body", b""))
                more = message["type"] == "http.request" and message.get("more_body", False)
    await send({"type": "http.response.body"})


def error(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    body = json.dumps({"error": {"code": code, "message": message}})
    said = {"Content-Type": "application/json", **(headers or {})}
    return versions.told({"statusCode": status, "headers": said, "body": body})


def misdirected(host: str, hosts: frozenset[str] | None) -> str | None:
    """Why a server that goes by `hosts` (None: any) does not answer to this Host header; None if it does."""
    name = host.rpartition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
    if hosts is None or name in hosts:
        return None
    return (
        f"This server does not go by the name {host!r}. If you reach it through a proxy, start it with "
        f"`daskscope serve --allow-host {name or 'NAME'}`; its pages ask for a login then."
    )

"""One token that posts without end, and others that post now and then: against the gateway, and a real server."""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

from daskscope import wire
from daskscope_lambdas.embedded.asgi import Gateway
from daskscope_lambdas.handlers import ingest
from tests.faults.telemetry import Id, body

Statuses = Counter[int]


async def crowd(flooding: str, other: str, n_flood: int, n_other: int) -> tuple[Statuses, Statuses]:
    """What the two tokens are answered if the one's messages all stay with `ingest` until the other's are through."""
    done = threading.Event()

    def slow(event: dict[str, Any], context: object) -> Any:
        if event["headers"]["authorization"] == f"Bearer {flooding}":
            assert done.wait(60)
        return ingest.handler(event, context)

    gateway = Gateway(slow, _no_api, _no_uploads, None)
    try:
        flood = [asyncio.create_task(_ask(gateway, flooding, ("a" * 32, n))) for n in range(n_flood)]
        others = [await _ask(gateway, other, ("b" * 32, n)) for n in range(n_other)]
        done.set()
        return Counter(await asyncio.gather(*flood)), Counter(others)
    finally:
        done.set()
        gateway.close()


async def _ask(gateway: Gateway, token: str, of: Id) -> int:
    posted, encoding = body(of)
    headers = {"host": "localhost", "authorization": f"Bearer {token}", "content-encoding": encoding}
    scope = {
        "type": "http",
        "method": "POST",
        "path": wire.PATH,
        "query_string": b"",
        "http_version": "1.1",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    sent: list[Mapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": posted}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await gateway(scope, receive, send)
    status: int = sent[0]["status"]
    if status == 429:
        assert (b"retry-after", b"1") in sent[0]["headers"]
    return status


async def _no_api(_event: dict[str, Any]) -> Any:
    raise AssertionError("nobody asks here")


async def _no_uploads(*_: object) -> None:
    raise AssertionError("nobody brings a report here")


@dataclass(frozen=True, slots=True)
class Felt:
    """Milliseconds that the others' posts took, and what they and the crowd were answered."""

    median_ms: float
    p99_ms: float
    others: Statuses
    crowd: Statuses


@dataclass(frozen=True, slots=True)
class Posting:
    """A token's posts: so many a second, each as soon as it is its time and its connection is free."""

    url: str
    token: str
    per_s: int
    connections: int
    length_s: float


def felt(others: Posting, flood: Posting | None) -> Felt:
    """What it takes to post beside a flood, which comes from a process of its own."""
    context = multiprocessing.get_context("forkserver")
    told, tells = context.Pipe(duplex=False)
    crowd = Statuses()
    process = context.Process(target=_flood, args=(tells, flood), daemon=True) if flood else None
    if process:
        process.start()
        told.recv()
    statuses, took_ms = asyncio.run(_post(others))
    if process:
        crowd = told.recv()
        process.join()
    took_ms.sort()
    return Felt(statistics.median(took_ms), took_ms[int(len(took_ms) * 0.99)], statuses, crowd)


def _flood(tells: Connection, posting: Posting) -> None:
    tells.send("begun")
    tells.send(asyncio.run(_post(posting))[0])


async def _post(posting: Posting) -> tuple[Statuses, list[float]]:
    where = urlsplit(posting.url)
    statuses, took_ms = Statuses(), list[float]()
    pause_s = posting.connections / posting.per_s

    async def one(n: int) -> None:
        # The same again and again: who makes messages shall cost nothing here.
        request = _request(posting.token, (f"{n:032x}", 0))
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        due = began = time.monotonic() + n * pause_s / posting.connections
        while due < began + posting.length_s:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due = max(due + pause_s, time.monotonic() - pause_s)
            sent_s = time.perf_counter()
            writer.write(request)
            statuses[await _status(reader)] += 1
            took_ms.append((time.perf_counter() - sent_s) * 1e3)
        writer.close()

    await asyncio.gather(*map(one, range(posting.connections)))
    return statuses, took_ms


def _request(token: str, of: Id) -> bytes:
    posted, encoding = body(of)
    head = (
        f"POST {wire.PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: {wire.CONTENT_TYPE}\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(posted)}\r\n\r\n"
    )
    return head.encode() + posted


async def _status(reader: asyncio.StreamReader) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r\n")[0]))
    return int(head.split(" ", 2)[1])

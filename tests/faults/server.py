"""The real server behind the proxy: `handlers.ingest` in the embedded gateway on uvicorn, SQLite and a lake on disk.

Its clock is the test's; `settle` brings what is queued into the lake as the embedded server's schedule does, `seal`
lets the days pass and seals them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import uvicorn

from daskscope_lambdas import wiring
from daskscope_lambdas.embedded.asgi import Gateway
from daskscope_lambdas.embedded.schedule import scheduler_event, sqs_event
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import api, compact, house, ingest, write
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from daskscope_query import layout
from daskscope_query.lake import Lake

ACCOUNT = "acme"
SCOPES = ("ingest", "read")
BATCH = 1000


@dataclass(frozen=True, slots=True)
class Server:
    world: LocalAdapters
    clock: FakeClock
    port: int
    token: str
    folder: Path

    def settle(self) -> int:
        """All of the queue through the `write` function; how many messages no lake can keep."""
        n_failed = 0
        while batch := self.world.feed.receive(BATCH, 3600.0):
            answer = write.handler(sqs_event(batch), None)
            failed = {item["itemIdentifier"] for item in answer["batchItemFailures"]}
            n_failed += len(failed)
            self.world.feed.delete([each.receipt for each in batch if each.id not in failed])
        return n_failed

    def seal(self) -> None:
        """Until every day that a message came on is sealed."""
        self.clock.advance(86_400 + 3 * 3600)
        compact.handler(scheduler_event(), None)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table by the rule that every query goes by, of sealed and open days."""
        lake = Lake(self.world.lake_root, self.world.seals.boundary())
        days = sorted({day for key in self._keys_of(table) if (day := layout.day_in(key))})
        found = list[dict[str, Any]]()
        if days:
            day = days[0]
            while day <= days[-1]:
                answer = lake.day(table, account=ACCOUNT, day=day)
                assert not answer.skipped, answer.skipped
                found += answer.records()
                day += timedelta(1)
        return found

    def _keys_of(self, table: str) -> Iterator[str]:
        """Of the lake's files, sealed and open ones."""
        return (key for key in self.world.objects.list("") if f"/{table}/" in key)

    def api(self, path: str) -> dict[str, Any]:
        """GET of the API, as the server itself would answer it now."""
        event = {
            "version": "2.0", "rawPath": f"/api/v1/{path}", "rawQueryString": "", "cookies": [],
            "headers": {"authorization": f"Bearer {self.token}"}, "queryStringParameters": {},
            "requestContext": {
                "requestId": "faults", "stage": "$default", "domainName": "d",
                "http": {"method": "GET", "path": f"/api/v1/{path}", "sourceIp": "127.0.0.1"},
            },
            "body": "", "isBase64Encoded": False,
        }  # fmt: skip
        answer = api.handler(event, None)
        assert answer["statusCode"] == 200, answer
        return json.loads(answer["body"])


@contextlib.contextmanager
def serving(clock: FakeClock) -> Generator[Server]:
    """An empty one, with data that goes when it ends."""
    with TemporaryDirectory(prefix="faults-") as folder, contextlib.ExitStack() as stack:
        env = LocalEnv(data=str(Path(folder) / "data"), pages="login")
        world = wiring.connect(env, clock)
        stack.callback(world.close)
        stack.enter_context(mock.patch.object(wiring, "connect", return_value=world))
        stack.enter_context(mock.patch.object(house, "read", return_value=env))
        _forget()
        stack.callback(_forget)
        gateway = Gateway(ingest.handler, _no_api, _no_uploads, None)
        stack.callback(gateway.close)
        port = stack.enter_context(_listening(gateway))
        token, _ = mint(world.tokens, clock, ACCOUNT, SCOPES, "faults")
        yield Server(world, clock, port, token, Path(folder))


def _forget() -> None:
    """What handlers remember of a world, as after a cold start."""
    for name, module in list(sys.modules.items()):
        if name.startswith("daskscope_lambdas.handlers."):
            for made in vars(module).values():
                if hasattr(made, "cache_clear") and not isinstance(made, type):
                    made.cache_clear()


async def _no_api(event: dict[str, Any]) -> Any:
    raise AssertionError(f"nobody asks the API through the proxy: {event['rawPath']}")


async def _no_uploads(*_: object) -> None:
    raise AssertionError("nobody brings a report through the proxy")


@contextlib.contextmanager
def _listening(gateway: Gateway) -> Generator[int]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(gateway, lifespan="off", access_log=False, log_level="critical", server_header=False,
                            timeout_keep_alive=600, timeout_graceful_shutdown=1)  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), name="ingest", daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()

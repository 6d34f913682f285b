import base64
import importlib
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl

import pytest

from daskscope_lambdas import wiring
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import api, api_login, auditing, house, ingest, reading, sweep, write
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import LocalAdapters

Handler = Callable[[dict[str, Any]], dict[str, Any]]


def event(method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b"", query: str = "",
          cookies: tuple[str, ...] = ()) -> dict[str, Any]:  # fmt: skip
    """As API Gateway's HTTP API makes it, payload version 2.0."""
    return {
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query, "cookies": list(cookies),
        "headers": headers or {}, "queryStringParameters": dict(parse_qsl(query, keep_blank_values=True)),
        "requestContext": {
            "accountId": "1", "apiId": "a", "domainName": "d", "domainPrefix": "p", "requestId": "request-1",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "t"},
            "routeKey": "$default", "stage": "$default", "time": "21/Nov/2026:08:00:00 +0000", "timeEpoch": 1,
        },
        "body": base64.b64encode(body).decode(), "isBase64Encoded": True,
    }  # fmt: skip


@pytest.fixture
def world(adapters: LocalAdapters, env: LocalEnv, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalAdapters]:
    """The handlers in an empty embedded world, as after a cold start."""
    importlib.import_module("daskscope_lambdas.handlers.compact")
    monkeypatch.setattr(wiring, "connect", lambda _env: adapters)
    monkeypatch.setattr(house, "read", lambda: env)
    cached = [house.env, house.adapters, house.gate, reading.catalog, reading.asker, reading.codes]
    cached += [reading.live_catalog, reading.prices]
    cached += [ingest._ingest, write._writer, write._letters, sweep._sweeper, sweep._report_sweeper]  # their own caches
    cached += [auditing.audit, api_login.rates]
    for made in cached:
        made.cache_clear()
    yield adapters
    for made in cached:
        made.cache_clear()


@pytest.fixture
def token(world: LocalAdapters) -> Callable[..., str]:
    """A token of an account with these scopes, as an Authorization header."""

    def make(*scopes: Any, account: str = "acme") -> str:
        return "Bearer " + mint(world.tokens, world.clock, account, scopes, "test")[0]

    return make


@pytest.fixture
def get(world: LocalAdapters) -> Callable[..., dict[str, Any]]:
    """GET of a path (with its query) from the `api` function."""

    def ask(target: str, authorization: str | None = None, **options: Any) -> dict[str, Any]:
        path, _, query = target.partition("?")
        headers = {"authorization": authorization} if authorization else {}
        return api.handler(event("GET", path, headers, query=query, **options), None)

    return ask


@pytest.fixture
def drain(world: LocalAdapters) -> Callable[[], dict[str, Any]]:
    """Everything in the queue through the `write` function, as SQS hands it over; what did not fail is deleted."""
    from daskscope_lambdas.embedded.schedule import sqs_event

    def run() -> dict[str, Any]:
        batch = world.feed.receive(1000, 60)
        answer = write.handler(sqs_event(batch), None)
        failed = {item["itemIdentifier"] for item in answer["batchItemFailures"]}
        world.feed.delete([d.receipt for d in batch if d.id not in failed])
        return answer

    return run


@pytest.fixture
def post(token: Callable[..., str]) -> Callable[..., dict[str, Any]]:
    """POST of a message to the `ingest` function."""
    from daskscope import wire
    from daskscope.compression import compress

    def send(posted: wire.Message, authorization: str | None = None, account: str = "acme") -> dict[str, Any]:
        body, encoding = compress(wire.encode(posted))
        headers = {"authorization": authorization or token("ingest", account=account), "content-encoding": encoding}
        return ingest.handler(event("POST", wire.PATH, headers, body), None)

    return send

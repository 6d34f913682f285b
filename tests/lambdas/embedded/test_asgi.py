import asyncio
import json
from typing import Any

import pytest

from daskscope import wire
from daskscope_lambdas.embedded import asgi
from daskscope_lambdas.embedded.asgi import Gateway

SCOPE = {
    "type": "http", "method": "POST", "path": wire.PATH, "query_string": b"", "http_version": "1.1",
    "headers": [(b"host", b"localhost")],
}  # fmt: skip


async def no_uploads(*_: object) -> None:
    raise AssertionError("half a body is no report")


async def sent_by(parts: list[bytes]) -> list[dict[str, Any]]:
    """What the gateway sends to a client that posts these parts and then falls silent."""
    left, sent = list(parts), list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        if left:
            return {"type": "http.request", "body": left.pop(0), "more_body": True}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    def ingest(_event: dict[str, Any], _context: object) -> Any:
        raise AssertionError("half a body is no message")

    async def api(_event: dict[str, Any]) -> Any:
        raise AssertionError("half a body is no message")

    gateway = Gateway(ingest, api, no_uploads, None)
    try:
        await gateway(SCOPE, receive, send)
    finally:
        gateway.close()
    return sent


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "READ_TIMEOUT_S", 0.05)


@pytest.mark.asyncio
async def test_half_a_body_gets_408(caplog: pytest.LogCaptureFixture):
    start, end = await sent_by([b"half"])
    assert start["status"] == 408
    assert dict(start["headers"])[b"connection"] == b"close"
    assert json.loads(end["body"])["error"]["code"] == "timeout"
    assert not end["more_body"]
    assert not caplog.text


@pytest.mark.asyncio
async def test_too_much_and_then_silence_gets_413_and_an_end():
    sent = await sent_by([b"x" * (wire.MAX_BODY_BYTES + 1)])
    assert sent[0]["status"] == 413
    assert [message.get("more_body", False) for message in sent[1:]] == [True, False]


@pytest.mark.asyncio
async def test_a_trickle_does_not_put_the_deadline_off(monkeypatch: pytest.MonkeyPatch):
    sent, n = list[dict[str, Any]](), 0

    async def trickle() -> dict[str, Any]:
        nonlocal n
        n += 1
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"", "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def api(_event: dict[str, Any]) -> Any:
        raise AssertionError

    gateway = Gateway(lambda _event, _context: None, api, no_uploads, None)
    await gateway(SCOPE, trickle, send)
    gateway.close()
    assert sent[0]["status"] == 408
    assert n > 1

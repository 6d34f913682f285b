"""POST /api/v1/telemetry. The path of every message: no resolver, nothing heavy."""

from __future__ import annotations

import base64
import binascii
from functools import cache
from typing import Any

import msgspec

from daskscope import wire
from daskscope.errors import BadMessage, TooLarge
from daskscope_lambdas.handlers import errors, house
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.service.tokens import require

_ENCODINGS = (None, "", "identity", "zstd", "gzip")

house.start_logging()


@cache
def _ingest() -> Ingest:
    world = house.adapters()
    return Ingest(world.queue, world.clusters, CodeKeeper(world.objects, world.vault), world.clock)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """An API Gateway v2 event to its response."""
    headers: dict[str, str] = event.get("headers") or {}
    try:
        principal = house.gate().principal(headers.get("authorization"))
        require(principal, "ingest")
        encoding = headers.get("content-encoding")
        if encoding not in _ENCODINGS:
            raise errors.UnsupportedEncodingError(
                f"Content-Encoding {encoding!r} is not taken: send zstd, gzip or none."
            )
        reply = _ingest().take(principal.account, _body(event), encoding)
    except Exception as error:  # noqa: BLE001 - the edge of the function: everything becomes an answer, faults are logged
        return errors.response(errors.problem(error, event["requestContext"]["requestId"]))
    body = msgspec.json.encode(reply).decode()
    return {"statusCode": 200, "headers": {"Content-Type": "application/json"}, "body": body, "isBase64Encoded": False}


def _body(event: dict[str, Any]) -> bytes:
    body: str = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return body.encode()
    if len(body) > (wire.MAX_BODY_BYTES + 3) * 4 // 3 + 4:
        raise TooLarge(f"The body has over {wire.MAX_BODY_BYTES} bytes: send less at a time.")
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise BadMessage(f"The body is not base64: {error}.") from error

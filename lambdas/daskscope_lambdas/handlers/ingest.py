"""POST /api/v1/telemetry. The path of every message: no resolver, nothing heavy."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from daskscope_lambdas.handlers import errors, house, posted, versions
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.service.tokens import require

house.start("tokens", "clusters", "queue", "objects")


@cache
def _ingest() -> Ingest:
    return Ingest.over(house.adapters())


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """An API Gateway v2 event to its response."""
    try:
        headers: dict[str, str | None] = event.get("headers") or {}
        principal = house.gate().principal(headers.get("authorization"), posted.account(event))
        require(principal, "ingest")
        body, encoding = posted.body(event)
        reply = _ingest().take(principal.account, body, encoding, posted.sent_at_ms(event), principal.user)
    except Exception as error:  # noqa: BLE001 - the edge of the function: everything becomes an answer, faults are logged
        return versions.told(errors.response(errors.problem(error, event["requestContext"]["requestId"])))
    text = msgspec.json.encode(reply).decode()
    headers = {"Content-Type": "application/json"}
    return versions.told({"statusCode": 200, "headers": headers, "body": text, "isBase64Encoded": False})

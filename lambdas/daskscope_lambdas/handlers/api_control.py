"""What changes something at a cluster. A bearer token alone opens these (see bearers)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope.errors import BadMessage
from daskscope_lambdas.handlers import auditing, bearers, house, posted, reading
from daskscope_lambdas.service import closing
from daskscope_lambdas.service.tokens import require

router = APIGatewayHttpRouter()

MAX_REASON = 200
"""Characters."""


class _Asked(msgspec.Struct):
    reason: str | None = None


@router.post("/api/v1/<account>/clusters/<cluster>/close")
def close(account: str, cluster: str) -> Response[str]:
    event = router.current_event
    principal = bearers.bearer(event, account)
    require(principal, "control")
    reason = _reason(event.raw_event)
    row = reading.catalog().find(account, cluster)
    auditing.record(event, principal, "cluster.close", str(row.id), cluster=row.uuid, reason=reason)
    told = closing.ask(house.adapters().clusters, house.adapters().clock, row, principal.who, reason)
    return Response(202, "application/json", json.dumps(told), {"Cache-Control": "no-store"})


def _reason(event: dict[str, Any]) -> str | None:
    """Of the posted JSON; None for none. Raises BadMessage, UnsupportedMediaError, TooLarge."""
    reason = posted.json_object(event, _Asked, {"reason": "why"}).reason
    if reason is not None and not (len(reason) <= MAX_REASON and reason.isprintable()):
        raise BadMessage(f"reason is of at most {MAX_REASON} printable characters.", "$.reason")
    return reason or None

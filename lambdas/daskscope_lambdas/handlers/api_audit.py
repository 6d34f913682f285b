"""The JSON route of what was done to an account. A bearer token alone opens it (see bearers)."""

from __future__ import annotations

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import answering, bearers, house, parameters, reading
from daskscope_lambdas.service.audit import ACTIONS, AuditReader

router = APIGatewayHttpRouter()


@router.get("/api/v1/<account>/audit")
def audit(account: str) -> Response[str]:
    bearers.admin(router.current_event, account)
    given = router.current_event.query_string_parameters
    at = parameters.position(given, house.adapters().wall.now())
    between = parameters.between(given, at.asked_at)
    actor, action = given.get("actor") or None, parameters.one_of(given, "action", ACTIONS)
    return answering.lake_page(
        router.current_event,
        lambda limit, offset, until: AuditReader(reading.asker().at(until), house.adapters().clock).acts(
            account, limit, offset, between=between, actor=actor, action=action
        ),
        parameters.MAX_LONG,
    )

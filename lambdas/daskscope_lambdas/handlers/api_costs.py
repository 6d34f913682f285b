"""The JSON routes of what clusters cost, and of the prices in force."""

from __future__ import annotations

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import answering, house, parameters, reading
from daskscope_lambdas.handlers.errors import BadParameterError
from daskscope_lambdas.service.costs import KEYS

router = APIGatewayHttpRouter()


@router.get("/api/v1/<account>/costs")
def costs(account: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    given = router.current_event.query_string_parameters
    at = parameters.position(given, house.adapters().wall.now())
    between = parameters.between(given, at.asked_at)
    by, tag, user = parameters.several(given, "by", list(KEYS)) or ["user"], given.get("tag"), given.get("user")
    if ("tag" in by) != bool(tag):
        raise BadParameterError("by=tag needs the key of the tag, like by=tag&tag=project, and nothing else takes one.")
    return answering.lake_page(
        router.current_event,
        lambda limit, offset, until: reading.costs(until).over(
            account, limit, offset, by=by, between=between, tag=tag or None, user=user or None
        ),
    )


@router.get("/api/v1/<account>/prices")
def prices(account: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    return answering.answer(reading.costs().in_force(account))

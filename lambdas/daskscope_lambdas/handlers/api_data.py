"""The JSON routes of docs/reference/http-api.md: what the tasks of clusters did."""

from __future__ import annotations

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import answering, parameters, reading

router = APIGatewayHttpRouter()


@router.get("/api/v1/<account>/clusters/<cluster>/groups")
def groups(account: str, cluster: str) -> Response[str]:
    row = answering.row(router.current_event, account, cluster)
    return answering.lake_page(
        router.current_event, lambda limit, offset, until: reading.computations(until).groups(row, limit, offset)
    )


@router.get("/api/v1/<account>/clusters/<cluster>/exceptions")
def exceptions(account: str, cluster: str) -> Response[str]:
    row, origin = answering.row(router.current_event, account, cluster), parameters.origin(_parameters())
    return answering.lake_page(
        router.current_event,
        lambda limit, offset, until: reading.queries(until).exceptions(row, limit, offset, origin),
        parameters.MAX_LONG,
    )


@router.get("/api/v1/<account>/clusters/<cluster>/events")
def events(account: str, cluster: str) -> Response[str]:
    row, topic = answering.row(router.current_event, account, cluster), _parameters().get("topic") or None
    return answering.lake_page(
        router.current_event,
        lambda limit, offset, until: reading.queries(until).events(row, limit, offset, topic),
        parameters.MAX_LONG,
    )


def _parameters() -> dict[str, str]:
    return router.current_event.query_string_parameters

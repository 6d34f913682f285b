"""The JSON routes of docs/reference/http-api.md: what was observed inside one cluster."""

from __future__ import annotations

from datetime import datetime

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import answering, house, parameters, reading
from daskscope_lambdas.service.found import Found

router = APIGatewayHttpRouter()

_CLUSTER = "/api/v1/<account>/clusters/<cluster>"


@router.get(f"{_CLUSTER}/workers")
def workers(account: str, cluster: str) -> Response[str]:
    row = answering.row(router.current_event, account, cluster)
    return _page(lambda limit, offset, until: reading.queries(until).workers(row).part(limit, offset))


@router.get(f"{_CLUSTER}/members")
def members(account: str, cluster: str) -> Response[str]:
    row, role = answering.row(router.current_event, account, cluster), parameters.role(_given(), parameters.MEMBERS)
    return _page(
        lambda limit, offset, until: reading.observed(until).members(row, limit, offset, role), parameters.MAX_LONG
    )


@router.get(f"{_CLUSTER}/deaths")
def deaths(account: str, cluster: str) -> Response[str]:
    row = answering.row(router.current_event, account, cluster)
    expected = parameters.switch(_given(), "expected")
    return _page(
        lambda limit, offset, until: reading.observed(until).deaths(row, limit, offset, expected), parameters.MAX_LONG
    )


@router.get(f"{_CLUSTER}/logs")
def logs(account: str, cluster: str) -> Response[str]:
    row, wanted = answering.row(router.current_event, account, cluster), parameters.lines(_given(), _now())
    return _page(
        lambda limit, offset, until: reading.observed(until).logs(row, limit, offset, wanted), parameters.MAX_LINES
    )


@router.get(f"{_CLUSTER}/spans")
def spans(account: str, cluster: str) -> Response[str]:
    row = answering.row(router.current_event, account, cluster)
    return _page(lambda limit, offset, until: reading.observed(until).spans(row, limit, offset))


@router.get(f"{_CLUSTER}/metrics")
def metrics(account: str, cluster: str) -> Response[str]:
    row, given = answering.row(router.current_event, account, cluster), _given()
    span, by_prefix = given.get("span") or None, parameters.by_prefix(given)
    return _page(lambda limit, offset, until: reading.observed(until).metrics(row, limit, offset, span, by_prefix))


@router.get(f"{_CLUSTER}/tasks")
def tasks(account: str, cluster: str) -> Response[str]:
    row, group = answering.row(router.current_event, account, cluster), _given().get("group") or None
    return _page(lambda limit, offset, until: reading.observed(until).tasks(row, limit, offset, group))


@router.get(f"{_CLUSTER}/samples")
def samples(account: str, cluster: str) -> Response[str]:
    row, given = answering.row(router.current_event, account, cluster), _given()
    worker, points, between = given.get("worker") or None, parameters.points(given), parameters.between(given, _now())

    def ask(limit: int, offset: int, until: datetime | None) -> Found:
        lines = reading.timelines(until)
        found = lines.worker(row, worker, points, between) if worker else lines.cluster(row, points, between)
        return found.part(limit, offset)

    return _page(ask)


def _page(ask: answering.Ask, most: int = parameters.MAX_LAKE_LIMIT) -> Response[str]:
    return answering.lake_page(router.current_event, ask, most)


def _now() -> float:
    """Epoch seconds from which times count back: on later pages when the first was asked for."""
    return parameters.position(_given(), house.adapters().wall.now()).asked_at


def _given() -> dict[str, str]:
    return router.current_event.query_string_parameters

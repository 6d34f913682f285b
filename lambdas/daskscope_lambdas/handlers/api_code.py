"""The JSON routes of computations: of one cluster, of all of an account, and one alone."""

from __future__ import annotations

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import answering, house, parameters, reading
from daskscope_lambdas.service.computations import SORTS, STATUSES, Wanted

router = APIGatewayHttpRouter()


@router.get("/api/v1/<account>/clusters/<cluster>/computations")
def of_cluster(account: str, cluster: str) -> Response[str]:
    row, wanted = answering.row(router.current_event, account, cluster), _wanted()
    return answering.lake_page(
        router.current_event,
        lambda limit, offset, until: reading.computations(until).of_cluster(row, limit, offset, wanted),
        parameters.MAX_LONG,
    )


@router.get("/api/v1/<account>/computations")
def of_account(account: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    reference = _given().get("cluster")
    wanted = _wanted(reading.catalog().find(account, reference).uuid if reference else None)
    return answering.lake_page(
        router.current_event,
        lambda limit, offset, until: reading.computations(until).of_account(account, limit, offset, wanted),
        parameters.MAX_LONG,
    )


@router.get("/api/v1/<account>/computations/<computation>")
def one(account: str, computation: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    computations = reading.computations()
    row = reading.catalog().find(account, computations.cluster_of(account, computation))
    found = computations.one(row, computation)
    return answering.answer({**found.rows[0], "as_of": found.as_of, "skipped": found.skipped})


def _wanted(cluster: str | None = None) -> Wanted:
    given = _given()
    now = parameters.position(given, house.adapters().wall.now()).asked_at
    since, until = parameters.between(given, now)
    return Wanted(
        since=since,
        until=until,
        user=given.get("user") or None,
        cluster=cluster,
        code=given.get("code") or None,
        status=parameters.one_of(given, "status", STATUSES),
        sort=parameters.sort(given, SORTS, "-start"),
    )


def _given() -> dict[str, str]:
    return router.current_event.query_string_parameters

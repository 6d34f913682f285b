"""The JSON routes of docs/reference/http-api.md: clusters, and what their tasks did."""

from __future__ import annotations

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import answering, house, parameters, reading
from daskscope_lambdas.handlers.errors import BadParameterError
from daskscope_lambdas.service import records
from daskscope_lambdas.service.answers import answers
from daskscope_lambdas.service.completeness import completeness

router = APIGatewayHttpRouter()


@router.get("/api/v1/whoami")
def whoami() -> Response[str]:
    principal = house.gate().principal(answering.authorization(router.current_event))
    return answering.answer({"account": principal.account, "name": principal.name, "scopes": sorted(principal.scopes)})


@router.get("/api/v1/<account>/clusters")
def clusters(account: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    given = _parameters()
    wanted, limit = parameters.wanted(given), parameters.limit(given)
    try:
        page = reading.catalog().page(account, wanted, limit, given.get("cursor"))
    except ValueError as error:
        raise BadParameterError(
            f"cursor is {given.get('cursor')!r}; allowed: the cursor from the page before."
        ) from error
    now = house.adapters().clock.now()
    return answering.answer({"items": [records.cluster(row, now) for row in page.rows], "cursor": page.cursor})


@router.get("/api/v1/<account>/clusters/<cluster>")
def cluster(account: str, cluster: str) -> Response[str]:
    row, now = answering.row(router.current_event, account, cluster), house.adapters().clock.now()
    told = {
        "answers": answers(row, now, reading.depth().for_answers(row)),
        "completeness": completeness(reading.asker(), row, now),
    }
    return answering.answer({**records.cluster(row, now), **told})


@router.get("/api/v1/<account>/clusters/<cluster>/computations")
def computations(account: str, cluster: str) -> Response[str]:
    row, now = answering.row(router.current_event, account, cluster), house.adapters().clock.now()
    return answering.lake_page(
        router.current_event, lambda limit, offset, until: reading.depth(until).computations(row, now, limit, offset)
    )


@router.get("/api/v1/<account>/clusters/<cluster>/groups")
def groups(account: str, cluster: str) -> Response[str]:
    row = answering.row(router.current_event, account, cluster)
    return answering.lake_page(
        router.current_event, lambda limit, offset, until: reading.queries(until).groups(row).part(limit, offset)
    )


@router.get("/api/v1/<account>/clusters/<cluster>/exceptions")
def exceptions(account: str, cluster: str) -> Response[str]:
    row, origin = answering.row(router.current_event, account, cluster), parameters.origin(_parameters())
    return answering.lake_page(
        router.current_event, lambda limit, offset, until: reading.queries(until).exceptions(row, limit, offset, origin)
    )


@router.get("/api/v1/<account>/clusters/<cluster>/events")
def events(account: str, cluster: str) -> Response[str]:
    row, topic = answering.row(router.current_event, account, cluster), _parameters().get("topic") or None
    return answering.lake_page(
        router.current_event, lambda limit, offset, until: reading.queries(until).events(row, limit, offset, topic)
    )


@router.get("/api/v1/<account>/exceptions")
def account_exceptions(account: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    given = _parameters()
    since_s, origin, reference = parameters.since_s(given), parameters.origin(given), given.get("cluster")
    user = given.get("user") or None
    uuid = reading.catalog().find(account, reference).uuid if reference else None
    return answering.lake_page(
        router.current_event,
        lambda limit, offset, until: reading.queries(until).account_exceptions(
            account, limit, offset, since_s=since_s, user=user, cluster=uuid, origin=origin
        ),
    )


def _parameters() -> dict[str, str]:
    return router.current_event.query_string_parameters

"""The JSON routes of what all clusters of an account did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import answering, house, parameters, reading
from daskscope_lambdas.handlers.errors import BadParameterError
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.same_code import RECENT_DAYS
from daskscope_lambdas.service.team import Between

router = APIGatewayHttpRouter()

SORTS = ("time", "bytes", "count")


@router.get("/api/v1/<account>/prefixes")
def prefixes(account: str) -> Response[str]:
    _check(account)
    given, between, user, row = _given(), _between(), _named("user"), _row(account)
    sort = parameters.one_of(given, "sort", SORTS) or "time"
    if row is None:
        return _page(
            lambda limit, offset, until: reading.team(until).prefixes(
                account, limit, offset, between=between, user=user, sort=sort
            )
        )
    return _page(lambda limit, offset, until: reading.team(until).prefixes_of(row, limit, offset, sort))


@router.get("/api/v1/<account>/exceptions")
def exceptions(account: str) -> Response[str]:
    _check(account)
    given, (since, until_at), user, row = _given(), _between(), _named("user"), _row(account)
    origin = parameters.origin(given)
    if parameters.one_of(given, "group", ("family",)):
        if row or _named("family"):
            raise BadParameterError("group=family is over all clusters and families: leave `cluster` and `family` out.")
        return _page(
            lambda limit, offset, until: reading.team(until).families(
                account, limit, offset, between=(since, until_at), user=user, origin=origin
            )
        )
    family = _named("family")
    return _page(
        lambda limit, offset, until: reading.queries(until).account_exceptions(
            account,
            limit,
            offset,
            since=since,
            until=until_at,
            user=user,
            cluster=row.uuid if row else None,
            origin=origin,
            family=family,
        ),
        parameters.MAX_LONG,
    )


@router.get("/api/v1/<account>/deaths")
def deaths(account: str) -> Response[str]:
    _check(account)
    between, user, expected = _between(), _named("user"), parameters.switch(_given(), "expected")
    return _page(
        lambda limit, offset, until: reading.team(until).deaths(
            account, limit, offset, between=between, user=user, expected=expected
        ),
        parameters.MAX_LONG,
    )


@router.get("/api/v1/<account>/events")
def events(account: str) -> Response[str]:
    _check(account)
    between, user, topic = _between(), _named("user"), _named("topic")
    return _page(
        lambda limit, offset, until: reading.team(until).events(
            account, limit, offset, between=between, user=user, topic=topic
        ),
        parameters.MAX_LONG,
    )


@router.get("/api/v1/<account>/logs")
def logs(account: str) -> Response[str]:
    _check(account)
    wanted, catalog = parameters.lines(_given(), _now()), reading.live_catalog().table(account)
    return _page(
        lambda limit, offset, until: reading.observed(until).account_logs(account, catalog, limit, offset, wanted),
        parameters.MAX_LINES,
    )


@router.get("/api/v1/<account>/metrics")
def metrics(account: str) -> Response[str]:
    _check(account)
    since, user, prefix = parameters.moment(_given(), "since", _now()), _named("user"), _named("prefix")
    catalog = reading.live_catalog().table(account)
    return _page(
        lambda limit, offset, until: reading.observed(until).account_metrics(
            account, catalog, limit, offset, since=since, user=user, prefix=prefix
        )
    )


@router.get("/api/v1/<account>/code")
def code(account: str) -> Response[str]:
    _check(account)
    between, user = _recently(), _named("user")
    return _page(
        lambda limit, offset, until: reading.same_code(until).code(account, limit, offset, between=between, user=user),
        parameters.MAX_LONG,
    )


@router.get("/api/v1/<account>/hardware")
def hardware(account: str) -> Response[str]:
    _check(account)
    between, fingerprint = _recently(), _named("code")
    if fingerprint is None:
        raise BadParameterError("code is missing: the `fingerprint` of a computation, or of a record of /code.")
    return _page(
        lambda limit, offset, until: reading.same_code(until).hardware(
            account, limit, offset, fingerprint=fingerprint, between=between
        )
    )


def _check(account: str) -> None:
    answering.check_account(router.current_event, account)


def _page(ask: answering.Ask, most: int = parameters.MAX_LAKE_LIMIT) -> Response[str]:
    return answering.lake_page(router.current_event, ask, most)


def _row(account: str) -> ClusterRow | None:
    """The cluster that is asked about, None for all. Raises NotFound."""
    reference = _named("cluster")
    return reading.catalog().find(account, reference) if reference else None


def _between() -> Between:
    return parameters.between(_given(), _now())


def _recently() -> Between:
    """As `_between`, but not from the first on where nobody says since when."""
    since, until = _between()
    now = datetime.fromtimestamp(_now(), UTC)
    return since or min(until or now, now) - timedelta(RECENT_DAYS), until


def _named(name: str) -> str | None:
    return _given().get(name) or None


def _now() -> float:
    """Epoch seconds from which times count back: on later pages when the first was asked for."""
    return parameters.position(_given(), house.adapters().wall.now()).asked_at


def _given() -> dict[str, str]:
    return router.current_event.query_string_parameters

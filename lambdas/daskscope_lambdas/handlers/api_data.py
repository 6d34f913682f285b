"""The JSON routes of docs/reference/http-api.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import house, parameters, reading
from daskscope_lambdas.handlers.errors import BadParameterError
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service import records
from daskscope_lambdas.service.answers import answers
from daskscope_lambdas.service.queries import Found

router = APIGatewayHttpRouter()

PAGE_CHARS = 4 << 20
"""Of the items of a page. Lambda carries 6 MB, and in its own JSON every quote takes two."""


@router.get("/api/v1/whoami")
def whoami() -> Response[str]:
    principal = house.gate().principal(_authorization())
    return _json({"account": principal.account, "name": principal.name, "scopes": sorted(principal.scopes)})


@router.get("/api/v1/<account>/clusters")
def clusters(account: str) -> Response[str]:
    reading.check_account(_authorization(), account, reading.cookies(router.current_event))
    given = _parameters()
    wanted, limit = parameters.wanted(given), parameters.limit(given)
    try:
        page = reading.catalog().page(account, wanted, limit, given.get("cursor"))
    except ValueError as error:
        raise BadParameterError(
            f"cursor is {given.get('cursor')!r}; allowed: the cursor from the page before."
        ) from error
    now = house.adapters().clock.now()
    return _json({"items": [records.cluster(row, now) for row in page.rows], "cursor": page.cursor})


@router.get("/api/v1/<account>/clusters/<cluster>")
def cluster(account: str, cluster: str) -> Response[str]:
    row, now = _row(account, cluster), house.adapters().clock.now()
    depth = reading.depth().for_answers(row)
    return _json({**records.cluster(row, now), "answers": answers(row, now, depth)})


@router.get("/api/v1/<account>/clusters/<cluster>/computations")
def computations(account: str, cluster: str) -> Response[str]:
    row, now = _row(account, cluster), house.adapters().clock.now()
    return _lake_page(lambda limit, offset: reading.depth().computations(row, now, limit, offset))


@router.get("/api/v1/<account>/clusters/<cluster>/exceptions")
def exceptions(account: str, cluster: str) -> Response[str]:
    row = _row(account, cluster)
    return _lake_page(lambda limit, offset: reading.queries().exceptions(row, limit, offset))


@router.get("/api/v1/<account>/clusters/<cluster>/events")
def events(account: str, cluster: str) -> Response[str]:
    row = _row(account, cluster)
    return _lake_page(lambda limit, offset: reading.queries().events(row, limit, offset))


@router.get("/api/v1/<account>/clusters/<cluster>/workers")
def workers(account: str, cluster: str) -> Response[str]:
    found = reading.queries().workers(_row(account, cluster))
    return _lake_page(lambda limit, offset: found.part(limit, offset))


@router.get("/api/v1/<account>/exceptions")
def account_exceptions(account: str) -> Response[str]:
    reading.check_account(_authorization(), account, reading.cookies(router.current_event))
    given = _parameters()
    since_s, user, reference = parameters.since_s(given), given.get("user") or None, given.get("cluster")
    uuid = reading.catalog().find(account, reference).uuid if reference else None
    return _lake_page(
        lambda limit, offset: reading.queries().account_exceptions(account, since_s, user, uuid, limit, offset)
    )


def _row(account: str, cluster: str) -> ClusterRow:
    reading.check_account(_authorization(), account, reading.cookies(router.current_event))
    return reading.catalog().find(account, cluster)


def _lake_page(ask: Callable[[int, int], Found]) -> Response[str]:
    limit, offset = parameters.limit(_parameters()), parameters.offset(_parameters())
    found = ask(limit + 1, offset)  # one more than asked for, to know whether a page follows
    items = _fitting(found.rows[:limit])
    cursor = str(offset + len(items)) if len(found.rows) > len(items) else None
    return _json({"items": items, "cursor": cursor, "as_of": found.as_of, "skipped": found.skipped})


def _fitting(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many from the start as an answer may hold, but one at least; the next page has the others."""
    fitting, n_chars = list[dict[str, Any]](), 0
    for row in rows:
        n_chars += len(json.dumps(row, default=_plain))
        if fitting and n_chars > PAGE_CHARS:
            break
        fitting.append(row)
    return fitting


def _authorization() -> str | None:
    return router.current_event.headers.get("authorization")


def _parameters() -> dict[str, str]:
    return router.current_event.query_string_parameters


def _json(body: dict[str, Any]) -> Response[str]:
    return Response(200, "application/json", json.dumps(body, default=_plain), {"Cache-Control": "no-store"})


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return records.iso(value)
    raise TypeError(f"{type(value)} has no place in JSON.")

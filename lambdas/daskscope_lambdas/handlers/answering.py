"""What the routes of the JSON API share: which cluster is asked about, and how an answer is put."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from daskscope_lambdas.handlers import house, parameters, reading, visitors
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service import records
from daskscope_lambdas.service.found import Found

Event = APIGatewayProxyEventV2
Ask = Callable[[int, int, datetime | None], Found]
"""For limit, offset, and the time by which what is asked about was received (None: all)."""

PAGE_CHARS = 4 << 20
"""Of the items of a page. Lambda carries 6 MB, and in its own JSON every quote takes two."""


def check_account(event: Event, account: str) -> None:
    """Raises NotLoggedIn, PermissionDenied, NotFound."""
    visitors.check_account(event, account)


def row(event: Event, account: str, cluster: str) -> ClusterRow:
    """Raises NotLoggedIn, PermissionDenied, NotFound."""
    check_account(event, account)
    return reading.catalog().find(account, cluster)


def lake_page(event: Event, ask: Ask, most: int = parameters.MAX_LAKE_LIMIT) -> Response[str]:
    """A page of a list out of the lake, of `most` records at most. The first one says in its cursor what had come by
    then, and the others hold to it: what arrives between two pages moves nothing."""
    given = event.query_string_parameters
    limit = parameters.limit(given, most=most)
    at = parameters.position(given, house.adapters().wall.now())
    found = ask(limit + 1, at.offset, at.until)  # one more than asked for, to know whether a page follows
    items = fitting(found.rows[:limit])
    following = replace(at, offset=at.offset + len(items), until=found.until)
    cursor = following.cursor() if len(found.rows) > len(items) else None
    body = {"items": items, "cursor": cursor, "as_of": found.as_of, "skipped": found.skipped}
    return answer({**body, **found.more})


def answer(body: Mapping[str, Any], status: int = 200) -> Response[str]:
    return Response(
        status, "application/json", json.dumps(body, default=_plain, allow_nan=False), {"Cache-Control": "no-store"}
    )


def part(event: Event, rows: Sequence[dict[str, Any]]) -> Response[str]:
    """A page of a list that is all at hand."""
    given = event.query_string_parameters
    limit, offset = parameters.limit(given), parameters.offset(given)
    following = offset + limit
    cursor = str(following) if following < len(rows) else None
    return answer({"items": rows[offset:following], "cursor": cursor})


def fitting(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many from the start as an answer may hold, but one at least; the next page has the others."""
    fitting, n_chars = list[dict[str, Any]](), 0
    for found in rows:
        n_chars += len(json.dumps(found, default=_plain))
        if fitting and n_chars > PAGE_CHARS:
            break
        fitting.append(found)
    return fitting


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return records.iso(value)
    raise TypeError(f"{type(value)} has no place in JSON.")

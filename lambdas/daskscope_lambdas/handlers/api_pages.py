"""The pages: HTML made on the server, readable without a script."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlencode

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from daskscope.errors import NotFound
from daskscope_lambdas import web
from daskscope_lambdas.handlers import house, pages, parameters, reading, visitors, wanted
from daskscope_lambdas.handlers.errors import Problem
from daskscope_lambdas.handlers.visitors import Visitor
from daskscope_lambdas.service import closing
from daskscope_lambdas.service.catalog import uuid_of
from daskscope_lambdas.service.completeness import completeness
from daskscope_lambdas.service.words import duration
from daskscope_lambdas.web import views

router = APIGatewayHttpRouter()

_PER_PAGE = 50


@router.get("/healthz")
def healthz() -> Response[str]:
    return Response(200, "text/plain; charset=utf-8", "ok\n", {"Cache-Control": "no-store"})


@router.get("/static/<name>")
def static(name: str) -> Response[str]:
    try:
        headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "public, max-age=3600"}
        return Response(200, web.STATIC[name], web.static(name), headers)
    except KeyError as error:
        raise NotFound(f"No file {name}.") from error


@router.get("/")
def start() -> Response[str]:
    return pages.redirect(router.current_event, f"{_visitor().account}/analytics")


@router.get("/<account>/analytics")
def clusters(account: str) -> Response[str]:
    visitor = _visitor(account)
    given = _parameters()
    page, now = wanted.page(account, given, _PER_PAGE), house.adapters().clock.now()
    shown = {name: given.get(name, "") for name in ("since", "user", "status", "q", "sort")}
    query = {name: value for name, value in given.items() if value and name != "cursor"}
    cursor = given.get("cursor")
    return pages.page(
        router.current_event,
        "clusters.html",
        visitor,
        account=account,
        rows=[views.listed(each.row, now, each.cost) for each in page.items],
        filter=shown,
        since=_span(shown["since"]),
        filtered=bool(query),
        paged=bool(cursor),
        first_run=not (page.items or query or cursor),
        cursor=page.cursor,
        query=urlencode(query),
        query_older=urlencode({**query, "cursor": page.cursor or ""}),
    )


@router.get("/<account>/analytics/clusters/<cluster>")
def cluster(account: str, cluster: str) -> Response[str]:
    visitor = _visitor(account)
    row = reading.catalog().find(account, cluster)
    offset, now = parameters.offset(_parameters()), house.adapters().clock.now()
    found = reading.depth().everything(row, (views.COMPUTATIONS + 1, offset), views.LISTED + 1)
    complete = completeness(reading.asker(), row, now)
    cost = reading.costs().of(row)
    shown = views.cluster(row, now, found, cost, offset, complete)
    may_close = visitors.may(visitor, "control") and closing.may_be_asked(row, now)
    return pages.page(router.current_event, "cluster.html", visitor, account=account, may_close=may_close, **shown)


@router.get("/c/<scheduler>")
def by_scheduler(scheduler: str) -> Response[str]:
    """Where a plugin points to before the server has told it the cluster's number."""
    visitor, event = _visitor(), router.current_event
    uuid_of(scheduler)
    for account in visitors.accounts(visitor):
        with suppress(NotFound):
            row = reading.catalog().find(account, scheduler)
            return pages.redirect(event, f"{account}/analytics/clusters/{row.id}")
    lines = ("This cluster has not reported yet.", "The page looks again every 3 seconds.")
    return pages.page(event, "message.html", visitor, 404, title="Not heard of yet", lines=lines, refresh_s=3)


def problem_page(event: APIGatewayProxyEventV2, found: Problem) -> Response[str]:
    """What a browser gets instead of the JSON of an error."""
    if found.status == 401:
        return pages.sign_in(event, 401, found.message, after=pages.here(event))
    titles = {403: "Not allowed", 404: "Not found", 500: "The server failed"}
    title = titles.get(found.status, "This did not work")
    visitor = visitors.known(event) if found.status < 500 else None  # what fails may be what knows them
    return pages.page(event, "message.html", visitor, found.status, title=title, lines=[found.message], refresh_s=None)


def _visitor(account: str | None = None) -> Visitor:
    """As visitors.visitor."""
    return visitors.visitor(router.current_event, account)


def _span(since: str) -> str:
    """What `since` means, in words."""
    return f"the last {duration(float(since))}" if since.replace(".", "", 1).isdecimal() else f"the time since {since}"


def _parameters() -> dict[str, str]:
    return router.current_event.query_string_parameters

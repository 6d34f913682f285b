"""The pages: HTML made on the server, readable without a script."""

from __future__ import annotations

from urllib.parse import urlencode

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from aws_lambda_powertools.shared.cookies import Cookie, SameSite

from daskscope.errors import NotFound
from daskscope_lambdas import web
from daskscope_lambdas.handlers import house, parameters, reading, wanted
from daskscope_lambdas.handlers.errors import Problem
from daskscope_lambdas.service.catalog import uuid_of
from daskscope_lambdas.service.completeness import completeness
from daskscope_lambdas.service.words import duration
from daskscope_lambdas.web import views

router = APIGatewayHttpRouter()

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'self'; object-src 'none'; script-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_HTTPS_ONLY = {"Strict-Transport-Security": "max-age=31536000"}
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


@router.get("/login")
def login() -> Response[str]:
    """A token in the link becomes a cookie, which scripts cannot read and other sites cannot use to change anything."""
    token = _parameters().get("token", "")
    account = reading.reader(f"Bearer {token}").account
    secure = house.env().world != "local"
    cookie = Cookie(reading.COOKIE, token, path="/", secure=secure, http_only=True, same_site=SameSite.LAX_MODE)
    return _redirect(f"{account}/analytics", [cookie])


@router.get("/")
def start() -> Response[str]:
    return _redirect(f"{_account()}/analytics")


@router.get("/<account>/analytics")
def clusters(account: str) -> Response[str]:
    _check(account)
    given = _parameters()
    page, now = wanted.page(account, given, _PER_PAGE), house.adapters().clock.now()
    shown = {name: given.get(name, "") for name in ("since", "user", "status", "q", "sort")}
    query = {name: value for name, value in given.items() if value and name != "cursor"}
    cursor = given.get("cursor")
    return _page(
        "clusters.html",
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
    _check(account)
    row = reading.catalog().find(account, cluster)
    offset, now = parameters.offset(_parameters()), house.adapters().clock.now()
    found = reading.depth().everything(row, (views.COMPUTATIONS + 1, offset), views.LISTED + 1)
    complete = completeness(reading.asker(), row, now)
    cost = reading.costs().of(row)
    return _page("cluster.html", account=account, **views.cluster(row, now, found, cost, offset, complete))


@router.get("/c/<scheduler>")
def by_scheduler(scheduler: str) -> Response[str]:
    """Where a plugin points to before the server has told it the cluster's number."""
    account = _account()
    uuid_of(scheduler)
    try:
        row = reading.catalog().find(account, scheduler)
    except NotFound:
        lines = ("This cluster has not reported yet.", "The page looks again every 3 seconds.")
        return _page("message.html", 404, title="Not heard of yet", lines=lines, refresh_s=3)
    return _redirect(f"../{account}/analytics/clusters/{row.id}")


def problem_page(path: str, found: Problem) -> Response[str]:
    """What a browser gets instead of the JSON of an error."""
    titles = {401: "Please log in", 404: "Not found", 500: "The server failed"}
    lines = [found.message]
    if found.status == 401:
        lines = [
            "These pages need a login: open /login?token=… with a token that may read.",
            "`daskscope serve` prints this link when it starts; in AWS, `daskscope admin token new` makes a token.",
            found.message,
        ]
    title = titles.get(found.status, "This did not work")
    html = web.render("message.html", path, title=title, lines=lines, refresh_s=None)
    return Response(found.status, "text/html; charset=utf-8", html, _headers())


def _account() -> str:
    return reading.page_account(reading.cookies(router.current_event))


def _check(account: str) -> None:
    if account != _account():
        raise NotFound(f"No account {account} here.")


def _span(since: str) -> str:
    """What `since` means, in words."""
    return f"the last {duration(float(since))}" if since.replace(".", "", 1).isdecimal() else f"the time since {since}"


def _parameters() -> dict[str, str]:
    return router.current_event.query_string_parameters


def _page(template: str, status: int = 200, /, **context: object) -> Response[str]:
    html = web.render(template, router.current_event.path, **context)
    return Response(status, "text/html; charset=utf-8", html, _headers())


def _headers() -> dict[str, str | list[str]]:
    """In AWS with the word that there is no way here but https; on one machine that is the proxy's to say."""
    return {**_HEADERS, **(_HTTPS_ONLY if house.env().world == "aws" else {})}


def _redirect(target: str, cookies: list[Cookie] | None = None) -> Response[str]:
    return Response(303, "text/plain; charset=utf-8", "", {**_headers(), "Location": target}, cookies)

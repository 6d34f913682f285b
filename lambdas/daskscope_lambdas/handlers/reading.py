"""What the reading functions share: the way from a request to its bearer, its cluster and what is kept of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from http.cookies import SimpleCookie

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from daskscope.errors import NotFound
from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.catalog import Catalog
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.depth import DepthReader
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.observed import Observed
from daskscope_lambdas.service.queries import Queries
from daskscope_lambdas.service.tokens import Principal, require

COOKIE = "daskscope"
EMBEDDED_ACCOUNT = "local"


@cache
def catalog() -> Catalog:
    return Catalog(house.adapters().clusters, house.adapters().clock)


@cache
def asker() -> Asker:
    return Asker(house.adapters().lake_root, house.adapters().seals, house.adapters().deletions)


@cache
def codes() -> CodeKeeper:
    return CodeKeeper(house.adapters().objects, house.adapters().vault)


def queries(until: datetime | None = None) -> Queries:
    """Of what the server had received by then; None: of all."""
    return Queries(asker().at(until), house.adapters().clock)


def observed(until: datetime | None = None) -> Observed:
    """As `queries`."""
    return Observed(asker().at(until), house.adapters().clock)


def depth(until: datetime | None = None) -> DepthReader:
    """As `queries`."""
    return DepthReader(queries(until), codes())


def reader(authorization: str | None) -> Principal:
    """Who reads. Raises NotLoggedIn, PermissionDenied."""
    principal = house.gate().principal(authorization)
    require(principal, "read")
    return principal


def check_account(authorization: str | None, account: str, cookies: Sequence[str] = ()) -> None:
    """Data to read: for a bearer token, or without one for whoever may see the account's pages.

    A token that is sent must be good, whatever the pages ask for. Raises NotFound for another account than the
    reader's, and what `reader` raises.
    """
    theirs = reader(authorization).account if authorization else page_account(cookies)
    if theirs != account:
        raise NotFound(f"No account {account} for this reader.")


def cookies(event: APIGatewayProxyEventV2) -> list[str]:
    """Those of a request. AWS lists them apart; some that speak its format leave them in their header."""
    return event.cookies or [event.headers.get("cookie", "")]


def page_account(cookies: Sequence[str]) -> str:
    """Whose pages a browser may see. Raises NotLoggedIn, PermissionDenied."""
    if house.env().pages == "open":
        return EMBEDDED_ACCOUNT
    jar = SimpleCookie("; ".join(cookies))
    token = jar[COOKIE].value if COOKIE in jar else None
    return reader(f"Bearer {token}" if token else None).account

"""How a page is answered: its HTML with the menu of who looks at it, and the headers of all pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.shared.cookies import Cookie
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from daskscope_lambdas import web
from daskscope_lambdas.handlers import forms, house, visitors
from daskscope_lambdas.handlers.visitors import SignedIn, Visitor

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'self'; object-src 'none'; script-src 'none'",
    "X-Content-Type-Options": "nosniff",
    # With none at all a browser would not even tell ourselves that a form is from our own page.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_HTTPS_ONLY = {"Strict-Transport-Security": "max-age=31536000"}
MAX_AFTER = 500
"""Characters."""
_AFTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~@+/-]*(\?[A-Za-z0-9._~@+=&%/-]*)?")
"""A path of ours below the server's address: what it starts with is no scheme and no host."""


def page(
    event: APIGatewayProxyEventV2, template: str, visitor: Visitor | None, status: int = 200, /, **context: Any
) -> Response[str]:
    """`visitor`: None where nobody knows who looks. Forms find their `csrf` in the template's `menu`."""
    html = web.render(template, event.path, menu=_menu(event, visitor), **context)
    return Response(status, "text/html; charset=utf-8", html, headers())


def sign_in(event: APIGatewayProxyEventV2, status: int, problem: str | None, *, after: str = "", code: str = "",
            told: Mapping[str, Any] | None = None) -> Response[str]:  # fmt: skip
    """The page on which people sign in. `problem`: what went wrong, `after`: where they wanted to go, as `target` of
    `redirect`; `code`, `told`: of the link that they opened."""
    visitor = visitors.known(event) if status < 500 else None
    return page(event, "login.html", visitor, status, problem=problem, after=after, code=code, told=told)


def redirect(event: APIGatewayProxyEventV2, target: str, cookies: list[Cookie] | None = None) -> Response[str]:
    """To another of our pages, by GET; `target` is relative to the server's address."""
    location = web.root(event.path).removeprefix("./") + target or "./"
    return Response(303, "text/plain; charset=utf-8", "", {**headers(), "Location": location}, cookies)


def checked_after(target: str) -> str:
    """Where to go once signed in: `target` if that is a page of this server, else nothing."""
    below = _AFTER.fullmatch(target) and ".." not in target and "//" not in urlsplit(target).path
    return target if below and len(target) <= MAX_AFTER else ""


def here(event: APIGatewayProxyEventV2) -> str:
    """The page that was asked for, as `target` of `redirect`; none for what a form posted."""
    if event.http_method != "GET":
        return ""
    query = event.raw_query_string
    return checked_after(event.path.lstrip("/") + (f"?{query}" if query else ""))


def headers() -> dict[str, str | list[str]]:
    """In AWS with the word that there is no way here but https; on one machine that is the proxy's to say."""
    return {**_HEADERS, **(_HTTPS_ONLY if house.env().world == "aws" else {})}


def _menu(event: APIGatewayProxyEventV2, visitor: Visitor | None) -> dict[str, Any]:
    """What a page's head shows of who looks: `account`, and of who is signed in `who`, `user`, `role`, `csrf`, and
    their `accounts`; of others `here`, to come back to."""
    if not isinstance(visitor, SignedIn):
        account = visitor.account if visitor else None
        return {"account": account, "who": None, "csrf": None, "accounts": [], "here": here(event)}
    principal = visitor.principal
    return {
        "account": visitor.account,
        "who": principal.who,
        "user": principal.user,
        "role": principal.role,
        "csrf": forms.csrf(visitor.session),
        "accounts": visitors.accounts(visitor),
    }

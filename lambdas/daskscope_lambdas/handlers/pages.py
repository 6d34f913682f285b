"""How a page is answered: its HTML with the menu of who looks at it, and the headers of all pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def page(
    event: APIGatewayProxyEventV2, template: str, visitor: Visitor | None, status: int = 200, /, **context: Any
) -> Response[str]:
    """`visitor`: None where nobody knows who looks. Forms find their `csrf` in the template's `menu`."""
    html = web.render(template, event.path, menu=menu(visitor), **context)
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


def headers() -> dict[str, str | list[str]]:
    """In AWS with the word that there is no way here but https; on one machine that is the proxy's to say."""
    return {**_HEADERS, **(_HTTPS_ONLY if house.env().world == "aws" else {})}


def menu(visitor: Visitor | None) -> dict[str, Any]:
    """What a page's head shows of who looks: `account`, and of who is signed in `who`, `user`, `role`, `csrf`, and
    their `accounts`."""
    if not isinstance(visitor, SignedIn):
        return {"account": visitor and visitor.account, "who": None, "csrf": None, "accounts": []}
    principal = visitor.principal
    return {
        "account": visitor.account,
        "who": principal.who,
        "user": principal.user,
        "role": principal.role,
        "csrf": forms.csrf(visitor.session),
        "accounts": visitors.accounts(visitor),
    }

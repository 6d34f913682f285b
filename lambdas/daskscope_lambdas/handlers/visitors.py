"""Who looks at a page: somebody by the session in their cookie, or, where pages are open, whoever comes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from aws_lambda_powertools.shared.cookies import Cookie, SameSite
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from daskscope.errors import NotFound, NotLoggedIn, PermissionDenied
from daskscope_lambdas.handlers import house, reading
from daskscope_lambdas.ports import Missing, Scope
from daskscope_lambdas.service.tokens import Principal, parse

OPEN_ACCOUNT = "local"
"""The account that is to be seen without a login, where pages are open."""
_SIGN_IN = "Sign in to see this page."


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who may see an account's pages."""

    account: str


@dataclass(frozen=True, slots=True)
class SignedIn(Visitor):
    """One who has a session, and so may change what their scopes let them."""

    principal: Principal
    session: str
    """The text of its token, as the cookie holds it."""


def visitor(event: APIGatewayProxyEventV2, account: str | None = None) -> Visitor:
    """Who looks at that account's pages; None: at those of their own account.

    Raises NotLoggedIn, PermissionDenied, and NotFound for an account that is not theirs.
    """
    is_open = house.env().pages == "open"
    if _session(event):
        try:
            return signed_in(event, account)
        except (NotLoggedIn, PermissionDenied, NotFound):
            if not is_open:
                raise
    if not is_open:
        raise NotLoggedIn(_SIGN_IN)
    if account not in (None, OPEN_ACCOUNT):
        raise NotFound(f"No account {account} here.")
    return Visitor(OPEN_ACCOUNT)


def signed_in(event: APIGatewayProxyEventV2, account: str | None = None) -> SignedIn:
    """As `visitor`, and with a session whatever pages ask for. Raises as it does."""
    text = _session(event)
    if not text:
        raise NotLoggedIn(_SIGN_IN)
    principal = reading.visitor(text, account) if account else at_home(text)
    return SignedIn(principal.account, principal, text)


def at_home(text: str) -> Principal:
    """Who has that session, or token, in the account that it was made in, or in another of theirs if they left that.

    Raises NotLoggedIn, PermissionDenied.
    """
    try:
        return reading.visitor(text)
    except NotLoggedIn:
        if not (elsewhere := _elsewhere(text)):
            raise
        return reading.visitor(text, elsewhere)


def known(event: APIGatewayProxyEventV2) -> SignedIn | None:
    """Who is signed in, if anybody: for the pages on which people come in."""
    with suppress(NotLoggedIn, PermissionDenied, NotFound):
        return signed_in(event)
    return None


def may(visitor: Visitor, scope: Scope) -> bool:
    """Whether they may change what that scope lets people change."""
    return isinstance(visitor, SignedIn) and scope in visitor.principal.scopes


def accounts(visitor: Visitor) -> Sequence[str]:
    """All that they may see, that of `visitor` first."""
    user = visitor.principal.user if isinstance(visitor, SignedIn) else None
    others = [each.account for each in house.adapters().users.of(user)] if user else []
    return [visitor.account, *(account for account in others if account != visitor.account)]


def check_account(event: APIGatewayProxyEventV2, account: str) -> None:
    """Data to read: for a bearer token, or without one for whoever may see the account's pages.

    A token that is sent must be good, whatever the pages ask for. Raises NotFound for another account than the
    reader's, NotLoggedIn, PermissionDenied.
    """
    authorization = event.headers.get("authorization")
    if authorization:
        reading.reader(authorization, account)
    else:
        visitor(event, account)


def cookie(text: str, good_s: float) -> Cookie:
    """Keeps a session in a browser, for this host alone, where no script reads it; 0: it goes."""
    secure = _is_https()
    return Cookie(
        cookie_name(),
        text,
        path="/",
        secure=secure,
        http_only=True,
        max_age=int(good_s),
        same_site=SameSite.LAX_MODE,
    )


def cookie_name() -> str:
    """Where pages are reached by https, one that no other host can set: browsers take `__Host-` from none."""
    return "__Host-daskscope" if _is_https() else "daskscope"


def _is_https() -> bool:
    return house.env().world == "aws" or house.env().address.startswith("https://")


def _session(event: APIGatewayProxyEventV2) -> str | None:
    # AWS lists cookies apart; some that speak its format leave them in their header. What others on this host keep
    # there may be of any form, so no more of it is looked at than where it ends.
    sent, wanted = ";".join(event.cookies or [event.headers.get("cookie", "")]), cookie_name()
    pairs = (part.partition("=") for part in sent.split(";"))
    return next((value.strip() or None for name, _, value in pairs if name.strip() == wanted), None)


def _elsewhere(text: str) -> str | None:
    """Another account of whoever has the session, if they are not any more in that in which they signed in."""
    parsed, world = parse(text), house.adapters()
    try:
        user = world.tokens.find(parsed.key_id).user if parsed else None
    except Missing:
        return None
    return next((each.account for each in world.users.of(user)), None) if user else None

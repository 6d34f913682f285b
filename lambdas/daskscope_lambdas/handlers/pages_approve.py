"""The page on which somebody lets a terminal in that asked by `daskscope login`."""

from __future__ import annotations

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope.errors import NotFound, PermissionDenied
from daskscope_lambdas.handlers import auditing, forms, house, pages, visitors
from daskscope_lambdas.handlers.visitors import SignedIn
from daskscope_lambdas.ports import Missing, TokenRow
from daskscope_lambdas.service.approvals import Approvals, spelled

router = APIGatewayHttpRouter()


@router.get("/login/approve")
def asked() -> Response[str]:
    event = router.current_event
    visitor = visitors.signed_in(event)
    code = event.query_string_parameters.get("code", "")
    if not code:
        return _page(visitor, 200)
    try:
        client = _approvals().client(code)
    except NotFound as error:
        return _page(visitor, 404, problem=str(error))
    return _page(visitor, 200, code=spelled(code), client=client)


@router.post("/login/approve")
def decide() -> Response[str]:
    event = router.current_event
    visitor = visitors.signed_in(event)
    given = forms.fields(event, visitor.session)
    code, account = given.get("code", ""), given.get("account", "")
    approvals = _approvals()
    try:
        client = approvals.client(code)
        if given.get("decision") != "approve":
            approvals.deny(code)
            lines = (f"{client} was refused, and got nothing.",)
            return pages.page(event, "message.html", visitor, title="Refused", lines=lines, refresh_s=None)
        there = visitors.signed_in(event, account)
        auditing.record(event, there.principal, "login.approve", spelled(code), client=client)
        approvals.approve(code, there.principal, _parent(there))
    except (NotFound, PermissionDenied) as error:
        return _page(visitor, 404 if isinstance(error, NotFound) else 403, problem=str(error))
    lines = (
        f"{client} has tokens of yours for account {account} in a moment: go back to the terminal.",
        "`daskscope logout` there gives them back.",
    )
    return pages.page(event, "message.html", visitor, title="Approved", lines=lines, refresh_s=None)


def _approvals() -> Approvals:
    world = house.adapters()
    return Approvals(world.tickets, world.clock)


def _parent(visitor: SignedIn) -> TokenRow | None:
    """What they signed in with, if it was a token: who lost that takes back with it what came of it. Not the session:
    a browser that is signed out ends no terminal's login."""
    tokens = house.adapters().tokens
    try:
        parent = tokens.find(visitor.principal.key_id).parent
        return tokens.find(parent) if parent else None
    except Missing as error:
        raise NotFound("The session is gone: sign in again.") from error


def _page(
    visitor: SignedIn, status: int, *, problem: str | None = None, code: str = "", client: str = ""
) -> Response[str]:
    shown = {"problem": problem, "code": code, "client": client}
    return pages.page(router.current_event, "approve.html", visitor, status, **shown)

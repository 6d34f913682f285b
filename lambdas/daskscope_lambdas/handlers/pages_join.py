"""The page of an invitation: somebody joins an account as who they are, or takes a name first."""

from __future__ import annotations

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope.errors import BadMessage, Conflict, NotFound, NotLoggedIn, PermissionDenied
from daskscope_lambdas.handlers import auditing, errors, forms, inviting, pages, visitors
from daskscope_lambdas.handlers.visitors import SignedIn
from daskscope_lambdas.ports import Ticket
from daskscope_lambdas.service import sessions
from daskscope_lambdas.service.tokens import Principal

router = APIGatewayHttpRouter()


@router.get("/join")
def invited() -> Response[str]:
    return _page(router.current_event.query_string_parameters.get("code", ""), 200, None)


@router.post("/join")
def join() -> Response[str]:
    event = router.current_event
    visitor = visitors.known(event)
    given = forms.fields(event, visitor and visitor.session)
    code = given.get("code", "")
    try:
        return _join(code, visitor, given.get("user", "").strip())
    except (NotLoggedIn, PermissionDenied, NotFound, Conflict, BadMessage) as error:
        found = errors.problem(error, event.request_context.request_id)
        return _page(code, found.status, found.message)


def _join(code: str, visitor: SignedIn | None, typed: str) -> Response[str]:
    """Raises as Invitations.accept."""
    event = router.current_event

    def note(who: Principal, ticket: Ticket) -> None:
        auditing.record(event, who, "user.join", who.user or "", role=who.role, invited_by=ticket.told["by"])

    joined = inviting.invitations().accept(code, visitor.principal if visitor else None, typed, note)
    cookies = [visitors.cookie(joined.session[0], sessions.SESSION_S)] if joined.session else None
    return pages.redirect(event, f"{joined.account}/analytics", cookies)


def _page(code: str, status: int, problem: str | None) -> Response[str]:
    event, invitations = router.current_event, inviting.invitations()
    visitor = visitors.known(event)
    try:
        ticket = invitations.look(code)
    except NotFound as error:
        lines = (str(error),)
        return pages.page(event, "message.html", visitor, 404, title="No such invitation", lines=lines, refresh_s=None)
    if problem is None:
        try:
            invitations.check(ticket)
        except PermissionDenied as error:
            status, problem = 403, str(error)
    shown = {"told": ticket.told, "claimed": invitations.needs_sign_in(ticket), "problem": problem}
    return pages.page(event, "join.html", visitor, status, code=code, **shown)

"""The pages on which people sign in, by a link or with a token, and out.

A link only shows a page with a button: whatever looks at links for somebody, to preview or to scan them, takes nothing.
"""

from __future__ import annotations

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope.errors import BadMessage, DaskscopeError, NotFound, NotLoggedIn, PermissionDenied
from daskscope_lambdas.handlers import forms, house, pages, visitors
from daskscope_lambdas.handlers.errors import problem
from daskscope_lambdas.service import sessions, tickets

router = APIGatewayHttpRouter()


@router.get("/login")
def login() -> Response[str]:
    event = router.current_event
    given = event.query_string_parameters
    code, after = given.get("code", ""), pages.checked_after(given.get("next", ""))
    world = house.adapters()
    if not code:
        return pages.sign_in(event, 200, None, after=after)
    try:
        told = tickets.look(world.tickets, world.clock, "sign-in", code).told
    except NotFound as error:
        return pages.sign_in(event, 404, str(error), after=after)
    return pages.sign_in(event, 200, None, after=after, code=code, told=told)


@router.post("/login")
def sign_in() -> Response[str]:
    event = router.current_event
    before = visitors.known(event)
    given = forms.fields(event, before and before.session)
    after = pages.checked_after(given.get("next", ""))
    world = house.adapters()
    try:
        text, row = _open(given)
        account = _home(text, row.key_id)
    except (NotLoggedIn, PermissionDenied, NotFound, BadMessage) as error:
        found = problem(error, event.request_context.request_id)
        return pages.sign_in(event, found.status, found.message, after=after)
    if before:
        sessions.close(world.tokens, world.clock, before.principal.key_id)
    good_s = (row.expires_at or world.clock.now()) - world.clock.now()
    return pages.redirect(event, after or f"{account}/analytics", [visitors.cookie(text, good_s)])


@router.post("/logout")
def sign_out() -> Response[str]:
    event = router.current_event
    visitor = visitors.known(event)
    forms.fields(event, visitor and visitor.session)
    world = house.adapters()
    if visitor:
        sessions.close(world.tokens, world.clock, visitor.principal.key_id)
    return pages.redirect(event, "login", [visitors.cookie("", 0)])


def _open(given: dict[str, str]) -> sessions.Minted:
    """A session for what was posted. Raises NotLoggedIn, PermissionDenied, NotFound, BadMessage."""
    world = house.adapters()
    if code := given.get("code", ""):
        return sessions.by_ticket(world.tokens, world.clock, tickets.take(world.tickets, world.clock, "sign-in", code))
    token = given.get("token", "").strip()
    if not token:
        raise BadMessage("Nothing was sent: put a token in.")
    principal = house.gate().itself(f"Bearer {token}")
    visitors.at_home(token)  # it sees something
    return sessions.by_token(world.tokens, world.clock, principal)


def _home(text: str, key_id: str) -> str:
    """The account that a new session sees first; one that sees nothing is over. Raises as the gate."""
    try:
        return visitors.at_home(text).account
    except DaskscopeError:
        world = house.adapters()
        sessions.close(world.tokens, world.clock, key_id)
        raise

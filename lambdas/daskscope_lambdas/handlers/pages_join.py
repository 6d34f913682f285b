"""The page of an invitation: somebody joins an account as who they are, or takes a name first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope.errors import BadMessage, Conflict, NotFound, NotLoggedIn, PermissionDenied
from daskscope_lambdas.handlers import auditing, errors, forms, house, pages, visitors
from daskscope_lambdas.handlers.visitors import SignedIn
from daskscope_lambdas.service import sessions, tickets
from daskscope_lambdas.service.people import People, checked_user
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
    """Raises NotLoggedIn, PermissionDenied, NotFound, Conflict, BadMessage; the invitation is still good then."""
    world, people = house.adapters(), _people()
    told = tickets.look(world.tickets, world.clock, "invitation", code).told
    people.check_inviter(told["account"], told["by"])
    principal = visitor.principal if visitor else None
    user = _who(told, principal, typed)
    ticket = tickets.take(world.tickets, world.clock, "invitation", code)
    cookies = None
    try:
        if principal is None:
            people.claim(user)
            text, row = sessions.of_person(world.tokens, world.clock, user, told["account"])
            cookies = [visitors.cookie(text, sessions.SESSION_S)]
            principal = Principal(told["account"], row.scopes, row.key_id, row.name, row.expires_at, user)
        there = replace(principal, account=told["account"], role=told["role"])
        auditing.record(router.current_event, there, "user.join", user, role=told["role"], invited_by=told["by"])
        people.join(told["account"], user, told["role"], told["by"])
    except Conflict:
        world.tickets.add(ticket)
        raise
    return pages.redirect(router.current_event, f"{told['account']}/analytics", cookies)


def _who(told: Mapping[str, Any], principal: Principal | None, typed: str) -> str:
    """As whom somebody joins. Raises NotLoggedIn, PermissionDenied, BadMessage."""
    wanted: str | None = told["user"]
    if principal is None:
        if wanted and house.adapters().users.is_claimed(wanted):
            raise NotLoggedIn(f"This invitation is {wanted}'s: sign in as {wanted} first.")
        try:
            return checked_user(wanted or typed)
        except ValueError as error:
            raise BadMessage(str(error), "user") from error
    if principal.user is None:
        raise PermissionDenied(
            f"You are signed in with {principal.name!r}, a token that is nobody's own: sign out, and open the "
            "invitation again."
        )
    if wanted not in (None, principal.user):
        raise PermissionDenied(f"This invitation is {wanted}'s, and you are signed in as {principal.user}.")
    return principal.user


def _page(code: str, status: int, problem: str | None) -> Response[str]:
    event, world = router.current_event, house.adapters()
    visitor = visitors.known(event)
    try:
        told = tickets.look(world.tickets, world.clock, "invitation", code).told
    except NotFound as error:
        lines = (str(error),)
        return pages.page(event, "message.html", visitor, 404, title="No such invitation", lines=lines, refresh_s=None)
    claimed = bool(told["user"]) and world.users.is_claimed(told["user"])
    return pages.page(event, "join.html", visitor, status, code=code, told=told, claimed=claimed, problem=problem)


def _people() -> People:
    return People(house.adapters().users, house.adapters().clock)

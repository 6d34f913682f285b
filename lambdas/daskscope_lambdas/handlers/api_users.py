"""The JSON routes of people: who is in an account, what they are there, and how somebody is asked in. A bearer token
alone opens what changes something (see api_control)."""

from __future__ import annotations

import msgspec
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope.errors import BadMessage, Conflict
from daskscope_lambdas.handlers import answering, auditing, bearers, house, posted
from daskscope_lambdas.ports import Role
from daskscope_lambdas.service import records, tickets
from daskscope_lambdas.service.gate import CACHE_S
from daskscope_lambdas.service.people import People, checked_user
from daskscope_lambdas.service.tokens import require

router = APIGatewayHttpRouter()


class _Invited(msgspec.Struct, forbid_unknown_fields=True):
    """`user`: that one alone may accept; None: whoever has the link."""

    role: Role
    user: str | None = None


class _Changed(msgspec.Struct, forbid_unknown_fields=True):
    role: Role


@router.get("/api/v1/<account>/users")
def users(account: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    return answering.part(router.current_event, [records.member(each) for each in _people().list(account)])


@router.post("/api/v1/<account>/users")
def invite(account: str) -> Response[str]:
    event = router.current_event
    admin = bearers.admin(event, account)
    wanted = posted.json_object(event.raw_event, _Invited, {"role": "member", "user": "ann"})
    if wanted.user is not None:
        _check_free(account, wanted.user)
    auditing.record(event, admin, "user.invite", wanted.user or "", role=wanted.role)
    world, by = house.adapters(), admin.user or f"token {admin.name}"
    link = tickets.invitation(world.tickets, world.clock, account, wanted.role, by, user=wanted.user)
    told = {"account": account, "role": wanted.role, "user": wanted.user, "url": link.url}
    return answering.answer({**told, "expires": records.iso(link.expires_at)}, 201)


@router.put("/api/v1/<account>/users/<user>")
def change(account: str, user: str) -> Response[str]:
    event, people = router.current_event, _people()
    admin = bearers.admin(event, account)
    role = posted.json_object(event.raw_event, _Changed, {"role": "viewer"}).role
    there = people.find(account, user)
    if role != "admin":
        people.check_not_last(there)
    auditing.record(event, admin, "user.role", user, role=role, before=there.role)
    return answering.answer(records.member(people.change(account, user, role)))


@router.delete("/api/v1/<account>/users/<user>")
def remove(account: str, user: str) -> Response[str]:
    event, people = router.current_event, _people()
    principal = bearers.bearer(event, account)
    require(principal, "read" if user == principal.user else "admin")
    there = people.find(account, user)
    people.check_not_last(there)
    auditing.record(event, principal, "user.remove", user, role=there.role)
    people.remove(account, user)
    sentence = f"{user} is in account {account} no more. Where they were just active they may pass for {CACHE_S:.0f} s."
    return answering.answer({**records.member(there), "sentence": sentence})


def _people() -> People:
    return People(house.adapters().users, house.adapters().clock)


def _check_free(account: str, user: str) -> None:
    """Raises BadMessage for what is no name, Conflict for who is in the account."""
    try:
        checked_user(user)
    except ValueError as error:
        raise BadMessage(str(error), "$.user") from error
    if any(each.user == user for each in _people().list(account)):
        raise Conflict(f"{user} is in account {account} already: change their role instead.")

"""The JSON routes of people: who is in an account, what they are there, and how somebody is asked in. A bearer token
alone opens what changes something (see bearers)."""

from __future__ import annotations

import msgspec
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope.errors import BadMessage, Conflict
from daskscope_lambdas.handlers import answering, auditing, bearers, house, posted
from daskscope_lambdas.ports import Role, TokenRow
from daskscope_lambdas.service import giving, records, tickets
from daskscope_lambdas.service.gate import CACHE_S
from daskscope_lambdas.service.people import People
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
    user = None if wanted.user is None else _absent(account, wanted.user)
    auditing.record(event, admin, "user.invite", user or "", role=wanted.role)
    world = house.adapters()
    link = tickets.invitation(
        world.tickets, world.clock, account, wanted.role, admin.who, user=user, made_with=admin.key_id
    )
    told = {"account": account, "role": wanted.role, "user": user, "url": link.url}
    return answering.answer({**told, "expires": records.iso(link.expires_at)}, 201)


@router.put("/api/v1/<account>/users/<user>")
def change(account: str, user: str) -> Response[str]:
    event, people = router.current_event, _people()
    admin = bearers.admin(event, account)
    role = posted.json_object(event.raw_event, _Changed, {"role": "viewer"}).role
    there = people.find(account, user)
    if role != "admin":
        people.check_not_last(there)
    fallen = [] if role == "admin" else _fallen(account, user)
    told = {"role": role, "before": there.role, "revoked": [row.key_id for row in fallen]}
    auditing.record(event, admin, "user.role", user, **told)
    changed = people.change(account, user, role)
    sentence = f"{user} is {role} of account {account} now.{_take_back(fallen)}"
    return answering.answer({**records.member(changed), "sentence": sentence})


@router.delete("/api/v1/<account>/users/<user>")
def remove(account: str, user: str) -> Response[str]:
    event, people = router.current_event, _people()
    principal = bearers.bearer(event, account)
    if user == principal.user and "admin" not in principal.scopes:
        giving.check_whole(principal)
    else:
        require(principal, "admin")
    there = people.find(account, user)
    people.check_not_last(there)
    fallen = _fallen(account, user)
    revoked = [row.key_id for row in fallen]
    auditing.record(event, principal, "user.remove", user, role=there.role, revoked=revoked)
    people.remove(account, user)
    sentence = f"{user} is in account {account} no more.{_take_back(fallen)}"
    sentence += f" Where they were just active they may pass for {CACHE_S:.0f} s."
    return answering.answer({**records.member(there), "sentence": sentence})


def _fallen(account: str, user: str) -> list[TokenRow]:
    return giving.fallen(house.adapters().tokens, house.adapters().clock, account, user)


def _take_back(rows: list[TokenRow]) -> str:
    return giving.take_back(house.adapters().tokens, house.adapters().clock, rows)


def _people() -> People:
    return People(house.adapters().users, house.adapters().clock)


def _absent(account: str, user: str) -> str:
    """The name as it is spelled. Raises BadMessage for what is none, Conflict for who is in the account."""
    try:
        user = _people().spelled(user)
    except ValueError as error:
        raise BadMessage(str(error), "$.user") from error
    if any(each.user == user for each in _people().list(account)):
        raise Conflict(f"{user} is in account {account} already: change their role instead.")
    return user

"""The JSON routes of tokens: whose one is, and those of an account. A bearer token alone opens these (see bearers)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

import daskscope
from daskscope.api_version import API
from daskscope.errors import BadMessage, NotFound
from daskscope_lambdas.handlers import answering, auditing, bearers, house, posted
from daskscope_lambdas.ports import Missing, Role, Scope, TokenRow
from daskscope_lambdas.service import giving, records
from daskscope_lambdas.service.gate import CACHE_S
from daskscope_lambdas.service.tokens import OF_ROLES, Principal, is_key_id, mint

router = APIGatewayHttpRouter()

MAX_NAME = 200
"""Characters."""
LONGEST_S = 100 * 365 * 86_400.0
"""A token that is good for longer is one without an end."""


class _Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """`expires_in_s`: None until it is revoked. `user`: None for one of the site; left out, for that of an admin, and
    for one's own of anybody else."""

    name: str
    scopes: list[Scope]
    expires_in_s: float | None = None
    user: str | msgspec.UnsetType | None = msgspec.UNSET


class _Rotated(msgspec.Struct, forbid_unknown_fields=True):
    overlap_s: float = giving.OVERLAP_S


@router.get("/api/v1/whoami")
def whoami() -> Response[str]:
    event = router.current_event
    asked = event.query_string_parameters.get("account") or posted.account(event.raw_event)
    principal = bearers.bearer(event, asked)
    told = {"account": principal.account, "name": principal.name, "scopes": sorted(principal.scopes)}
    person = {"user": principal.user, "role": principal.role, "accounts": _accounts(principal)}
    return answering.answer({**told, **person, "version": daskscope.__version__, "api": API})


@router.get("/api/v1/<account>/tokens")
def tokens(account: str) -> Response[str]:
    keeper = _keeper(account)
    rows = house.adapters().tokens.list(account)  # new ones come last: pages do not move
    roles: dict[str, Role] = {each.user: each.role for each in house.adapters().users.list(account)}
    told = (records.token(row, _may(row, roles)) for row in rows if giving.sees(keeper, row))
    return answering.part(router.current_event, list(told))


@router.post("/api/v1/<account>/tokens")
def new(account: str) -> Response[str]:
    event, keeper = router.current_event, _keeper(account)
    wanted = _wanted(event.raw_event)
    user = _owner(keeper, wanted)
    giving.check_given(keeper, wanted.scopes, user)
    world = house.adapters()
    asked_for = None if wanted.expires_in_s is None else world.clock.now() + wanted.expires_in_s
    ends = giving.end_of(keeper, wanted.scopes, asked_for)

    def note(row: TokenRow) -> None:
        auditing.record(event, keeper, "token.create", row.key_id, **_noted(row))

    text, row = mint(
        world.tokens, world.clock, account, wanted.scopes, wanted.name, ends,
        user=user, made_by=giving.maker_of(keeper, user), note=note,
    )  # fmt: skip
    return answering.answer({"token": text, **records.token(row)}, 201)


@router.post("/api/v1/<account>/tokens/<key_id>/rotate")
def rotate(account: str, key_id: str) -> Response[str]:
    event, keeper, world = router.current_event, _keeper(account), house.adapters()
    overlap_s = posted.json_object(event.raw_event, _Rotated, {"overlap_s": giving.OVERLAP_S}).overlap_s
    if not 0 <= overlap_s <= giving.MAX_OVERLAP_S:  # neither is a number that is none
        raise BadMessage(f"overlap_s is {overlap_s!r}; allowed: 0 to {giving.MAX_OVERLAP_S:.0f}.", "$.overlap_s")
    old = _found(keeper, account, key_id)

    def note(row: TokenRow) -> None:
        auditing.record(event, keeper, "token.rotate", key_id, key_id=row.key_id, overlap_s=overlap_s, **_noted(row))

    text, row = giving.rotated(world.tokens, world.clock, keeper, old, overlap_s, note)
    old = world.tokens.find(key_id)
    sentence = f"{old.name!r} with key id {key_id} is good until {records.iso(old.expires_at)}."
    if n := sum(each.parent == key_id and each.revoked_at is None for each in world.tokens.list(account)):
        sentence += f" So are {n} that came of it: sign in, or log in, anew for those."
    told = {"token": text, **records.token(row), "replaces": records.token(old), "sentence": sentence}
    return answering.answer(told, 201)


@router.delete("/api/v1/<account>/tokens/<key_id>")
def revoke(account: str, key_id: str) -> Response[str]:
    event, world = router.current_event, house.adapters()
    principal = bearers.itself(event)
    if (account, key_id) != (principal.account, principal.key_id):  # That much may every token.
        principal = _keeper(account)
    row = _found(principal, account, key_id)
    giving.check_decides(principal, row)
    if row.revoked_at is None:
        auditing.record(event, principal, "token.revoke", key_id, **_noted(row))
    world.tokens.revoke(key_id, world.clock.now())
    sentence = f"Revoked {row.name!r}. Where it was just used it may pass for {CACHE_S:.0f} s more."
    return answering.answer({**records.token(world.tokens.find(key_id)), "sentence": sentence})


def _keeper(account: str) -> Principal:
    """Who looks after tokens: the account's, or their own. Raises NotLoggedIn, PermissionDenied, NotFound."""
    principal = bearers.bearer(router.current_event, account)
    giving.check_keeps(principal)
    return principal


def _found(principal: Principal, account: str, key_id: str) -> TokenRow:
    """Raises NotFound, also for what is none of their business."""
    try:
        row = house.adapters().tokens.find(key_id) if is_key_id(key_id) else None
    except Missing:
        row = None
    if row is None or not (row.account == account or _is_stray(principal, row)) or not giving.sees(principal, row):
        raise NotFound(f"Account {account} has no token with key id {key_id}.")
    return row


def _is_stray(principal: Principal, row: TokenRow) -> bool:
    """Whether it is one's own, of an account in which one is no more: it is good in this one all the same."""
    if row.user is None or row.user != principal.user:
        return False
    return all(each.account != row.account for each in house.adapters().users.of(row.user))


def _noted(row: TokenRow) -> dict[str, Any]:
    """What is written down of a token that is made, or taken back."""
    told = {"name": row.name, "scopes": sorted(row.scopes), "user": row.user, "kind": row.kind}
    return {**told, "expires": records.iso(row.expires_at)}


def _may(row: TokenRow, roles: Mapping[str, Role]) -> frozenset[Scope] | None:
    """What its user may, as one of the account; None for what is nobody's."""
    if row.user is None:
        return None
    role = roles.get(row.user)
    return OF_ROLES[role] if role else frozenset()


def _accounts(principal: Principal) -> list[dict[str, Any]]:
    if principal.user is None:
        return [{"account": principal.account, "role": None}]
    return [{"account": each.account, "role": each.role} for each in house.adapters().users.of(principal.user)]


def _owner(keeper: Principal, wanted: _Wanted) -> str | None:
    if isinstance(wanted.user, msgspec.UnsetType):
        return None if "admin" in keeper.scopes else keeper.user
    return wanted.user


def _wanted(event: dict[str, Any]) -> _Wanted:
    """Raises BadMessage, UnsupportedMediaError, TooLarge."""
    wanted = posted.json_object(event, _Wanted, {"name": "ann", "scopes": ["read"], "expires_in_s": 7776000})
    if not (0 < len(wanted.name) <= MAX_NAME and wanted.name.isprintable()):
        raise BadMessage(f"name is of 1 to {MAX_NAME} printable characters.", "$.name")
    if not wanted.scopes:
        raise BadMessage("scopes is empty; allowed: one or more of ingest, read, control, report, admin.", "$.scopes")
    seconds = wanted.expires_in_s
    if seconds is not None and not (math.isfinite(seconds) and 1 <= seconds <= LONGEST_S):
        raise BadMessage(
            f"expires_in_s is {seconds!r}; allowed: 1 to {LONGEST_S:.0f} seconds, or null for until it is revoked.",
            "$.expires_in_s",
        )
    return wanted

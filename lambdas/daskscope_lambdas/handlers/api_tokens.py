"""The JSON routes of tokens: whose one is, and those of an account. A bearer token alone opens these (see api_control).

Nobody gives more than they have: what a token may, it may let another one do, and as long as it is good itself. So a
token that only looks after tokens leads to no data, whoever comes by it, and one that ends leaves none behind.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

import daskscope
from daskscope.api_version import API
from daskscope.errors import BadMessage, NotFound, PermissionDenied
from daskscope_lambdas.handlers import answering, house, parameters, posted
from daskscope_lambdas.ports import Missing, Scope
from daskscope_lambdas.service import records
from daskscope_lambdas.service.gate import CACHE_S
from daskscope_lambdas.service.tokens import Principal, mint, require

router = APIGatewayHttpRouter()

MAX_NAME = 200
"""Characters."""
LONGEST_S = 100 * 365 * 86_400.0
"""A token that is good for longer is one without an end."""


class _Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """`expires_in_s`: None until it is revoked."""

    name: str
    scopes: list[Scope]
    expires_in_s: float | None = None


@router.get("/api/v1/whoami")
def whoami() -> Response[str]:
    principal = house.gate().principal(answering.authorization(router.current_event))
    told = {"account": principal.account, "name": principal.name, "scopes": sorted(principal.scopes)}
    return answering.answer({**told, "version": daskscope.__version__, "api": API})


@router.get("/api/v1/<account>/tokens")
def tokens(account: str) -> Response[str]:
    _keeper(account)
    given = router.current_event.query_string_parameters
    limit, offset = parameters.limit(given), parameters.offset(given)
    rows = house.adapters().tokens.list(account)  # new ones come last: pages do not move
    following = offset + limit
    cursor = str(following) if following < len(rows) else None
    return answering.answer({"items": [records.token(row) for row in rows[offset:following]], "cursor": cursor})


@router.post("/api/v1/<account>/tokens")
def new(account: str) -> Response[str]:
    keeper, wanted = _keeper(account), _wanted(router.current_event.raw_event)
    if lacking := sorted(set(wanted.scopes) - keeper.scopes):
        raise PermissionDenied(
            f"The token {keeper.name!r} may not {', '.join(lacking)} itself, so it cannot let another one: leave that "
            "out, or ask with a token that may."
        )
    world = house.adapters()
    expires_at = _end(wanted, keeper, world.clock.now())
    text, row = mint(world.tokens, world.clock, account, wanted.scopes, wanted.name, expires_at)
    return answering.answer({"token": text, **records.token(row)}, 201)


@router.delete("/api/v1/<account>/tokens/<key_id>")
def revoke(account: str, key_id: str) -> Response[str]:
    _keeper(account)
    world = house.adapters()
    try:
        if world.tokens.find(key_id).account != account:
            raise Missing
        world.tokens.revoke(key_id, world.clock.now())
        row = world.tokens.find(key_id)
    except Missing as error:
        raise NotFound(f"Account {account} has no token with key id {key_id}.") from error
    sentence = f"Revoked {row.name!r}. Where it was just used it may pass for {CACHE_S:.0f} s more."
    return answering.answer({**records.token(row), "sentence": sentence})


def _keeper(account: str) -> Principal:
    """Who looks after the account's tokens. Raises NotLoggedIn, PermissionDenied, NotFound."""
    principal = house.gate().principal(answering.authorization(router.current_event), account)
    require(principal, "admin")
    return principal


def _wanted(event: dict[str, Any]) -> _Wanted:
    """Raises BadMessage, UnsupportedMediaError, TooLarge."""
    wanted = posted.json_object(event, _Wanted, {"name": "ann", "scopes": ["read"], "expires_in_s": 7776000})
    if not (0 < len(wanted.name) <= MAX_NAME and wanted.name.isprintable()):
        raise BadMessage(f"name is of 1 to {MAX_NAME} printable characters.", "$.name")
    if not wanted.scopes:
        raise BadMessage("scopes is empty; allowed: one or more of ingest, read, control, admin.", "$.scopes")
    seconds = wanted.expires_in_s
    if seconds is not None and not (math.isfinite(seconds) and 1 <= seconds <= LONGEST_S):
        raise BadMessage(
            f"expires_in_s is {seconds!r}; allowed: 1 to {LONGEST_S:.0f} seconds, or null for until it is revoked.",
            "$.expires_in_s",
        )
    return wanted


def _end(wanted: _Wanted, keeper: Principal, now: float) -> float | None:
    """When the new token expires (epoch seconds): as asked for, but no later than the one that asks."""
    asked_for = None if wanted.expires_in_s is None else now + wanted.expires_in_s
    return min((at for at in (asked_for, keeper.expires_at) if at is not None), default=None)

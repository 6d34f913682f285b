"""Sessions: tokens that a browser has as its cookie."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from daskscope_lambdas.ports import Clock, Missing, Scope, Ticket, TokenRow, Tokens
from daskscope_lambdas.service.base62 import Random
from daskscope_lambdas.service.tokens import OF_ROLES, Principal, mint

SESSION_S = 30 * 86_400.0
NAME = "sign-in"
"""Of every session, in the list of tokens."""

Minted = tuple[str, TokenRow]


def by_ticket(tokens: Tokens, clock: Clock, ticket: Ticket, random: Random = secrets.token_bytes) -> Minted:
    """For whoever brought a sign-in link; `ticket` was taken."""
    told = ticket.told
    return _open(tokens, clock, told["account"], told["scopes"], told["user"], told["parent"], None, random)


def by_token(tokens: Tokens, clock: Clock, principal: Principal, random: Random = secrets.token_bytes) -> Minted:
    """For whoever brought a token: good no longer than that, and for no more."""
    row = tokens.find(principal.key_id)
    return _open(tokens, clock, row.account, row.scopes, row.user, row.key_id, row.expires_at, random)


def of_person(tokens: Tokens, clock: Clock, user: str, account: str, random: Random = secrets.token_bytes) -> Minted:
    """For somebody who just joined: they may what they are in each of their accounts."""
    return _open(tokens, clock, account, OF_ROLES["admin"], user, None, None, random)


def close(tokens: Tokens, clock: Clock, key_id: str) -> None:
    """The session is over. Quiet if nobody knows it, or if it is a token, which is of use elsewhere, too."""
    try:
        if tokens.find(key_id).kind == "session":
            tokens.revoke(key_id, clock.now())
    except Missing:
        pass


def _open(
    tokens: Tokens,
    clock: Clock,
    account: str,
    scopes: Iterable[Scope],
    user: str | None,
    parent: str | None,
    until: float | None,
    random: Random,
) -> Minted:
    ends = clock.now() + SESSION_S
    expires_at = ends if until is None else min(ends, until)
    return mint(tokens, clock, account, scopes, NAME, expires_at, random, user=user, kind="session", parent=parent)

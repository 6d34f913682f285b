"""Who may give tokens to whom, see them and take them back, and what becomes of one that is rotated.

An admin looks after those of sites, and sees and revokes all; a person has their own. Nobody gives more than they have:
what a token may, it may let another one do, and as long as it is good itself. So a token that only looks after tokens
leads to no data, whoever comes by it, and one that ends leaves none behind. One that may do nothing but send messages
leads to no data either: every admin may give it, and it may last. Nobody gets a token that is somebody else's.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable

from daskscope.errors import Conflict, PermissionDenied
from daskscope_lambdas.ports import Clock, Scope, TokenRow, Tokens
from daskscope_lambdas.service.base62 import Random
from daskscope_lambdas.service.tokens import Principal, mint, require

OVERLAP_S = 86_400.0
MAX_OVERLAP_S = 30 * 86_400.0
"""How long the old one of a rotated token may be good."""
_HARMLESS: frozenset[Scope] = frozenset({"ingest"})


def check_keeps(by: Principal) -> None:
    """Raises PermissionDenied for who has no tokens to look after: neither the account's nor their own."""
    if not (_is_admin(by) or (by.user is not None and "read" in by.scopes)):
        require(by, "admin")


def sees(by: Principal, row: TokenRow) -> bool:
    """Whether the account's token is any business of theirs."""
    return _is_admin(by) or row.key_id == by.key_id or _is_own(by, row)


def check_given(by: Principal, scopes: Iterable[Scope], user: str | None) -> None:
    """Raises PermissionDenied if they may not give a token of these scopes to `user`; None: to a site."""
    if user is None:
        require(by, "admin")
    elif user != by.user:
        raise PermissionDenied(
            f"Nobody makes a token for somebody else: {user} makes one by `daskscope login`, or leave `user` out for "
            "one that is nobody's."
        )
    may = by.scopes | (_HARMLESS if _is_admin(by) else frozenset[Scope]())
    if lacking := sorted(set(scopes) - may):
        raise PermissionDenied(
            f"The token {by.name!r} may not {', '.join(lacking)} itself, so it cannot let another one: leave that "
            "out, or ask with a token that may."
        )


def end_of(by: Principal, scopes: Iterable[Scope], asked_for: float | None) -> float | None:
    """When a token that they give expires (epoch seconds): as asked for, but no later than the one that asks."""
    latest = None if _HARMLESS.issuperset(scopes) else by.expires_at
    return min((at for at in (asked_for, latest) if at is not None), default=None)


def rotated(
    tokens: Tokens,
    clock: Clock,
    by: Principal,
    row: TokenRow,
    overlap_s: float,
    note: Callable[[TokenRow], object],
    random: Random = secrets.token_bytes,
) -> tuple[str, TokenRow]:
    """A new token like this one, which is good for `overlap_s` more; `note` is told the new row before it is kept.

    Raises PermissionDenied, and Conflict for one that is good no more, or a browser's.
    """
    now = clock.now()
    if row.kind == "session":
        raise Conflict("A session is a browser's, which gets another one by signing in: revoke it instead.")
    if row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now):
        raise Conflict(f"The token {row.name!r} is good no more: make a new one.")
    if row.key_id != by.key_id:  # It may as much as itself, whatever its user may here.
        check_given(by, row.scopes, row.user)
    asked_for = None if row.expires_at is None else now + row.expires_at - row.created_at
    ends = end_of(by, row.scopes, asked_for)
    made = mint(
        tokens, clock, row.account, row.scopes, row.name, ends, random, user=row.user, parent=row.parent, note=note
    )  # fmt: skip
    tokens.expire(row.key_id, now + overlap_s)
    return made


def _is_admin(by: Principal) -> bool:
    return "admin" in by.scopes


def _is_own(by: Principal, row: TokenRow) -> bool:
    return row.user is not None and row.user == by.user and "read" in by.scopes

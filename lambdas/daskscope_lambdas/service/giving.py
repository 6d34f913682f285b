"""Who may give tokens to whom, see them and take them back, and what becomes of one that is rotated.

An admin looks after those of sites, and sees and revokes all; a person has their own. Nobody gives more than they have:
what a token may, it may let another one do, and as long as it is good itself. So a token that only looks after tokens
leads to no data, whoever comes by it, and one that ends leaves none behind, but for itself anew where it is rotated in
time. One that may do nothing but send messages leads to no data either: every admin may give it, whoever may report and
has a login may have their own, and it may last. Nobody gets a token that is somebody else's. What else an admin made
for the site falls when they are no admin any more: they have seen it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable

from daskscope.errors import Conflict, PermissionDenied
from daskscope_lambdas.ports import Clock, Missing, Scope, TokenRow, Tokens
from daskscope_lambdas.service.base62 import Random
from daskscope_lambdas.service.tokens import HARMLESS, OF_ROLES, Principal, mint, require

OVERLAP_S = 86_400.0
MAX_OVERLAP_S = 30 * 86_400.0
"""How long the old one of a rotated token may be good."""


def check_keeps(by: Principal) -> None:
    """Raises PermissionDenied for who has no tokens to look after: neither the account's nor their own."""
    if not (_is_admin(by) or (by.user is not None and "read" in by.scopes)):
        require(by, "admin")


def check_whole(by: Principal) -> None:
    """Raises PermissionDenied unless the token may all that its user may, but ingest: one that may look and no more is
    in many places, and decides about neither their other tokens nor whether they stay."""
    if by.role is None:
        require(by, "admin")
    elif lacking := sorted(OF_ROLES[by.role] - HARMLESS - by.scopes):
        raise PermissionDenied(
            f"The token {by.name!r} may not {', '.join(lacking)}, as {by.user} may: about {by.user}'s other tokens, "
            "and whether they stay, decides one that may all of that, like those of `daskscope login`."
        )


def check_decides(by: Principal, row: TokenRow) -> None:
    """Raises PermissionDenied unless they may take back, or replace, a token that they see."""
    if row.key_id != by.key_id and not _is_admin(by):
        check_whole(by)


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
    may = by.scopes | (HARMLESS if _is_admin(by) or _reports(by) else frozenset[Scope]())
    if lacking := sorted(set(scopes) - may):
        raise PermissionDenied(
            f"The token {by.name!r} may not {', '.join(lacking)} itself, so it cannot let another one: leave that "
            "out, or ask with a token that may."
        )


def end_of(by: Principal, scopes: Iterable[Scope], asked_for: float | None) -> float | None:
    """When a token that they give expires (epoch seconds): as asked for, but no later than the one that asks."""
    latest = None if HARMLESS.issuperset(scopes) else by.expires_at
    return _sooner(asked_for, latest)


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

    It has the old one's span of life anew where it is the asking one, or the asking person's; else it ends with the one
    that asks, if that is sooner. Raises PermissionDenied, and Conflict for one that is good no more, was rotated
    before, or is a browser's.
    """
    now = clock.now()
    if row.kind == "session":
        raise Conflict("A session is a browser's, which gets another one by signing in: revoke it instead.")
    if row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now):
        raise Conflict(f"The token {row.name!r} is good no more: make a new one.")
    if row.key_id != by.key_id:  # It may as much as itself, whatever its user may here.
        check_given(by, row.scopes, row.user)
        check_decides(by, row)
    if heir := next((each for each in tokens.list(row.account) if each.replaces == row.key_id), None):
        raise Conflict(
            f"The token {row.name!r} was rotated already, to {heir.key_id}: rotate that one, or make a new one."
        )
    ends = None if row.expires_at is None else now + row.expires_at - row.created_at
    if row.key_id != by.key_id and row.user is None:
        ends = end_of(by, row.scopes, ends)
    ends = _within(tokens, row.parent, ends)
    made = mint(
        tokens, clock, row.account, row.scopes, row.name, ends, random, user=row.user, parent=row.parent,
        made_by=maker_of(by, row.user), replaces=row.key_id, note=note,
    )  # fmt: skip
    tokens.expire(row.key_id, now + overlap_s)
    return made


def maker_of(by: Principal, user: str | None) -> str | None:
    """Who is kept as the maker of a token for `user`: nobody of a person's own, which falls with them anyway."""
    return None if user is not None else by.user or by.made_by


def fallen(tokens: Tokens, clock: Clock, account: str, user: str) -> list[TokenRow]:
    """What `user` made for the account's site and is good yet, but may not be once they are no admin there: all but
    what is harmless."""
    found = (row for row in tokens.list(account) if row.made_by == user and not HARMLESS.issuperset(row.scopes))
    now = clock.now()
    return [row for row in found if row.revoked_at is None and (row.expires_at is None or row.expires_at > now)]


def take_back(tokens: Tokens, clock: Clock, rows: Iterable[TokenRow]) -> str:
    """Revoke these; a sentence that names them, with a blank before it, or nothing."""
    rows = list(rows)
    for row in rows:
        tokens.revoke(row.key_id, clock.now())
    names = ", ".join(f"{row.name!r} ({row.key_id})" for row in rows)
    return f" What they had made for the site is revoked: {names}." if rows else ""


def _within(tokens: Tokens, parent: str | None, ends: float | None) -> float | None:
    """No later than the token that it came of, with which it falls. Raises Conflict where that is gone."""
    try:
        latest = tokens.find(parent).expires_at if parent else None
    except Missing as error:
        raise Conflict("The token that it was made with is gone: make a new one.") from error
    return _sooner(ends, latest)


def _sooner(*ends: float | None) -> float | None:
    return min((at for at in ends if at is not None), default=None)


def _is_admin(by: Principal) -> bool:
    return "admin" in by.scopes


def _reports(by: Principal) -> bool:
    """Whether clusters of theirs may report, and the token is a login's, which leaves that out alone."""
    of_role = OF_ROLES[by.role] if by.role else frozenset[Scope]()
    return of_role.issuperset(HARMLESS) and by.scopes.issuperset(of_role - HARMLESS)


def _is_own(by: Principal, row: TokenRow) -> bool:
    return row.user is not None and row.user == by.user and "read" in by.scopes

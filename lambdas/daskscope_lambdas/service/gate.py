"""The gate: which person or site asks, in which account, and what they may there."""

from __future__ import annotations

import hmac
import logging
from datetime import date

from daskscope.errors import NotFound, NotLoggedIn
from daskscope_lambdas.ports import Clock, Membership, StoreError, TokenRow, Tokens, Users
from daskscope_lambdas.service.kept import KEPT_S, Kept
from daskscope_lambdas.service.tokens import OF_ROLES, PREFIX, Principal, parse
from daskscope_query import layout

CACHE_S = KEPT_S
"""A revoked token may pass for so long where it was used just before; so may who was taken out of an account."""
_WRITTEN = 1000
"""Tokens of which a process remembers that their use of the day is written down."""

logger = logging.getLogger("daskscope.gate")


class Gate:
    """Knows a request's bearer. Keeps what it looked up for CACHE_S seconds; safe to use from many threads."""

    def __init__(self, tokens: Tokens, users: Users, clock: Clock) -> None:
        self._tokens, self._clock = tokens, clock
        self._rows = Kept(tokens.find, clock)
        self._memberships = Kept[tuple[str, str], Membership](lambda of: users.find(*of), clock)
        self._written: dict[str, date] = {}

    def principal(self, authorization_header: str | None, account: str | None = None) -> Principal:
        """Whose token `Bearer <token>` holds, in `account`; None for the token's own.

        Raises NotLoggedIn that says what to do, NotFound for an account that the token has nothing to do with.
        """
        scheme, _, text = (authorization_header or "").strip().partition(" ")
        if not scheme:
            raise NotLoggedIn("No token came with the request: send the header `Authorization: Bearer <token>`.")
        if scheme.lower() != "bearer":
            raise NotLoggedIn("The Authorization header is of another kind: send `Authorization: Bearer <token>`.")
        parsed = parse(text.strip())
        if parsed is None:
            raise NotLoggedIn(f"This is no daskscope token: those start with `{PREFIX}`.")
        row = self._rows.get(parsed.key_id)
        # One answer for both, so that nobody learns which key ids there are.
        if row is None or not hmac.compare_digest(row.secret_sha256, parsed.secret_sha256):
            raise NotLoggedIn("The server does not know this token: was it made by another server?")
        self._check_good(row)
        found = self._in_account(row, account or row.account)
        self._write_down(row)
        return found

    def _check_good(self, row: TokenRow) -> None:
        what = "session" if row.kind == "session" else f"token {row.name!r}"
        todo = "sign in again" if row.kind == "session" else "ask for a new one"
        if row.revoked_at is not None:
            raise NotLoggedIn(f"The {what} was revoked: {todo}.")
        if row.expires_at is not None and row.expires_at <= self._clock.now():
            raise NotLoggedIn(f"The {what} has expired: {todo}.")
        if row.parent is not None:
            parent = self._rows.get(row.parent)
            if parent is None:
                raise NotLoggedIn(f"The token that the {what} was made with is gone: {todo}.")
            self._check_good(parent)

    def _in_account(self, row: TokenRow, account: str) -> Principal:
        if row.user is None:
            if account != row.account:
                raise NotFound(f"No account {account} for this token.")
            return Principal(account, row.scopes, row.key_id, row.name, row.expires_at)
        membership = self._memberships.get((account, row.user)) if layout.is_account(account) else None
        if membership is None and account != row.account:
            raise NotFound(f"No account {account} for this token.")
        if membership is None:
            raise NotLoggedIn(f"{row.user} is not in account {account} any more: ask one of its admins.")
        scopes = row.scopes & OF_ROLES[membership.role]
        return Principal(account, scopes, row.key_id, row.name, row.expires_at, row.user, membership.role)

    def _write_down(self, row: TokenRow) -> None:
        """That it was used today, once a day. Best effort: nobody is kept out because that could not be kept."""
        today = layout.day_of(self._clock.now())
        if today in (row.used_on, self._written.get(row.key_id)):
            return
        if len(self._written) >= _WRITTEN:
            self._written.clear()
        self._written[row.key_id] = today
        try:
            self._tokens.used(row.key_id, today)
        except StoreError:
            logger.warning("That token %s was used was not written down.", row.key_id, exc_info=True)

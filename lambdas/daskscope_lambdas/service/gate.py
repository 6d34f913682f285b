"""The gate: which person or site asks, in which account, and what they may there."""

from __future__ import annotations

import hmac
import logging
from datetime import date

from daskscope.errors import NotFound, NotLoggedIn
from daskscope_lambdas.ports import Clock, Membership, StoreError, TokenRow, Tokens, Users
from daskscope_lambdas.service.kept import KEPT_S, Kept
from daskscope_lambdas.service.tokens import HARMLESS, OF_ROLES, PREFIX, Principal, parse
from daskscope_query import layout

CACHE_S = KEPT_S
"""A revoked token may pass for so long where it was used just before; so may who was taken out of an account."""
MOST_PARENTS = 8
"""Tokens that came of one another in a row: each sign-in by a login, and each login by such a sign-in, adds one."""
_WRITTEN = 1000
"""Tokens of which a process remembers that their use of the day is written down."""

logger = logging.getLogger("daskscope.gate")


class Gate:
    """Knows a request's bearer. Keeps what it looked up for CACHE_S seconds; safe to use from many threads."""

    def __init__(self, tokens: Tokens, users: Users, clock: Clock) -> None:
        self._tokens, self._users, self._clock = tokens, users, clock
        self._rows = Kept(tokens.find, clock)
        self._memberships = Kept[tuple[str, str], Membership](lambda of: users.find(*of), clock)
        self._written: dict[str, date] = {}

    def principal(self, authorization_header: str | None, account: str | None = None) -> Principal:
        """Whose token `Bearer <token>` holds, in `account`; None for the token's own.

        Raises NotLoggedIn that says what to do, also for a browser's session, which counts in its cookie alone, and
        NotFound for an account that the token has nothing to do with.
        """
        return self._admitted(self._bearer(authorization_header), account)

    def session(self, text: str, account: str | None = None) -> Principal:
        """As `principal`, for what a browser's cookie holds."""
        return self._admitted(self._known(text), account)

    def itself(self, authorization_header: str | None) -> Principal:
        """Whose token it is, in its own account, wherever its user is by now: who may no more than give it back.

        Raises NotLoggedIn as `principal`, but not for who is in the account no more.
        """
        row = self._bearer(authorization_header)
        there = self._memberships.get((row.account, row.user)) if row.user is not None else None
        role = there.role if there else None
        return Principal(row.account, frozenset(), row.key_id, row.name, row.expires_at, row.user, role)

    def check_key(self, key_id: str) -> None:
        """Raises NotLoggedIn unless the token with that key id is good still."""
        row = self._rows.get(key_id)
        if row is None:
            raise NotLoggedIn("The server does not know that token any more.")
        self._check_good(row)

    def _admitted(self, row: TokenRow, account: str | None) -> Principal:
        found = self._in_account(row, account or row.account)
        self._write_down(row)
        return found

    def _bearer(self, authorization_header: str | None) -> TokenRow:
        scheme, _, text = (authorization_header or "").strip().partition(" ")
        if not scheme:
            raise NotLoggedIn("No token came with the request: send the header `Authorization: Bearer <token>`.")
        if scheme.lower() != "bearer":
            raise NotLoggedIn("The Authorization header is of another kind: send `Authorization: Bearer <token>`.")
        row = self._known(text.strip())
        if row.kind == "session":
            raise NotLoggedIn("This is a browser's session, which is good in its cookie alone: make a token.")
        return row

    def _known(self, text: str) -> TokenRow:
        """The good token of that text. Raises NotLoggedIn."""
        parsed = parse(text)
        if parsed is None:
            raise NotLoggedIn(f"This is no daskscope token: those start with `{PREFIX}`.")
        row = self._rows.get(parsed.key_id)
        # One answer for both, so that nobody learns which key ids there are.
        if row is None or not hmac.compare_digest(row.secret_sha256, parsed.secret_sha256):
            raise NotLoggedIn("The server does not know this token: was it made by another server?")
        self._check_good(row)
        return row

    def _check_good(self, row: TokenRow) -> None:
        """It, and all that it came of. Raises NotLoggedIn."""
        for _ in range(MOST_PARENTS + 1):
            what = "session" if row.kind == "session" else f"token {row.name!r}"
            todo = "sign in again" if row.kind == "session" else "ask for a new one"
            if row.revoked_at is not None:
                raise NotLoggedIn(f"The {what} was revoked: {todo}.")
            if row.expires_at is not None and row.expires_at <= self._clock.now():
                raise NotLoggedIn(f"The {what} has expired: {todo}.")
            self._check_maker(row)
            if row.parent is None:
                return
            parent = self._rows.get(row.parent)
            if parent is None:
                raise NotLoggedIn(f"The token that the {what} was made with is gone: {todo}.")
            row = parent
        raise NotLoggedIn("It came of a token by too many others: sign in, or log in, with the first of them.")

    def _check_maker(self, row: TokenRow) -> None:
        """What an admin made for the site falls with them, also what they made while they passed for the last time."""
        if row.made_by is None or HARMLESS.issuperset(row.scopes):
            return
        maker = self._memberships.get((row.account, row.made_by))
        if maker is None or maker.role != "admin":
            raise NotLoggedIn(
                f"{row.made_by}, who made the token {row.name!r}, is no admin of account {row.account} any more: ask "
                "for a new one."
            )

    def _in_account(self, row: TokenRow, account: str) -> Principal:
        if row.user is None:
            if account != row.account:
                raise NotFound(f"No account {account} for this token: it is of {row.account}.")
            return Principal(account, row.scopes, row.key_id, row.name, row.expires_at, made_by=row.made_by)
        membership = self._memberships.get((account, row.user)) if layout.is_account(account) else None
        if membership is None:
            raise self._not_there(row, row.user, account)
        scopes = row.scopes & OF_ROLES[membership.role]
        return Principal(account, scopes, row.key_id, row.name, row.expires_at, row.user, membership.role)

    def _not_there(self, row: TokenRow, user: str, account: str) -> NotFound | NotLoggedIn:
        """What to tell a person who is not in the account: where they are."""
        accounts = ", ".join(each.account for each in self._users.of(user))
        if account != row.account:
            return NotFound(f"No account {account} for this token: {user} is in {accounts or 'none'}.")
        todo = f"name another one ({accounts})" if accounts else "ask one of its admins"
        return NotLoggedIn(f"{user} is not in account {account} any more: {todo}.")

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

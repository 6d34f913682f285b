"""How a terminal comes by tokens: it asks, somebody who is signed in approves that in a browser, and it fetches them.

As RFC 8628 has it. Three tickets tell how far that is: `device` is the terminal's own, `approval` waits for somebody
who types its code, `approved` says what they decided. Tokens are made when the terminal fetches them, and kept nowhere.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from daskscope.errors import NotFound, PermissionDenied
from daskscope_lambdas.ports import Clock, Missing, Scope, Tickets, TokenRow, Tokens
from daskscope_lambdas.service import tickets as desk
from daskscope_lambdas.service.base62 import Random
from daskscope_lambdas.service.tokens import Principal, mint

GOOD_S = 600.0
INTERVAL_S = 2
"""Between two questions of the terminal."""
TOKEN_S = 90 * 86_400.0
MAX_CLIENT = 100
"""Characters."""
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""Of a code that people compare or type: no vowels, so no words; no digits that look like letters."""
_N_LETTERS = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """What a terminal is told that asks."""

    device_code: str
    user_code: str
    url: str
    """Where somebody approves, relative to the server's address."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What it is told once somebody has approved."""

    token: str
    ingest_token: str | None
    """None for who may not ingest."""
    row: TokenRow
    """Of `token`."""
    user: str


class Approvals:
    def __init__(self, tickets: Tickets, clock: Clock, random: Random = secrets.token_bytes) -> None:
        self._tickets, self._clock, self._random = tickets, clock, random

    def ask(self, client: str) -> Asked:
        """`client`: what the terminal calls itself."""
        device_code, device = desk.issue(self._tickets, self._clock, "device", {"client": client}, GOOD_S, self._random)
        told = {"client": client, "device": device.key}
        user_code = self._user_code()  # one of 25 billion, for ten minutes: it is taken by nobody
        desk.issue(self._tickets, self._clock, "approval", told, GOOD_S, text=user_code)
        return Asked(device_code, user_code, f"login/approve?code={user_code}")

    def client(self, user_code: str) -> str:
        """What the terminal that shows this code calls itself. Raises NotFound."""
        return desk.look(self._tickets, self._clock, "approval", spelled(user_code)).told["client"]

    def approve(self, user_code: str, principal: Principal, parent: TokenRow | None) -> None:
        """It may have tokens of who approves, for what they may in that account; `parent`: good no longer than that.

        Raises NotFound, PermissionDenied for the token of a site: it is nobody's.
        """
        if principal.user is None:
            raise PermissionDenied(
                f"You are signed in with {principal.name!r}, a token of account {principal.account} that is nobody's "
                "own: sign in as a person to approve a terminal, or give it a token (`daskscope login --token`)."
            )
        told = {
            "user": principal.user,
            "account": principal.account,
            "scopes": sorted(principal.scopes),
            "until": parent and parent.expires_at,
            "parent": parent and parent.key_id,
        }
        self._decide(user_code, told)

    def deny(self, user_code: str) -> None:
        """Raises NotFound."""
        self._decide(user_code, {"user": None})

    def fetch(self, tokens: Tokens, device_code: str) -> Fetched | None:
        """None as long as nobody has decided. Raises NotFound, PermissionDenied if that was no, or is good no more."""
        device = desk.look(self._tickets, self._clock, "device", device_code)
        try:
            decided = desk.take(self._tickets, self._clock, "approved", device.key)
        except NotFound:
            return None
        with suppress(Missing):
            self._tickets.take(device.key)
        if decided.told["user"] is None:
            raise PermissionDenied("Whoever was asked to approve this login said no.")
        return self._mint(tokens, decided.told, device.told["client"])

    def _decide(self, user_code: str, told: Mapping[str, Any]) -> None:
        approval = desk.take(self._tickets, self._clock, "approval", spelled(user_code))
        desk.issue(self._tickets, self._clock, "approved", told, GOOD_S, text=approval.told["device"])

    def _mint(self, tokens: Tokens, told: Mapping[str, Any], client: str) -> Fetched:
        now = self._clock.now()
        ends = min(now + TOKEN_S, told["until"] or float("inf"))
        if ends <= now:
            raise PermissionDenied("The token of whoever approved this login has ended meanwhile: ask again.")
        scopes: set[Scope] = set(told["scopes"])
        name = f"login on {client}"
        text, row = mint(
            tokens, self._clock, told["account"], scopes - {"ingest"}, name, ends, self._random,
            user=told["user"], parent=told["parent"],
        )  # fmt: skip
        ingest_token = None
        if "ingest" in scopes:
            ingest_token, _ = mint(
                tokens, self._clock, told["account"], {"ingest"}, f"{name}, for its clusters", ends, self._random,
                user=told["user"], parent=row.key_id,
            )  # fmt: skip
        return Fetched(text, ingest_token, row, told["user"])

    def _user_code(self) -> str:
        number = int.from_bytes(self._random(16))
        letters = ""
        for _ in range(_N_LETTERS):
            number, letter = divmod(number, len(LETTERS))
            letters += LETTERS[letter]
        return f"{letters[:4]}-{letters[4:]}"


def spelled(user_code: str) -> str:
    """As it was issued, however it was typed."""
    letters = "".join(letter for letter in user_code.upper() if letter.isalpha())
    return f"{letters[:4]}-{letters[4:]}"


def log_out(tokens: Tokens, clock: Clock, key_id: str) -> list[TokenRow]:
    """A token is good no longer, nor is what was made of it: all of these. Raises Missing."""
    own = tokens.find(key_id)
    rows = [own] + [row for row in tokens.list(own.account) if row.parent == key_id and row.revoked_at is None]
    for row in rows:
        tokens.revoke(row.key_id, clock.now())
    return [tokens.find(row.key_id) for row in rows]

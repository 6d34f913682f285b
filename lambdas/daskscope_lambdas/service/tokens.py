"""Tokens: their text, who makes them, and the gate that lets their bearers in.

    dks_<key id: 12 base62>_<secret: 43 base62 of 32 random bytes><6 base62: CRC32 of all before it>

The prefix and the checksum let scanners find a token that leaked. What is kept is the SHA-256 of the secret: it is
random enough to need no slow hash. A token has the scopes it was made with and no others: `admin` includes neither
`read` nor `ingest`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import get_args

from daskscope.errors import NotLoggedIn, PermissionDenied
from daskscope_lambdas.ports import Clock, Missing, Scope, TokenRow, Tokens
from daskscope_query import layout

PREFIX = "dks_"
CACHE_S = 60.0
"""A revoked token may pass for so long where it was used just before."""
_CACHE_ROWS = 1000

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_TOKEN = re.compile(r"dks_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})")


@dataclass(frozen=True, slots=True)
class Principal:
    """Whose token it is that came with a request."""

    account: str
    scopes: frozenset[Scope]
    key_id: str
    name: str
    expires_at: float | None = None
    """Epoch seconds; None until it is revoked."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a token that is whole says; whether anybody knows it is another matter."""

    key_id: str
    secret_sha256: str


def mint(
    tokens: Tokens,
    clock: Clock,
    account: str,
    scopes: Iterable[Scope],
    name: str,
    expires_at: float | None = None,
    random: Callable[[int], bytes] = secrets.token_bytes,
) -> tuple[str, TokenRow]:
    """A new token: its text, which is kept nowhere, and its row, which is. `random` gives so many random bytes.

    Raises ValueError for no or unknown scopes, an impossible account, or an expiry that is past.
    """
    given = frozenset(scopes)
    if not given or not given <= set(get_args(Scope)):
        raise ValueError(f"scopes is {sorted(given)!r}; allowed: one or more of {', '.join(get_args(Scope))}.")
    now = clock.now()
    if expires_at is not None and expires_at <= now:
        raise ValueError(f"expires_at is {expires_at!r}; allowed: epoch seconds later than now ({now!r}), or None.")
    key_id = _base62(int.from_bytes(random(16)) % 62**12, 12)
    secret = _base62(int.from_bytes(random(32)), 43)
    row = TokenRow(
        key_id=key_id,
        secret_sha256=_sha256(secret),
        account=layout.checked_account(account),
        scopes=given,
        name=name,
        created_at=now,
        expires_at=expires_at,
    )
    tokens.add(row)
    text = f"{PREFIX}{key_id}_{secret}"
    return text + _checksum(text), row


def parse(text: str) -> Parsed | None:
    """None if `text` is no token of ours at all; raises NotLoggedIn if it is one that was damaged on the way."""
    if not text.startswith(PREFIX):
        return None
    found = _TOKEN.fullmatch(text)
    if not found or _checksum(text[:-6]) != found[3]:
        raise NotLoggedIn("The token is damaged: its checksum does not fit. Was it copied whole?")
    return Parsed(found[1], _sha256(found[2]))


class Gate:
    """Knows a request's bearer. Keeps token rows for CACHE_S seconds; safe to use from many threads."""

    def __init__(self, tokens: Tokens, clock: Clock) -> None:
        self._tokens, self._clock = tokens, clock
        self._cache: OrderedDict[str, tuple[float, TokenRow]] = OrderedDict()
        self._lock = threading.Lock()

    def principal(self, authorization_header: str | None) -> Principal:
        """Whose token `Bearer <token>` holds. Raises NotLoggedIn that says what to do."""
        scheme, _, text = (authorization_header or "").strip().partition(" ")
        if not scheme:
            raise NotLoggedIn("No token came with the request: send the header `Authorization: Bearer <token>`.")
        if scheme.lower() != "bearer":
            raise NotLoggedIn("The Authorization header is of another kind: send `Authorization: Bearer <token>`.")
        parsed = parse(text.strip())
        if parsed is None:
            raise NotLoggedIn(f"This is no daskscope token: those start with `{PREFIX}`.")
        now = self._clock.now()
        row = self._row(parsed.key_id, now)
        # One answer for both, so that nobody learns which key ids there are.
        if row is None or not hmac.compare_digest(row.secret_sha256, parsed.secret_sha256):
            raise NotLoggedIn("The server does not know this token: was it made by another server?")
        if row.revoked_at is not None:
            raise NotLoggedIn(f"The token {row.name!r} was revoked: ask for a new one.")
        if row.expires_at is not None and row.expires_at <= now:
            raise NotLoggedIn(f"The token {row.name!r} has expired: ask for a new one.")
        return Principal(row.account, row.scopes, row.key_id, row.name, row.expires_at)

    def _row(self, key_id: str, now: float) -> TokenRow | None:
        with self._lock:
            kept = self._cache.get(key_id)
            if kept and 0 <= now - kept[0] < CACHE_S:
                self._cache.move_to_end(key_id)
                return kept[1]
        try:
            row = self._tokens.find(key_id)
        except Missing:
            return None  # Not kept: a token works as soon as it is made.
        with self._lock:
            self._cache[key_id] = (now, row)
            self._cache.move_to_end(key_id)
            if len(self._cache) > _CACHE_ROWS:
                self._cache.popitem(last=False)
        return row


def require(principal: Principal, scope: Scope) -> None:
    """Raises PermissionDenied unless the token was made with `scope`."""
    if scope not in principal.scopes:
        has = ", ".join(sorted(principal.scopes))
        raise PermissionDenied(
            f"The token {principal.name!r} may {has}, and this needs one that may {scope}: use another token."
        )


def _base62(number: int, width: int) -> str:
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), 6)


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()

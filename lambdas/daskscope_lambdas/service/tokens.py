"""Tokens: their text, who makes them, and what their bearers may. The gate that lets these in is gate.py.

    dks_<key id: 12 base62>_<secret: 43 base62 of 32 random bytes><6 base62: CRC32 of all before it>

The prefix and the checksum let scanners find a token that leaked. What is kept is the SHA-256 of the secret: it is
random enough to need no slow hash. A token has the scopes it was made with and no others: `admin` includes neither
`read` nor `ingest`.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from daskscope.errors import NotLoggedIn, PermissionDenied
from daskscope_lambdas.ports import Clock, Role, Scope, TokenRow, Tokens
from daskscope_lambdas.service.base62 import base62
from daskscope_query import layout

PREFIX = "dks_"
OF_ROLES: dict[Role, frozenset[Scope]] = {
    "admin": frozenset(get_args(Scope)),
    "member": frozenset({"ingest", "read", "control", "report"}),
    "viewer": frozenset({"read"}),
}
"""What a person may in an account, by what they are there; a token of theirs may no more."""

HARMLESS: frozenset[Scope] = frozenset({"ingest"})
"""What leads to no data, whoever comes by it."""

_A: dict[Role, str] = {"viewer": "a viewer", "member": "a member", "admin": "an admin"}
_KEY_ID = re.compile(r"[0-9A-Za-z]{12}")
_TOKEN = re.compile(r"dks_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})")


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, and in which account."""

    account: str
    scopes: frozenset[Scope]
    """What they may there: what the token may, within what its user is in the account."""
    key_id: str
    name: str
    """Of the token."""
    expires_at: float | None = None
    """Epoch seconds; None until it is revoked."""
    user: str | None = None
    """None for the token of a site, which is nobody's."""
    role: Role | None = None
    """The user's in the account."""
    made_by: str | None = None
    """Of the token of a site: the user who was given it, if it was one."""

    @property
    def who(self) -> str:
        """For what tells who did something: a user, else `token <name>`. No user's name has a blank in it: whatever a
        token is called, it is taken for nobody."""
        return self.user or f"token {self.name}"


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
    *,
    user: str | None = None,
    kind: Literal["token", "session"] = "token",
    parent: str | None = None,
    made_by: str | None = None,
    replaces: str | None = None,
    note: Callable[[TokenRow], object] | None = None,
) -> tuple[str, TokenRow]:
    """A new token: its text, which is kept nowhere, and its row, which is. `random` gives so many random bytes.
    `user`, `kind`, `parent`, `made_by` and `replaces` as in TokenRow. `note` is told the row before it is kept.

    Raises ValueError for no or unknown scopes, an impossible account, or an expiry that is past.
    """
    given = frozenset(scopes)
    if not given or not given <= set(get_args(Scope)):
        raise ValueError(f"scopes is {sorted(given)!r}; allowed: one or more of {', '.join(get_args(Scope))}.")
    now = clock.now()
    if expires_at is not None and expires_at <= now:
        raise ValueError(f"expires_at is {expires_at!r}; allowed: epoch seconds later than now ({now!r}), or None.")
    key_id = base62(int.from_bytes(random(16)) % 62**12, 12)
    secret = base62(int.from_bytes(random(32)), 43)
    row = TokenRow(
        key_id=key_id,
        secret_sha256=_sha256(secret),
        account=layout.checked_account(account),
        scopes=given,
        name=name,
        created_at=now,
        expires_at=expires_at,
        user=user,
        kind=kind,
        parent=parent,
        made_by=made_by,
        replaces=replaces,
    )
    if note:
        note(row)
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


def is_key_id(text: str) -> bool:
    """Whether any token could have it."""
    return _KEY_ID.fullmatch(text) is not None


def require(principal: Principal, scope: Scope) -> None:
    """Raises PermissionDenied unless they may do what `scope` lets one do; says whether role or token stands in the
    way."""
    if scope in principal.scopes:
        return
    user, role, account = principal.user, principal.role, principal.account
    if user and role and scope not in OF_ROLES[role]:
        able: Role = "member" if scope in OF_ROLES["member"] else "admin"
        raise PermissionDenied(
            f"{user} is {_A[role]} of account {account}, and this needs {_A[able]}: ask one of its admins "
            "(`daskscope user list` names them)."
        )
    has = ", ".join(sorted(principal.scopes)) or "do nothing here"
    todo = f" {user} may, as {_A[role]} of {account}: log in again, or use" if user and role else " Use"
    raise PermissionDenied(
        f"The token {principal.name!r} may {has}, and this needs one that may {scope}.{todo} another token."
    )


def _checksum(text: str) -> str:
    return base62(zlib.crc32(text.encode()), 6)


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()

"""Tickets: codes that let somebody in once. What is kept of one is the SHA-256 of its kind and text.

A link with a code may be looked at by whatever previews mail; so to look is not to take.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from daskscope.errors import NotFound
from daskscope_lambdas.ports import Clock, Missing, Role, Scope, Ticket, TicketKind, Tickets
from daskscope_lambdas.service.base62 import Random, code
from daskscope_query import layout

SIGN_IN_S = 3_600.0
LONG_SIGN_IN_S = 86_400.0
"""Of a link that is sent to somebody, rather than opened where it was printed."""
INVITATION_S = 7 * 86_400.0
MAX_CODE = 64
"""Characters. What is longer is no code."""
_ID = 12
"""Hex digits of a key."""

_NAMES: Mapping[TicketKind, str] = {
    "sign-in": "sign-in link",
    "invitation": "invitation",
    "device": "login",
    "approval": "code",
    "approved": "login",
}


@dataclass(frozen=True, slots=True)
class Link:
    """`url` is relative to the server's address, without a slash at its start."""

    url: str
    expires_at: float
    """Epoch seconds."""


def sign_in_link(
    tickets: Tickets,
    clock: Clock,
    account: str,
    scopes: Iterable[Scope],
    *,
    user: str | None = None,
    parent: str | None = None,
    good_s: float = SIGN_IN_S,
    random: Random = secrets.token_bytes,
) -> Link:
    """Lets a browser sign in once: `login?code=...`.

    The session may do what `scopes` say; it is `user`'s, in each account of theirs within what they are there, or that
    of a site, in `account` alone. `parent`: key id of the token without which it is not good, either.
    Raises ValueError for no scopes or an impossible account.
    """
    told = {
        "account": layout.checked_account(account),
        "scopes": sorted(scopes),
        "user": user,
        "parent": parent,
    }
    if not told["scopes"]:
        raise ValueError("scopes is empty; allowed: one or more.")
    text, ticket = issue(tickets, clock, "sign-in", told, good_s, random)
    return Link(f"login?code={text}", ticket.expires_at)


def invitation(
    tickets: Tickets,
    clock: Clock,
    account: str,
    role: Role,
    by: str,
    *,
    user: str | None = None,
    made_with: str | None = None,
    good_s: float = INVITATION_S,
    random: Random = secrets.token_bytes,
) -> Link:
    """Lets one person into `account`, once: `join?code=...`. `user`: that one alone; None: whoever brings it.
    `made_with`: key id of the token without which it is not good, either.

    Raises ValueError for an impossible account.
    """
    told = {"account": layout.checked_account(account), "role": role, "by": by, "user": user, "made_with": made_with}
    text, ticket = issue(tickets, clock, "invitation", told, good_s, random)
    return Link(f"join?code={text}", ticket.expires_at)


def issue(
    tickets: Tickets,
    clock: Clock,
    kind: TicketKind,
    told: Mapping[str, Any],
    good_s: float,
    random: Random = secrets.token_bytes,
    text: str | None = None,
) -> tuple[str, Ticket]:
    """A new ticket: its text, which is kept nowhere, and what is kept. `text`: to be that one. Raises Taken."""
    text = text or code(random)
    ticket = Ticket(key=key(kind, text), kind=kind, told=told, expires_at=clock.now() + good_s)
    tickets.add(ticket)
    return text, ticket


def look(tickets: Tickets, clock: Clock, kind: TicketKind, text: str) -> Ticket:
    """The ticket, which stays. Raises NotFound that says what to do."""
    return _good(clock, kind, text, tickets.find)


def take(tickets: Tickets, clock: Clock, kind: TicketKind, text: str) -> Ticket:
    """The ticket, which is gone then: of many callers one gets it. Raises NotFound, as `look`."""
    return _good(clock, kind, text, tickets.take)


def id_of(ticket: Ticket) -> str:
    """Names it to people, to whom it tells nothing of the text."""
    return ticket.key[:_ID]


def key(kind: TicketKind, text: str) -> str:
    return hashlib.sha256(f"{kind}:{text}".encode()).hexdigest()


def _good(clock: Clock, kind: TicketKind, text: str, find: Callable[[str], Ticket]) -> Ticket:
    name = _NAMES[kind]
    gone = NotFound(f"This {name} is not known here: it was used, or has expired. Ask for a new one.")
    if not (0 < len(text) <= MAX_CODE and text.isascii()):
        raise NotFound(f"This is no {name}: was it copied whole?")
    try:
        found = find(key(kind, text))
    except Missing as error:
        raise gone from error
    if found.expires_at <= clock.now():
        raise gone
    return found

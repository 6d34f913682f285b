"""Who is who: the people of this place, what they are in which account, and what lets somebody in once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Role = Literal["admin", "member", "viewer"]
"""May look after the account; may compute, close clusters and keep reports; may look, as a guest who helps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What a person is in an account."""

    account: str
    user: str
    role: Role
    added_at: float
    added_by: str


class Users(Protocol):
    """People have a name each, in all accounts the same, and may be in several."""

    def claim(self, user: str, at: float) -> None:
        """The name is somebody's from now on and stays so, whatever becomes of their memberships. Names that differ by
        case alone are one. Raises Taken.
        """
        ...

    def claimed(self, user: str) -> str | None:
        """The name as whoever has it spells it, whatever the case of `user`; None if nobody has it."""
        ...

    def put(self, membership: Membership) -> None:
        """In place of what the person was in that account, if anything."""
        ...

    def set_role(self, account: str, user: str, role: Role, *, last_too: bool = False) -> None:
        """Raises Missing if they are not in it; Conflict if nobody would be its admin any more, unless `last_too`: of
        two who make each other something else at once, one stays. Who just became one may not count for a moment.
        """
        ...

    def find(self, account: str, user: str) -> Membership:
        """Raises Missing."""
        ...

    def remove(self, account: str, user: str, *, last_too: bool = False) -> None:
        """Quiet if they are not in it. Raises Conflict as `set_role`."""
        ...

    def list(self, account: str) -> Sequence[Membership]:
        """All of an account, by name of the user. Who was just added may be missing for a moment."""
        ...

    def of(self, user: str) -> Sequence[Membership]:
        """All of a person, by name of the account. One that was just added may be missing for a moment."""
        ...

    def accounts(self) -> Sequence[str]:
        """Those that have people, or had, by name. What was just made may be missing for a moment."""
        ...

    def forget(self, account: str, until: float) -> None:
        """Nobody who was added until then is in the account any more. Names stay claimed."""
        ...


TicketKind = Literal["sign-in", "invitation", "device", "approval", "approved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """What is good once, for whoever brings the text whose SHA-256 `key` is: the text itself is kept nowhere."""

    key: str
    """64 hex digits."""
    kind: TicketKind
    told: Mapping[str, Any]
    """JSON types only; what each kind tells is the business of the service that makes it."""
    expires_at: float


class Tickets(Protocol):
    """Tickets that have expired may be there for a while yet: who finds one looks at `expires_at`."""

    def add(self, ticket: Ticket) -> None:
        """Raises Taken if the key exists."""
        ...

    def find(self, key: str) -> Ticket:
        """Raises Missing."""
        ...

    def take(self, key: str) -> Ticket:
        """The ticket, which is gone then: of many callers one gets it. Raises Missing."""
        ...

    def list(self, account: str) -> Sequence[Ticket]:
        """Those that tell of the account as `account`, which end first first; ties by key. One that was just added may
        be missing for a moment."""
        ...

    def forget(self, account: str) -> None:
        """Nobody gets those any more that tell of the account as `account`. One that was just added may stay."""
        ...

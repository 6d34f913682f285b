"""Invitations to an account: which ones wait, and how whoever brings one joins.

An invitation is as good as what it was made with: it falls with the token, and with the admin whose it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from daskscope.errors import BadMessage, Conflict, NotFound, NotLoggedIn, PermissionDenied
from daskscope_lambdas.ports import Clock, Missing, Ticket, Tickets, Tokens, Users
from daskscope_lambdas.service import sessions
from daskscope_lambdas.service import tickets as desk
from daskscope_lambdas.service.gate import Gate
from daskscope_lambdas.service.people import People, checked_user
from daskscope_lambdas.service.tokens import OF_ROLES, Principal

Note = Callable[[Principal, Ticket], object]


@dataclass(frozen=True, slots=True)
class Joined:
    account: str
    session: sessions.Minted | None
    """Of who was not signed in."""


class Invitations:
    def __init__(self, tickets: Tickets, users: Users, tokens: Tokens, clock: Clock, gate: Gate) -> None:
        self._tickets, self._users, self._tokens, self._clock, self._gate = tickets, users, tokens, clock, gate
        self._people = People(users, clock)

    def list(self, account: str) -> Sequence[Ticket]:
        """Those that nobody has accepted yet, which end first first."""
        now = self._clock.now()
        return [each for each in self._tickets.list(account) if each.kind == "invitation" and each.expires_at > now]

    def find(self, account: str, id: str) -> Ticket:
        """Raises NotFound."""
        for ticket in self.list(account):
            if desk.id_of(ticket) == id:
                return ticket
        raise NotFound(f"Account {account} has no invitation {id}: it was accepted or withdrawn, or has expired.")

    def withdraw(self, ticket: Ticket) -> None:
        """Nobody joins by it any more. Raises NotFound if somebody was faster."""
        try:
            self._tickets.take(ticket.key)
        except Missing as error:
            raise NotFound(f"The invitation {desk.id_of(ticket)} was accepted just now.") from error

    def look(self, code: str) -> Ticket:
        """The invitation, which stays. Raises NotFound."""
        return desk.look(self._tickets, self._clock, "invitation", code)

    def check(self, ticket: Ticket) -> None:
        """Raises PermissionDenied if who sent it could not do so now."""
        self._people.check_inviter(ticket.told["account"], ticket.told["by"])
        if made_with := ticket.told.get("made_with"):
            try:
                self._gate.check_key(made_with)
            except NotLoggedIn as error:
                raise PermissionDenied(
                    "The token with which this invitation was made is good no more, and nor is the invitation: ask "
                    f"{ticket.told['by']} for another."
                ) from error

    def needs_sign_in(self, ticket: Ticket) -> bool:
        """Whether it is for somebody who has their name already."""
        user = ticket.told["user"]
        return bool(user) and ticket.told.get("claimed") != user and self._users.claimed(user) is not None

    def accept(self, code: str, principal: Principal | None, typed: str, note: Note) -> Joined:
        """They are in the account from now on: as who they are, or, where nobody is signed in, under the name that
        they `typed`, with a session. `note` is told before anything is done who joins, and by what.

        Raises NotLoggedIn, PermissionDenied, NotFound, Conflict, BadMessage, StoreError; the invitation is still good
        then, and a name that was claimed is had by the same invitation.
        """
        ticket = self.look(code)
        self.check(ticket)
        account, role = ticket.told["account"], ticket.told["role"]
        user = self._who(ticket, principal, typed)
        is_again = ticket.told.get("claimed") == user
        is_new = principal is None and not is_again
        if is_new and self._users.claimed(user) is not None:
            self._people.claim(user)  # which says that it is taken
        if not is_again:
            self._people.check_absent(account, user)
        joins = principal or Principal(account, OF_ROLES[role], "", sessions.NAME, user=user)
        note(replace(joins, account=account, role=role), ticket)
        ticket = desk.take(self._tickets, self._clock, "invitation", code)
        try:
            if is_new:
                self._people.claim(user)
                is_again = True
            self._join(account, user, ticket, is_again)
            session = None if principal else sessions.of_person(self._tokens, self._clock, user, account)
        except BaseException:
            told = {**ticket.told, "claimed": user} if is_again else ticket.told
            self._tickets.add(replace(ticket, told=told))
            raise
        return Joined(account, session)

    def _who(self, ticket: Ticket, principal: Principal | None, typed: str) -> str:
        """As whom somebody joins. Raises NotLoggedIn, PermissionDenied, BadMessage."""
        wanted: str | None = ticket.told["user"]
        if principal is None:
            if self.needs_sign_in(ticket):
                raise NotLoggedIn(f"This invitation is {wanted}'s: sign in as {wanted} first.")
            try:
                return checked_user(wanted or typed)
            except ValueError as error:
                raise BadMessage(str(error), "user") from error
        if principal.user is None:
            raise PermissionDenied(
                f"You are signed in with {principal.name!r}, a token that is nobody's own: sign out, and open the "
                "invitation again."
            )
        if wanted and wanted.casefold() != principal.user.casefold():
            raise PermissionDenied(f"This invitation is {wanted}'s, and you are signed in as {principal.user}.")
        return principal.user

    def _join(self, account: str, user: str, ticket: Ticket, is_again: bool) -> None:
        """`is_again`: it may have come so far before. Raises Conflict."""
        try:
            self._people.join(account, user, ticket.told["role"], ticket.told["by"])
        except Conflict:
            if not is_again:
                raise

"""The people of an account: who they are, and what each may there.

A name is one person's in the whole installation, for ever; what they are in an account is a membership of theirs, which
comes and goes. An account's admin invites; who accepts does so as themselves, or claims a name that nobody has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from daskscope.errors import Conflict, NotFound, PermissionDenied
from daskscope_lambdas import ports
from daskscope_lambdas.ports import Clock, Membership, Missing, Role, Taken, Users

MAX_USER = 64
"""Characters."""
_USER = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._@+-]{{0,{MAX_USER - 1}}}")


def checked_user(user: str) -> str:
    """`user` itself. Raises ValueError if it can be nobody's name."""
    if not _USER.fullmatch(user):
        raise ValueError(f"{user!r} is no user name: 1 to {MAX_USER} of A-Z, a-z, 0-9 and ._@+-, of which the first is "
                         "a letter or digit.")  # fmt: skip
    return user


class People:
    def __init__(self, users: Users, clock: Clock) -> None:
        self._users, self._clock = users, clock

    def spelled(self, user: str) -> str:
        """As the person of that name spells it, whatever the case of `user`; itself if nobody has it. Raises ValueError
        for what can be nobody's."""
        return self._users.claimed(checked_user(user)) or user

    def claim(self, user: str) -> str:
        """The name, which is the caller's from now on. Raises ValueError, and Conflict if it is somebody's."""
        try:
            self._users.claim(checked_user(user), self._clock.now())
        except Taken as error:
            raise Conflict(f"The name {user} is taken. If it is yours, sign in first; else choose another.") from error
        return user

    def check_inviter(self, account: str, by: str) -> None:
        """Raises PermissionDenied if `by`, who invited, is a person who may not do that any more. One that is no user
        name is a site's token, or an operator."""
        if _USER.fullmatch(by) and self._role(account, by) != "admin":
            raise PermissionDenied(f"{by}, who sent the invitation, is no admin of {account} any more: ask another.")

    def join(self, account: str, user: str, role: Role, by: str) -> Membership:
        """Somebody who has their name is in the account from now on. Raises Conflict if they were before."""
        self.check_absent(account, user)
        return self.put(account, user, role, by)

    def check_absent(self, account: str, user: str) -> None:
        """Raises Conflict if they are in the account."""
        if there := self._role(account, user):
            raise Conflict(f"{user} is in account {account} already, as {there}: an admin of it may change that.")

    def put(self, account: str, user: str, role: Role, by: str) -> Membership:
        """They are that, whatever they were, and have their name if nobody had it: for who makes accounts. Somebody
        whose name differs by case alone is the one that is meant."""
        user = self._claimed(user)
        membership = Membership(account=account, user=user, role=role, added_at=self._clock.now(), added_by=by)
        self._users.put(membership)
        return membership

    def find(self, account: str, user: str) -> Membership:
        """Raises NotFound."""
        if not _USER.fullmatch(user):
            raise _nobody(account, user)
        try:
            return self._users.find(account, user)
        except Missing as error:
            raise _nobody(account, user) from error

    def list(self, account: str) -> Sequence[Membership]:
        """All of an account, by name."""
        return self._users.list(account)

    def accounts(self, user: str) -> Sequence[Membership]:
        """All of a person, by account."""
        return self._users.of(user)

    def change(self, account: str, user: str, role: Role, *, last_too: bool = False) -> Membership:
        """They are `role` from now on. Raises NotFound, and Conflict for the last admin, unless `last_too`."""
        there = self.find(account, user)
        try:
            self._users.set_role(account, user, role, last_too=last_too)
        except Missing as error:
            raise _nobody(account, user) from error
        except ports.Conflict as error:
            raise _last(there) from error
        return replace(there, role=role)

    def remove(self, account: str, user: str, *, last_too: bool = False) -> Membership:
        """They are in it no more; what they were. Raises as `change`."""
        there = self.find(account, user)
        try:
            self._users.remove(account, user, last_too=last_too)
        except ports.Conflict as error:
            raise _last(there) from error
        return there

    def check_not_last(self, there: Membership) -> None:
        """Raises Conflict if nobody but they looks after the account: as `change` and `remove` do, before anything of
        it is written down."""
        others = (each for each in self._users.list(there.account) if each.user != there.user)
        if there.role == "admin" and not any(each.role == "admin" for each in others):
            raise _last(there)

    def _role(self, account: str, user: str) -> Role | None:
        try:
            return self._users.find(account, user).role
        except Missing:
            return None

    def _claimed(self, user: str) -> str:
        """The name, as it is spelled, and somebody's by now. Raises ValueError."""
        if known := self._users.claimed(checked_user(user)):
            return known
        try:
            self._users.claim(user, self._clock.now())
        except Taken:  # Somebody else who makes accounts was faster, and meant the same person.
            return self.spelled(user)
        return user


def _nobody(account: str, user: str) -> NotFound:
    return NotFound(f"Account {account} has no user {user}.")


def _last(there: Membership) -> Conflict:
    return Conflict(
        f"{there.user} is the last admin of account {there.account}: make somebody else one first, or ask who runs "
        "this server."
    )

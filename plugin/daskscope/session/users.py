"""Who is in an account, and what they are there. To change that needs a token that may `admin`."""

from __future__ import annotations

from typing import get_args

from daskscope.arguments import UserRole, among
from daskscope.connection import PAGE
from daskscope.records import Record, Records
from daskscope.session.base import Base, part

_USERS = ("user", "role", "added", "added_by")
_INVITATIONS = ("id", "role", "user", "by", "expires")


class Users(Base):
    """Of a session: people."""

    def list_users(
        self, account: str | None = None, *, limit: int | None = None, workspace: str | None = None
    ) -> Records:
        """Who is in the account, by name: `user`, `role`, since when (`added`) and by whom."""
        return self._list(self._asked(account, workspace, limit), "users", {}, limit, _USERS, size=PAGE)

    def invite_user(
        self,
        role: UserRole = "member",
        user: str | None = None,
        account: str | None = None,
        *,
        workspace: str | None = None,
    ) -> Record:
        """An invitation, good once: whoever opens its `url` is in the account then, as themselves or under a name that
        nobody has. With `user` that one alone may accept. It ends when it `expires`."""
        body = {"role": _role(role), "user": user}
        made = self._connection.post(f"/{self._asked(account, workspace)}/users", body, {"url": str})
        return Record({**made, "url": f"{self._connection.source.pages}/{made['url'].lstrip('/')}"})

    def list_invitations(
        self, account: str | None = None, *, limit: int | None = None, workspace: str | None = None
    ) -> Records:
        """Those that nobody has accepted yet, which end first first: `id`, for whom (`user`, null for whoever has the
        link), as what (`role`), by whom. Their links are kept nowhere."""
        asked = self._asked(account, workspace, limit)
        return self._list(asked, "invitations", {}, limit, _INVITATIONS, size=PAGE)

    def withdraw_invitation(self, id: str, account: str | None = None, *, workspace: str | None = None) -> Record:
        """Nobody joins any more by the invitation with that `id` of the list. Raises NotFound."""
        return Record(self._connection.delete(f"/{self._asked(account, workspace)}/invitations/{part(id)}"))

    def set_role(
        self, user: str, role: UserRole, account: str | None = None, *, workspace: str | None = None
    ) -> Record:
        """Makes somebody who is in the account `admin`, `member` or `viewer`. Raises NotFound, and Conflict for the
        last admin, who stays one."""
        body = {"role": _role(role)}
        return Record(self._connection.put(f"/{self._asked(account, workspace)}/users/{part(user)}", body))

    def remove_user(self, user: str, account: str | None = None, *, workspace: str | None = None) -> Record:
        """Takes somebody out of the account: their tokens are let in there no more. Whoever asks may take out
        themselves. Raises NotFound, and Conflict for the last admin."""
        return Record(self._connection.delete(f"/{self._asked(account, workspace)}/users/{part(user)}"))


def _role(role: str) -> str:
    """Raises SettingsError."""
    return among("role", role, get_args(UserRole)) or role

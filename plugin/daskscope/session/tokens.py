"""Who may ask: an account's tokens. Needs a token that may `admin`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import get_args

from daskscope.arguments import Scope, among, seconds
from daskscope.connection import PAGE
from daskscope.records import Record, Records
from daskscope.session.base import Base, part

_TOKENS = ("key_id", "name", "scopes", "created", "expires", "revoked")


class Tokens(Base):
    """Of a session: tokens."""

    def list_tokens(
        self, account: str | None = None, *, limit: int | None = None, workspace: str | None = None
    ) -> Records:
        """The account's tokens, none of their secrets."""
        return self._list(self._asked(account, workspace, limit), "tokens", {}, limit, _TOKENS, size=PAGE)

    def create_token(
        self,
        name: str,
        scopes: Scope | Iterable[Scope] = "read",
        account: str | None = None,
        *,
        expires: str | float | timedelta | None = None,
        workspace: str | None = None,
    ) -> Record:
        """A new token: `token` is shown this once. `scopes` are of read, ingest, control and admin; `expires` is a time
        span like "90 days", or None until it is revoked; none outlives the token that asks."""
        wanted = [scopes] if isinstance(scopes, str) else list(scopes)
        for scope in wanted:
            among("scopes", scope, get_args(Scope))
        body = {"name": name, "scopes": wanted, "expires_in_s": seconds(expires, "expires", _EXPIRES)}
        return Record(self._connection.post(f"/{self._asked(account, workspace)}/tokens", body))

    def revoke_token(self, key_id: str, account: str | None = None, *, workspace: str | None = None) -> Record:
        """Ends a token, by the `key_id` of the list: whoever sends it is not let in any more. Raises NotFound."""
        asked = self._asked(account, workspace)
        return Record(self._connection.delete(f"/{asked}/tokens/{part(key_id)}"))


_EXPIRES = "a time span like '90 days', a number of seconds, a timedelta, or None for a token that does not expire"

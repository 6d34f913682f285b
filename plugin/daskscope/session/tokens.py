"""Who may ask: tokens. Those of an account need one that may `admin`; whoever asks has their own."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, get_args
from urllib.parse import quote

from daskscope.arguments import Scope, among, seconds
from daskscope.connection import PAGE
from daskscope.errors import SettingsError
from daskscope.records import Record, Records
from daskscope.session.base import Base, part

_TOKENS = ("key_id", "name", "kind", "user", "scopes", "created", "expires", "last_used", "revoked", "made_by")


class Tokens(Base):
    """Of a session: tokens."""

    def list_tokens(
        self, account: str | None = None, *, limit: int | None = None, workspace: str | None = None
    ) -> Records:
        """The account's tokens and sessions (`kind`), none of their secrets: all of them for an admin, else one's
        own. `user` is null for the token of a site, which `made_by` made; `last_used` is a day."""
        return self._list(self._asked(account, workspace, limit), "tokens", {}, limit, _TOKENS, size=PAGE)

    def create_token(
        self,
        name: str,
        scopes: Scope | Iterable[Scope] = "read",
        account: str | None = None,
        *,
        expires: str | float | timedelta | None = None,
        personal: bool | None = None,
        workspace: str | None = None,
    ) -> Record:
        """A new token: `token` is shown this once. `scopes` are of read, ingest, control, report and admin; `expires`
        is a time span like "90 days", or None until it is revoked; none outlives the token that asks.

        A `personal` one is of whoever asks, and good in each of their accounts; any other is of the site, in this
        account alone. None: of the site for an admin, else personal.
        """
        wanted = [scopes] if isinstance(scopes, str) else list(scopes)
        for scope in wanted:
            among("scopes", scope, get_args(Scope))
        body: dict[str, Any] = {"name": name, "scopes": wanted, "expires_in_s": seconds(expires, "expires", _EXPIRES)}
        if personal is not None:
            body["user"] = self._user() if personal else None
        return Record(self._connection.post(f"/{self._asked(account, workspace)}/tokens", body))

    def rotate_token(
        self,
        key_id: str,
        account: str | None = None,
        *,
        overlap: str | float | timedelta = "1 day",
        workspace: str | None = None,
    ) -> Record:
        """A new token like the one of this `key_id`, which ends after `overlap`: time to put the new one in its place.
        `token` is shown this once. Raises NotFound."""
        asked = self._asked(account, workspace)
        body = {"overlap_s": seconds(overlap, "overlap", _SPAN)}
        return Record(self._connection.post(f"/{asked}/tokens/{part(key_id)}/rotate", body))

    def revoke_token(self, key_id: str, account: str | None = None, *, workspace: str | None = None) -> Record:
        """Ends a token, by the `key_id` of the list: whoever sends it is not let in any more. Raises NotFound.

        A whole token in its place is its own proof: whoever found one can end it, and with it what was made of it.
        Raises NotLoggedIn for one that is good no more, or of another server.
        """
        if key_id.startswith(PREFIX):
            return Record(self._connection.give_back(key_id))
        asked = self._asked(account, workspace)
        return Record(self._connection.delete(f"/{asked}/tokens/{part(key_id)}"))

    def asks_to_sign_in(self, account: str | None = None, *, workspace: str | None = None) -> bool:
        """Whether the account's pages are for browsers that are signed in alone."""
        return not self._connection.answers_anybody(f"/{self._asked(account, workspace)}/clusters")

    def sign_in_link(self, page: str | None = None) -> Record:
        """A link that signs a browser in as whoever asks, once, and goes on to a `page` (its whole address), if one is
        given: `url`, and until when it may be opened (`expires`). What is signed in by it ends with the token."""
        made = self._connection.post("/sign-in-link", {}, {"url": str})
        pages = self._connection.source.pages
        after = f"&next={quote(page.removeprefix(f'{pages}/'), safe='')}" if page else ""
        return Record({**made, "url": f"{pages}/{made['url'].lstrip('/')}{after}"})

    def _user(self) -> str:
        """Who asks. Raises SettingsError for the token of a site."""
        user: object = self._connection.whoami().get("user")
        if not isinstance(user, str):
            raise SettingsError("personal", True, "False or None: the token that asks is of a site, and nobody's own")
        return user


PREFIX = "dks_"
"""What whole tokens begin with."""
_SPAN = "a time span like '1 day', a number of seconds, or a timedelta"
_EXPIRES = "a time span like '90 days', a number of seconds, a timedelta, or None for a token that does not expire"

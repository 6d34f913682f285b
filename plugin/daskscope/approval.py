"""Logging in without a password: this end asks, somebody who is signed in in a browser approves, this end gets tokens.

What is asked with is known to this process alone (`device_code`); what is shown and read aloud (`user_code`) lets
nobody have the tokens.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from daskscope import parsing
from daskscope.errors import NotFound, NotLoggedIn, PermissionDenied, ServerError, ServerUnreachable, SettingsError
from daskscope.login import Login
from daskscope.remote import Remote
from daskscope.replies import check_is_ours, told

LEAST_INTERVAL_S, MOST_INTERVAL_S = 1.0, 30.0
MOST_WAIT_S = 3600.0
"""Whatever a server says of how often it is to be asked, and for how long."""
_WANTS: Mapping[str, type] = {"device_code": str, "user_code": str, "url": str}
_OVER = re.compile(r"The token .*(was revoked|has expired|is gone)\b|The server does not know this token\b")
"""How a server says that a token is good no more."""
_GETS: Mapping[str, type] = {"token": str, "user": str, "account": str, "accounts": list}


@dataclass(frozen=True, slots=True)
class Request:
    """What a server was asked for, and where somebody may approve it."""

    device_code: str = field(repr=False)
    user_code: str
    url: str
    """The page, absolute."""
    interval_s: float
    """To be asked no more often."""
    expires_in_s: float


@dataclass(frozen=True, slots=True)
class Approved:
    """A login that a server knows."""

    login: Login
    roles: Mapping[str, str]
    """What its user is in which account; of a site's token, its one account to nothing."""
    expires: str | None = None
    """Until when its tokens are good (ISO 8601); None where nobody said."""

    def in_account(self, account: str | None) -> Login:
        """With another account than the one that was chosen. Raises NotFound."""
        if account is None or account in self.roles:
            return replace(self.login, account=account or self.login.account)
        whose = f"{self.login.user} is in" if self.login.user else "it is of"
        raise NotFound(f"No account {account} for this token: {whose} {', '.join(sorted(self.roles))}.")

    def words(self, account: str) -> str:
        """Who that is, and where."""
        other = sorted(name for name in self.roles if name != account)
        role = f" ({self.roles[account]})" if self.roles.get(account) else ""
        who = f"as {self.login.user}" if self.login.user else "with the token of a site"
        also = f", also in {', '.join(other)}" if other else ""
        until = f", until {self.expires.partition('T')[0]}" if self.expires else ""
        return f"{who}, in account {account}{role}{also}{until}"


class Approval:
    """Of one login at one server. Methods raise DaskscopeError."""

    def __init__(
        self,
        remote: Remote,
        data: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`data` is the user's data folder, for errors to name."""
        self._remote, self._data, self._monotonic, self._sleep = remote, data, monotonic, sleep

    def request(self, client: str) -> Request:
        """Ask; `client` is what the page says that asks."""
        found = self._post("/login", {"client": client}, _WANTS)
        return Request(
            found["device_code"],
            self._remote.clean(found["user_code"]),
            f"{self._remote.pages}/{self._remote.clean(found['url']).lstrip('/')}",
            _within(found.get("interval_s"), LEAST_INTERVAL_S, MOST_INTERVAL_S),
            _within(found.get("expires_in_s"), LEAST_INTERVAL_S, MOST_WAIT_S),
        )

    def wait(self, request: Request) -> Approved:
        """Until somebody has approved. A server that fails meanwhile is asked again. Raises PermissionDenied where
        somebody said no, NotLoggedIn where nobody said anything in time."""
        ends_at = self._monotonic() + request.expires_in_s
        trouble: Exception | None = None
        while self._monotonic() < ends_at:
            self._sleep(request.interval_s)
            try:
                found = self._post("/login/token", {"device_code": request.device_code}, {})
            except (ServerUnreachable, ServerError) as error:
                trouble = error
                continue
            except PermissionDenied as error:
                raise PermissionDenied("The login was denied in the browser: nothing was kept here.") from error
            except NotFound as error:
                raise _expired(request) from error
            trouble = None
            if found.get("status") != "pending":
                return self._approved(found)
        raise trouble or _expired(request)

    def _approved(self, found: dict[str, Any]) -> Approved:
        server = self._remote.server.url
        if any(not isinstance(found.get(name), kind) for name, kind in _GETS.items()):
            raise ServerError(f"{server} approved the login without saying whose it is: is it a daskscope server?")
        expires = self._remote.clean(found.get("expires")) or None
        return Approved(_login(self._remote, found, found["token"], found.get("ingest_token")), _roles(found), expires)

    def _post(self, path: str, body: Mapping[str, Any], needs: Mapping[str, type]) -> dict[str, Any]:
        return _answered(self._remote, self._data, "POST", path, body, needs)


def checked(remote: Remote, data: str) -> Approved:
    """The login that the token of `remote` is: for schedulers, too, where it may report. Raises DaskscopeError."""
    token = str(remote.server.token)
    found = _answered(remote, data, "GET", "/whoami", None, {"account": str})
    may: Any = found.get("scopes")
    is_for_schedulers = isinstance(may, list) and "ingest" in may
    login = _login(remote, found, token, token if is_for_schedulers else None)
    return Approved(replace(login, is_given=True), _roles(found))


def end(remote: Remote, data: str) -> str:
    """The token of `remote` is good no more, nor are those of its login; a sentence on what was ended.

    Raises DaskscopeError.
    """
    try:
        found = _answered(remote, data, "POST", "/logout", {}, {})
    except NotLoggedIn as error:
        if not _OVER.match(str(error)):  # a refusal for another reason tells nothing of the token
            raise
        return "Its tokens were good no more."
    return remote.clean(found.get("sentence"))


def _answered(
    remote: Remote, data: str, method: str, path: str, body: Mapping[str, Any] | None, needs: Mapping[str, type]
) -> dict[str, Any]:
    answer = remote.request(method, path, {}, body)
    check_is_ours(answer, remote)
    return told(answer, remote, data, needs)


def _login(remote: Remote, found: Mapping[str, Any], token: object, ingest_token: object) -> Login:
    """Raises ServerError for what no token or account can be."""
    try:
        return Login(
            server=remote.server.url,
            token=str(parsing.token("login.token", token)),
            ingest_token=parsing.token("login.ingest-token", ingest_token),
            account=str(parsing.account("login.account", found["account"])),
            user=remote.clean(found.get("user")) or None,
        )
    except SettingsError as error:
        raise ServerError(f"{remote.name} told a login that cannot be one: is it a daskscope server?") from error


def _roles(found: Mapping[str, Any]) -> dict[str, str]:
    """By account; a server that tells of none means the token's own."""
    said: Any = found.get("accounts")
    rows: list[Any] = said if isinstance(said, list) else []
    roles = {str(each.get("account")): str(each.get("role") or "") for each in rows if isinstance(each, dict)}
    return roles or {str(found["account"]): ""}


def _expired(request: Request) -> NotLoggedIn:
    return NotLoggedIn(
        f"Nobody approved {request.user_code} in time, or somebody else used it: run `daskscope login` again."
    )


def _within(value: object, least: float, most: float) -> float:
    """A figure of a server's, within bounds; the least for what is none."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > least:
        return least
    return float(min(value, most))

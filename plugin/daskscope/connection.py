"""One server, one account: authorised calls of the HTTP API, its pages and its errors."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

import httpx

from daskscope import settings
from daskscope.discovery import PORT, Server, find_server, is_loopback, rendezvous, shared_folder
from daskscope.errors import (
    BadRequest,
    DaskscopeError,
    Deleted,
    NotClosable,
    NotFound,
    NotLoggedIn,
    PermissionDenied,
    ServerError,
    ServerUnreachable,
    SettingsError,
)
from daskscope.foreign import one_line
from daskscope.records import Records

logger = logging.getLogger("daskscope")

PAGE, LARGE_PAGE = 100, 20_000
"""Records asked for at a time: large ones, and those of which a cluster has many. The server takes no more."""

MOST_SAID = 2_000
"""Characters of what a server said that stand in an error."""

_ERRORS: Mapping[int, type[DaskscopeError]] = {
    400: BadRequest,
    401: NotLoggedIn,
    403: PermissionDenied,
    404: NotFound,
    409: NotClosable,
    410: Deleted,
}
"""HTTP status to error; any other that is not 2xx is a ServerError."""


class Connection:
    """An HTTP client bound to one server and account; close it, or use it in `with`.

    Without an account it asks the server, once, whose the token is. Redirects are not followed, so that the token
    goes nowhere but to the server that the user named, and no cookie is kept.
    """

    def __init__(self, account: str | None = None) -> None:
        configured = settings.load()
        self._account = configured.but(account=account).account
        self._data = configured.data
        if (shared := shared_folder(configured.server)) is not None:
            name = shlex.quote(str(shared))
            raise SettingsError(
                "daskscope.server",
                configured.server,
                f"a server, for this is a folder: run `daskscope serve --data {name}` and name its address, or "
                f"`daskscope import {name}` where a server is",
            )
        server = find_server(configured)
        if server is None:
            raise ServerUnreachable(
                f"No server: daskscope.server is not set and no `daskscope serve` runs here "
                f"(looked for {rendezvous(configured.data, PORT)}). "
                "Start one with `daskscope serve`, or set daskscope.server to its address."
            )
        self.server: Server = server
        self._http = httpx.Client(
            base_url=server.url + "/api/v1",
            headers={"Authorization": f"Bearer {server.token}"} if server.token else {},
            timeout=httpx.Timeout(60, connect=5),
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            # A proxy is for the world outside: what is for this machine stays on it.
            trust_env=not is_loopback(server.url),
        )

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    @property
    def account(self) -> str:
        """The account that is asked about."""
        if self._account is None:
            self._account = str(self.get("/whoami", {})["account"])
        return self._account

    def get(self, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object at a path under `/api/v1`; query parameters that are None are left out."""
        return self._call("GET", path, params={key: value for key, value in query.items() if value is not None})

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object that answers a JSON object posted to a path under `/api/v1`."""
        return self._call("POST", path, json=dict(body))

    def _call(self, method: str, path: str, **asked: Any) -> dict[str, Any]:
        try:
            response = self._http.request(method, path, **asked)
        except httpx.TransportError as error:
            raise ServerUnreachable(
                f"No answer from {self.server.url} ({self._clean(str(error)) or type(error).__name__}). "
                "Is it running (`daskscope serve`), and is daskscope.server its address?"
            ) from error
        except httpx.RequestError as error:
            raise ServerError(
                f"{self.server.url} sent an answer that cannot be read: {self._clean(str(error))}."
            ) from error
        if not response.is_success:
            raise self._error(response)
        return self._object(response)

    def records(self, path: str, query: Mapping[str, Any], limit: int | None, columns: tuple[str, ...], *, page: str,
                size: int = PAGE) -> Records:  # fmt: skip
        """All records of a list under the account, page after page, or the first `limit` of them."""
        found = [record for answer in self.pages(path, query, limit, size) for record in answer["items"]]
        return Records(found, columns=columns, url=self.link(page, query))

    def link(self, page: str, query: Mapping[str, Any]) -> str:
        """The address of a page of the account."""
        link = f"{self.server.url}/{self.account}/{page}"
        shown = {key: value for key, value in query.items() if value is not None}
        return f"{link}?{urlencode(shown)}" if shown else link

    def pages(
        self, path: str, query: Mapping[str, Any], limit: int | None, size: int = PAGE
    ) -> Iterator[dict[str, Any]]:
        """The answers that hold a list under the account, `size` records each, to its end or with `limit` in all."""
        if limit is not None and limit < 1:
            raise SettingsError("limit", limit, "1 or more, or None for all")
        skipped: set[str] = set()
        cursor: str | None = None
        n = 0
        while limit is None or n < limit:
            wanted = size if limit is None else min(size, limit - n)
            answer = self.get(f"/{self.account}{path}", {**query, "limit": wanted, "cursor": cursor})
            yield answer
            n += len(answer["items"])
            skipped.update(answer.get("skipped") or ())
            before, cursor = cursor, answer.get("cursor")
            if cursor is None:
                break
            if cursor == before:
                raise ServerError(
                    f"{self.server.url} sent the same page of {path} twice: this is a fault of the server."
                )
        if skipped:
            names = self._clean(", ".join(sorted(map(str, skipped))))
            logger.warning("Records are missing: the server could not read %d files (%s).", len(skipped), names)

    def _object(self, response: httpx.Response) -> dict[str, Any]:
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ServerError(
                f"{self.server.url} answered HTTP {response.status_code} with something that is not the API's JSON: "
                "is it a daskscope server?"
            )
        found: dict[str, Any] = answer
        return found

    def _error(self, response: httpx.Response) -> DaskscopeError:
        status = response.status_code
        if response.is_redirect:
            target = self._clean(response.headers.get("Location", "?"))
            return ServerError(
                f"{self.server.url} redirects to {target}, which is not followed, for the token is not for it. "
                "If that is the server, set daskscope.server to it."
            )
        try:
            message = self._clean(self._object(response)["error"]["message"])
        except (DaskscopeError, KeyError, TypeError):
            message = ""
        if not message:
            message = f"{self.server.url} answered HTTP {status} {self._clean(response.reason_phrase)}."
        if status == 401:
            message += f" {self._where()}"
        return _ERRORS.get(status, ServerError)(message)

    def _clean(self, text: object) -> str:
        """What the network said, for a terminal."""
        return one_line(text, self.server.token, MOST_SAID)

    def _where(self) -> str:
        places = "daskscope.token in Dask's configuration, DASK_DASKSCOPE__TOKEN"
        if is_loopback(self.server.url):
            port = httpx.URL(self.server.url).port or 80
            places += f", {rendezvous(self._data, port)}"
        if self.server.token:
            return f"The token for {self.server.url} came from one of: {places}."
        return f"No token for {self.server.url} was found; looked at: {places}."

"""One server or lake: authorised calls of the HTTP API, its pages and its errors."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

from daskscope import direct, settings
from daskscope.arguments import TIMEOUT, Timeout, one_of, timeout_of
from daskscope.discovery import PORT, Server, find_server, rendezvous
from daskscope.errors import BadRequest, DaskscopeError, ServerError, ServerUnreachable, SettingsError
from daskscope.progress import Progress
from daskscope.remote import Remote
from daskscope.replies import html, told
from daskscope.source import Source

logger = logging.getLogger("daskscope")

PAGE, LONG_PAGE, LINES_PAGE, LARGE_PAGE = 100, 1000, 5000, 20_000
"""Records asked for at a time: large ones, those with long texts or lists of their own, log lines, and others of which
a cluster has many. Of the last three the server takes no more."""


Needs = Mapping[str, type]
"""Keys that an answer has, and of what type they are."""
NONE: Needs = {}


class Connection:
    """A server, or a lake in its place, and the account that is asked about unless a call names another.

    Without an account it asks, once, whose the token is.
    """

    def __init__(
        self,
        server: str | Path | None = None,
        token: str | None = None,
        account: str | None = None,
        keys: str | None = None,
        timeout: Timeout = TIMEOUT,
    ) -> None:
        self._asked_for = (server, token, account, keys, timeout)
        timeout_s = timeout_of(timeout)
        root = direct.root_of(server)
        configured = settings.load().but(server=None if root else server, token=token, account=account)
        self._account, self._data = configured.account, configured.data
        root = root or direct.root_of(configured.server, "daskscope.server")
        self._source: Source
        self._is_open = True
        if root is not None:
            self._source = direct.Lake(root, self._account, keys)
            return
        if keys is not None:
            raise SettingsError("keys", keys, "None with a server: it has the keys itself")
        found = find_server(configured)
        if found is None:
            raise ServerUnreachable(
                f"No server: daskscope.server is not set, nobody has logged in, and no `daskscope serve` runs here "
                f"(looked for {rendezvous(configured.data, PORT)}). "
                "Start one with `daskscope serve`, or set daskscope.server to its address."
            )
        self._account = found.account
        self._source = Remote(found, timeout_s)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def again(self) -> Connection:
        """Another one to the same, for what outlives the call that asked for it."""
        return Connection(*self._asked_for)

    def close(self) -> None:
        self._is_open = False
        self._source.close()

    def give_back(self, token: str) -> dict[str, Any]:
        """End a token, which is its own proof, and what came of it. Raises BadRequest for a lake."""
        if not isinstance(self.source, Remote):
            raise BadRequest(
                f"{self.name} is a lake without its server, and tokens are the server's: name its address."
            )
        server = Server(self.source.server.url, token, origin="given")
        with contextlib.closing(Remote(server, timeout_of(self._asked_for[4]))) as remote:
            return told(remote.request("POST", "/logout", {}, {}), remote, self._data, {"sentence": str})

    @property
    def name(self) -> str:
        """Whom it asks, also when it is closed."""
        return self._source.name

    @property
    def source(self) -> Source:
        """Raises DaskscopeError once it is closed."""
        if not self._is_open:
            raise DaskscopeError(
                f"This session with {self.name} has ended (by disconnect(), or with its `with`) and answers no more: "
                "daskscope.connect() makes another."
            )
        return self._source

    def account(self, account: str | None = None, workspace: str | None = None) -> str:
        """The account that is asked about. Raises SettingsError for two that differ, and for what is no name."""
        named = one_of(account, workspace)
        if named is not None:
            return str(settings.load().but(account=named).account)
        if self._account is None:
            self._account = str(self.get("/whoami", {}, {"account": str})["account"])
        return self._account

    def whoami(self) -> dict[str, Any]:
        """Whose the token is, in the account that is asked about where one was named."""
        return self.get("/whoami", {"account": self._account})

    def get(self, path: str, query: Mapping[str, Any], needs: Needs = NONE) -> dict[str, Any]:
        """The JSON object at a path under `/api/v1`; query parameters that are None are left out. Raises ServerError
        where it has not what it `needs`."""
        given = {key: str(value) for key, value in query.items() if value is not None}
        return self._call("GET", path, given, needs=needs)

    def post(self, path: str, body: Mapping[str, Any], needs: Needs = NONE) -> dict[str, Any]:
        """The JSON object that answers a JSON object posted to a path under `/api/v1`."""
        return self._call("POST", path, {}, body, needs)

    def put(self, path: str, body: Mapping[str, Any], needs: Needs = NONE) -> dict[str, Any]:
        """The JSON object that answers a JSON object put to a path under `/api/v1`."""
        return self._call("PUT", path, {}, body, needs)

    def delete(self, path: str) -> dict[str, Any]:
        """The JSON object that answers."""
        return self._call("DELETE", path, {})

    def html(self, path: str, query: Mapping[str, Any]) -> bytes:
        """The HTML at a path under `/api/v1`; query parameters that are None are left out."""
        given = {key: str(value) for key, value in query.items() if value is not None}
        return html(self.source.request("GET", path, given), self.source, self._data)

    def answers_anybody(self, path: str) -> bool:
        """Whether what is at a path under `/api/v1` may be read without a token."""
        if not isinstance(self.source, Remote):
            return True
        *_, timeout = self._asked_for
        with contextlib.closing(Remote(Server(self.source.server.url), timeout_of(timeout))) as nobody:
            return nobody.request("GET", path, {"limit": "1"}).status not in (401, 403)

    def link(self, account: str, page: str | None, query: Mapping[str, Any]) -> str | None:
        """The address of a page of the account; None where there are no pages, or none of this."""
        if self.source.pages is None or page is None:
            return None
        link = f"{self.source.pages}/{account}/{page}"
        shown = {key: value for key, value in query.items() if value is not None}
        return f"{link}?{urlencode(shown)}" if shown else link

    def pages(
        self, path: str, query: Mapping[str, Any], limit: int | None, size: int = PAGE, needs: Needs = NONE
    ) -> Iterator[dict[str, Any]]:
        """The answers that hold a list, `size` records each, to its end or with `limit` in all."""
        needs = {"items": list, **needs}
        skipped: set[str] = set()
        cursor: str | None = None
        n = 0
        with Progress(limit) as progress:
            while limit is None or n < limit:
                wanted = size if limit is None else min(size, limit - n)
                answer = self.get(path, {**query, "limit": wanted, "cursor": cursor}, needs)
                yield answer
                n += len(answer["items"])
                progress.told(n, answer.get("total") if isinstance(answer.get("total"), int) else None)
                skipped.update(answer.get("skipped") or ())
                before, cursor = cursor, answer.get("cursor")
                if cursor is None:
                    break
                if cursor == before:
                    raise ServerError(
                        f"{self.source.name} sent the same page of {path} twice: this is a fault of the server."
                    )
        if skipped:
            names = self.source.clean(", ".join(sorted(map(str, skipped))))
            logger.warning("Records are missing: the server could not read %d files (%s).", len(skipped), names)

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        needs: Needs = NONE,
    ) -> dict[str, Any]:
        return told(self.source.request(method, path, query, body), self.source, self._data, needs)

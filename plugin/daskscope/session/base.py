"""What all questions share: the connection, and how lists and single things come."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote

from daskscope.arguments import TIMEOUT, Cluster, Timeout, count
from daskscope.connection import LARGE_PAGE, Connection
from daskscope.records import Record, Records

PAGES = {"clusters": "analytics"}
"""Lists that have a page of their own."""


class Base:
    """Of a session: with one connection, to be closed."""

    def __init__(
        self,
        server: str | Path | None = None,
        token: str | None = None,
        account: str | None = None,
        *,
        keys: str | None = None,
        timeout: Timeout = TIMEOUT,
    ) -> None:
        self._connection = Connection(server, token, account, keys, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """Ends the session; it answers no more."""
        self._connection.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._connection.name}>"

    def whoami(self) -> Record:
        """Whose the token is: its `account`, `name` and `scopes`, its `user` (null for the token of a site), what they
        are in that account (`role`) and which `accounts` they are in; and `version` and `api` of the server. It is the
        account that the session was told, or the token's own. Raises NotFound for one that they are not in."""
        return Record(self._connection.whoami())

    def _asked(self, account: str | None, workspace: str | None, limit: int | None = None) -> str:
        """The account that is asked about; by then nothing else is wrong with the arguments. Raises SettingsError."""
        count("limit", limit)
        return self._connection.account(account, workspace)

    def _list(
        self,
        account: str,
        what: str,
        query: Mapping[str, Any],
        limit: int | None,
        columns: tuple[str, ...],
        *,
        page: str | None = None,
        size: int = LARGE_PAGE,
        note: str | None = None,
    ) -> Records:
        """All records of a list of the account, page after page, or the first `limit` of them; `note` names what beside
        the first page has a sentence on all of them."""
        answers = list(self._connection.pages(f"/{account}/{what}", query, limit, size))
        items = [record for answer in answers for record in answer["items"]]
        link = self._connection.link(account, page, {})
        return Records(items, columns=columns, url=link, total=total_of(answers), note=_sentence(answers, note))

    def _of_cluster(
        self,
        account: str,
        cluster: Cluster,
        what: str,
        query: Mapping[str, Any],
        limit: int | None,
        columns: tuple[str, ...],
        *,
        size: int = LARGE_PAGE,
    ) -> Records:
        """A list of one cluster."""
        place = quote(str(cluster), safe="")
        page = f"analytics/clusters/{place}"
        return self._list(account, f"clusters/{place}/{what}", query, limit, columns, page=page, size=size)


def total_of(answers: list[dict[str, Any]]) -> int | None:
    """How many match, where the first page says so."""
    found = answers[0].get("total") if answers else None
    return found if isinstance(found, int) else None


def _sentence(answers: list[dict[str, Any]], name: str | None) -> str | None:
    """As the first page says it; None where it does not, as an older server."""
    found = answers[0].get(name) if answers and name else None
    said = cast("dict[str, Any]", found).get("sentence") if isinstance(found, dict) else None
    return said if isinstance(said, str) else None


def part(name: Cluster) -> str:
    """One part of a path, whatever is in it."""
    return quote(str(name), safe="")

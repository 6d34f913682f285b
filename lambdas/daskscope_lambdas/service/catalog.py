"""Finding clusters: by whatever a person has of one, and as lists that are filtered, sorted and paged."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from daskscope.errors import NotFound
from daskscope.wire import LATEST_MS
from daskscope_lambdas.ports import Clock, ClusterRow, Clusters, Missing
from daskscope_lambdas.service.catalog_rows import cost_record
from daskscope_lambdas.service.records import MISSED, Status, name_of, status
from daskscope_query.given import ask_given

SORTS = ("id", "name", "user", "created", "last_seen", "duration", "peak_workers", "peak_memory", "n_tasks",
         "n_tasks_erred", "thread_seconds", "cost", "idle")  # fmt: skip
"""Fields of the record that lists sort by."""
LATEST_START = "-created"

_NUMBER = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """None filters nothing."""

    since: datetime | None = None
    """Heard of then or later."""
    until: datetime | None = None
    """First heard of then or earlier."""
    user: str | None = None
    status: Status | None = None
    kind: str | None = None
    name: str | None = None
    tag: str | None = None
    """A key, or `key=value`, whichever of its `=` parts the two."""
    part: str | None = None
    """Of the name, user, host, kind or a tag, whatever its case; or the number."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A cluster of a list. `cursor` continues the list behind it."""

    row: ClusterRow
    cost: Mapping[str, Any]
    """The `cost` of its record."""
    cursor: str


@dataclass(frozen=True, slots=True)
class Page:
    """`cursor` continues the list, None at its end. `total`: how many match, on all pages together."""

    items: Sequence[Listed]
    cursor: str | None
    total: int
    as_of: datetime | None
    """Receipt of the latest message that was looked at."""


class Catalog:
    """`table` gives the catalog's rows of an account, as they are at this moment (see LiveCatalog)."""

    def __init__(self, clusters: Clusters, clock: Clock, table: Callable[[str], pa.Table]) -> None:
        self._clusters, self._clock, self._table = clusters, clock, table

    def find(self, account: str, reference: str) -> ClusterRow:
        """By number, by Dask's `Scheduler-…` or by UUID, with or without dashes, or by a name that no other has.

        Raises NotFound, which names the closest one.
        """
        number = int(reference) if _NUMBER.fullmatch(reference) else None
        uuid = None if number is not None else _uuid_in(reference)
        try:
            if number is not None:
                return self._clusters.get(account, number)
            if uuid is not None:
                return self._clusters.find(account, uuid)
        except Missing as error:
            if uuid is not None:
                raise NotFound(f"No cluster {reference} in account {account}.") from error
        return self._by_name(account, reference, number)

    def _by_name(self, account: str, reference: str, number: int | None) -> ClusterRow:
        answer = ask_given("closest_clusters", {"catalog": self._table(account)}, name=reference, number=number)
        found = answer.to_pylist()
        rows = self._clusters.get_many(account, [each["cluster"] for each in found])
        namesakes = found[0]["n_exact"] if found else 0
        if namesakes == 1 and rows:
            return rows[0]
        if namesakes:
            named = ", ".join(f"{row.id} ({self._status(row)})" for row in rows)
            more = f" and {namesakes - len(rows)} more" if namesakes > len(rows) else ""
            raise NotFound(
                f"{namesakes} clusters of account {account} are named {reference}: {named}{more}. Give a number."
            )
        close = f" Closest: {rows[0].id} {name_of(rows[0])} ({self._status(rows[0])})." if rows else ""
        raise NotFound(f"No cluster {reference} in account {account}.{close} `daskscope clusters` lists them.")

    def _status(self, row: ClusterRow) -> Status:
        return status(row, self._clock.now())

    def page(
        self, account: str, wanted: Filter, limit: int, cursor: str | None = None, sort: str = LATEST_START
    ) -> Page:
        """At most `limit` clusters; `sort` is one of SORTS, with a leading `-` for the greatest first.

        The pages of a list count time from when the first one was asked for, and each goes on behind the last cluster
        of the one before: what is enrolled meanwhile moves no other. Raises ValueError for a cursor of another list.
        """
        at = _Position(sort, self._clock.now()) if cursor is None else _Position.of(cursor, sort)
        answer = ask_given(
            "clusters",
            {"catalog": self._table(account)},
            sort=sort.removeprefix("-"),
            descending=sort.startswith("-"),
            limit=limit + 1,  # one more than asked for, to know whether a page follows
            now_s=at.asked_at,
            missed=MISSED,
            since_s=wanted.since.timestamp() if wanted.since else None,
            until_s=wanted.until.timestamp() if wanted.until else None,
            user=wanted.user,
            status=wanted.status,
            kind=wanted.kind,
            name=wanted.name,
            tag=wanted.tag,
            part=wanted.part,
            after_id=at.id,
            after_text=at.key if isinstance(at.key, str) else None,
            after_number=None if isinstance(at.key, str) else at.key,
        )
        found = answer.to_pylist()
        total, as_of = found[0]["total"], found[0]["as_of"]
        page = [each for each in found if each["cluster"] is not None]
        cursors = {each["cluster"]: at.behind(each).cursor() for each in page[:limit]}
        costs = {each["cluster"]: cost_record(each) for each in page}
        # One that was dropped from the registry since the catalog was made is not there any more.
        rows = self._clusters.get_many(account, list(cursors))
        items = [Listed(row, costs[row.uuid], cursors[row.uuid]) for row in rows]
        return Page(items, cursors[page[limit - 1]["cluster"]] if len(page) > limit else None, total, as_of)


class _Position(msgspec.Struct, frozen=True, array_like=True):
    """Behind which cluster a page begins, by what its list is sorted by; and when the first one was asked for."""

    sort: str
    asked_at: Annotated[float, msgspec.Meta(ge=0, le=LATEST_MS / 1e3)]
    id: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)] | None = None
    key: str | float | None = None

    def behind(self, found: Mapping[str, Any]) -> _Position:
        key = found["number_key"] if found["text_key"] is None else found["text_key"]
        return _Position(self.sort, self.asked_at, found["cluster_id"], key)

    def cursor(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def of(cls, cursor: str, sort: str) -> _Position:
        """Raises ValueError."""
        with suppress(ValueError, msgspec.DecodeError):
            found = _POSITION.decode(base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True))
            if found.sort == sort and found.id is not None:
                return found
        raise ValueError(f"{cursor!r} is no cursor of this list: take the one that came with the page before.")


_POSITION = msgspec.json.Decoder(_Position)


def uuid_of(reference: str) -> str:
    """The 32 hex digits in a `Scheduler-…` id or a UUID. Raises NotFound for anything else."""
    found = _uuid_in(reference)
    if found is None:
        raise NotFound(f"{reference!r} names no cluster: give its number, its scheduler's id or the UUID in it.")
    return found


def _uuid_in(reference: str) -> str | None:
    text = reference.removeprefix("Scheduler-")
    if len(text) in (32, 36):
        with suppress(ValueError):
            return uuid.UUID(text).hex
    return None

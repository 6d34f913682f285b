"""How questions go to the lake: by the boundary as it is, over a cluster's days, and again when files have moved."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from daskscope_lambdas.ports import ClusterRow, Deletions, Seals
from daskscope_lambdas.service.exclusions import excluding
from daskscope_query import layout
from daskscope_query.lake import Answer, Lake, MovedError
from daskscope_query.tables import CATALOG, SAMPLES

Record = dict[str, Any]
Days = tuple[date, date]

UNLISTED = {"catalog": CATALOG.schema.empty_table()}
"""Given where a question that tells clusters apart by their users is asked about a single one."""

_EPOCH = date(1970, 1, 1)
_AT_ONCE_S = 60.0
"""Of two functions that take a cluster's first messages at once, the later one may give it its number."""
TRIES = 4
"""Open files may be merged or sealed while a question is asked; each time it is asked anew."""


@dataclass(frozen=True, slots=True)
class Found:
    """`skipped`: keys of files that could not be read; `as_of`: receipt of the latest message that the lake had;
    `until`: what had come by then was looked at (see Asker.at). `more` stands beside the rows of a first page."""

    rows: list[Record]
    skipped: list[str]
    as_of: datetime | None
    until: datetime | None = None
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def part(self, limit: int, offset: int) -> Found:
        """The same with `limit` of the rows, from `offset` on."""
        return replace(self, rows=self.rows[offset : offset + limit])


def found_in(rows: list[Record], *answers: Answer) -> Found:
    """`answers`: what the rows were made of, the one that decides on their age first."""
    skipped = sorted({key for answer in answers for key in answer.skipped})
    return Found(rows, skipped, answers[0].as_of, answers[0].until)


class Asker:
    """Questions to the lake at `lake_root`. Each opens the lake anew, so that it sees the boundary as it is, and
    nothing of what was deleted."""

    def __init__(self, lake_root: str, seals: Seals, deletions: Deletions, until: datetime | None = None) -> None:
        self._root, self._seals, self._deletions, self._until = lake_root, seals, deletions, until

    def at(self, until: datetime | None) -> Asker:
        """One that leaves out what the server received later: a list must not move under its reader."""
        return Asker(self._root, self._seals, self._deletions, until)

    def ask(self, query: str, account: str, days: Days, **params: Any) -> Answer:
        for _ in range(TRIES - 1):
            with suppress(MovedError):
                return self._ask(query, account, days, params)
        return self._ask(query, account, days, params)

    def _ask(self, query: str, account: str, days: Days, params: Mapping[str, Any]) -> Answer:
        without = excluding(self._deletions.pending(account))
        lake = Lake(self._root, self._seals.boundary(), without=without)
        return lake.ask(query, account=account, days=days, received_until=self._until, **params)

    def ask_of(self, row: ClusterRow, query: str, **params: Any) -> Answer:
        """About one cluster, over the arrival days of its messages; the lake knows where rows stand that came late."""
        return self.ask(query, row.account, days_of(row), cluster=row.uuid, **params)

    def gone_of(self, row: ClusterRow) -> set[date]:
        """Days of the cluster of which the account keeps no samples any more."""
        return Lake(self._root, self._seals.boundary()).gone_days(SAMPLES.name, row.account, *days_of(row))


def days_of(row: ClusterRow) -> Days:
    """Arrival days of a cluster's messages."""
    return layout.day_of(row.first_received_at - _AT_ONCE_S), layout.day_of(row.last_received_at)


def days_since(since: datetime | None, now: float) -> Days:
    """Arrival days of what happened since then: nothing arrives before it happened. `now`: epoch seconds."""
    first, today = (since.date() if since else _EPOCH), layout.day_of(now)
    return first, max(first, today)


def numbered(boot: str, no: int | None) -> str | None:
    """Numbers start anew in each boot of the plugin, so an id is both."""
    return None if no is None else f"{boot}-{no}"


def scheduler_id(cluster: str, identity: Mapping[str, Any]) -> str:
    return identity.get("scheduler_id") or f"Scheduler-{uuid.UUID(cluster)}"


def seconds(action_us: Mapping[str, int]) -> dict[str, float]:
    """Never below 0: Dask counts from the workers' clocks, and these may be set back."""
    return {action: max(us, 0) / 1e6 for action, us in action_us.items()}

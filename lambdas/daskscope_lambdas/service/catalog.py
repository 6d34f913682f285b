"""Finding clusters in the registry: by whatever a person has of a cluster, and by filters."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from daskscope.errors import NotFound
from daskscope_lambdas.ports import Clock, ClusterPage, ClusterRow, Clusters, Missing
from daskscope_lambdas.service.records import Status, status

ROUNDS = 50
"""Pages of the registry that one filtered page may look through; the rest comes with the cursor."""

_NUMBER = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """`since_s`: only clusters heard of in the last so many seconds. None filters nothing."""

    since_s: float | None = None
    user: str | None = None
    status: Status | None = None

    def takes(self, row: ClusterRow, now: float) -> bool:
        return self.user in (None, row.identity.get("user")) and self.status in (None, status(row, now))


class Catalog:
    def __init__(self, clusters: Clusters, clock: Clock) -> None:
        self._clusters, self._clock = clusters, clock

    def find(self, account: str, reference: str) -> ClusterRow:
        """By number, by Dask's `Scheduler-…` or by UUID, with or without dashes. Raises NotFound."""
        try:
            if _NUMBER.fullmatch(reference):
                return self._clusters.get(account, int(reference))
            return self._clusters.find(account, uuid_of(reference))
        except Missing as error:
            raise NotFound(f"No cluster {reference} in account {account}.") from error

    def page(self, account: str, wanted: Filter, limit: int, cursor: str | None) -> ClusterPage:
        """At most `limit` clusters, latest start first; a page may be short although a cursor follows.

        Raises ValueError for a cursor that is not from the page before.
        """
        now = self._clock.now()
        since = None if wanted.since_s is None else now - wanted.since_s
        found: list[ClusterRow] = []
        for _ in range(ROUNDS):
            page = self._clusters.page(account, since, limit - len(found), cursor)
            found += [row for row in page.rows if wanted.takes(row, now)]
            cursor = page.cursor
            if cursor is None or len(found) == limit:
                break
        return ClusterPage(found, cursor)


def uuid_of(reference: str) -> str:
    """The 32 hex digits in a `Scheduler-…` id or a UUID. Raises NotFound for anything else."""
    text = reference.removeprefix("Scheduler-")
    try:
        if len(text) not in (32, 36):
            raise ValueError(text)
        return uuid.UUID(text).hex
    except ValueError as error:
        raise NotFound(
            f"{reference!r} names no cluster: give its number, its scheduler's id or the UUID in it."
        ) from error

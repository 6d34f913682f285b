"""What the lake and the vault keep of one cluster, put together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.answers import Depth
from daskscope_lambdas.service.computations import Computations
from daskscope_lambdas.service.queries import Queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """What the page of a cluster shows. `skipped` and `as_of` over all of it, `as_of` the oldest of them."""

    computations: list[dict[str, Any]]
    prefixes: list[dict[str, Any]]
    exceptions: list[dict[str, Any]]
    kinds: list[dict[str, Any]]
    events: list[dict[str, Any]]
    workers: list[dict[str, Any]]
    samples: list[dict[str, Any]]
    skipped: list[str]
    as_of: datetime | None


class DepthReader:
    def __init__(self, queries: Queries, computations: Computations) -> None:
        self._queries, self._computations = queries, computations

    def for_answers(self, row: ClusterRow) -> Depth:
        return Depth(self._computations.prefixes(row).rows, self._queries.exception_kinds(row).rows)

    def everything(self, row: ClusterRow, computations: tuple[int, int], limit: int) -> Everything:
        """For the page: `computations` is their limit and offset, `limit` that of exceptions and of events."""
        ask = self._queries
        parts = {
            "computations": self._computations.of_cluster(row, *computations),
            "prefixes": self._computations.prefixes(row),
            "exceptions": ask.exceptions(row, limit, 0),
            "kinds": ask.exception_kinds(row),
            "events": ask.events(row, limit, 0),
            "workers": ask.workers(row),
            "samples": ask.samples(row),
        }
        skipped = sorted({name for part in parts.values() for name in part.skipped})
        as_of = min((part.as_of for part in parts.values() if part.as_of), default=None)
        return Everything(**{name: list(part.rows) for name, part in parts.items()}, skipped=skipped, as_of=as_of)

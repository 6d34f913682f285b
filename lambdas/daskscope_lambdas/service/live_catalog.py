"""The catalog as it is this moment: the newest file, with the registry's rows in place of those that have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from daskscope_lambdas.ports import Clock, ClusterRow, Clusters, Deletions
from daskscope_lambdas.service.catalog_files import CatalogFile, CatalogFiles
from daskscope_lambdas.service.catalog_rows import (
    COSTS,
    LISTED,
    costs_since,
    is_newer,
    registry_columns,
    row_as_json,
)
from daskscope_lambdas.service.exclusions import excluding
from daskscope_lambdas.service.prices import Prices
from daskscope_lambdas.service.world import World
from daskscope_query.exclusion import Exclusion
from daskscope_query.tables import CATALOG, MOMENT

UNDER_WAY_S = 120.0
"""A message is stamped, and in the registry so much later at most: no function that takes one may run for longer."""
ASLEEP_S = 7 * 86_400.0
"""One that has been silent for longer and closes at once when it is back is seen when all are looked at again."""


_TOLD = ("cluster", "last_received_at", "boot", "phase")
_PRICED = ("cluster", "thread_us", *COSTS)


class LiveCatalog:
    """Ports and the lake's catalog only: no table of the lake is read. `prices` gives those of an account."""

    def __init__(
        self,
        files: CatalogFiles,
        clusters: Clusters,
        deletions: Deletions,
        clock: Clock,
        prices: Callable[[str], Prices],
    ) -> None:
        self._files, self._clusters, self._deletions, self._clock = files, clusters, deletions, clock
        self._prices = prices

    @classmethod
    def over(cls, world: World, prices: Callable[[str], Prices]) -> LiveCatalog:
        return cls(CatalogFiles(world.objects), world.clusters, world.deletions, world.clock, prices)

    def table(self, account: str, columns: Sequence[str] = LISTED) -> pa.Table:
        """The account's clusters, nothing of what was deleted; `columns` are among LISTED, or `machines` or `row`.

        What a cluster cost is what the file says, or for one that was heard of since, what its machines cost if their
        time has grown as that of its threads; of one that is not in it yet an estimate.
        """
        wanted = tuple(dict.fromkeys([*LISTED, *columns]))
        found = self._files.newest(account, wanted)
        if found is None:
            known, changed = _no_rows(wanted), list(self._clusters.changed(account, 0.0))
        else:
            known, changed = found.rows, list(changed_since(self._clusters, account, found))
        without = excluding(self._deletions.pending(account)).get(account, Exclusion())
        before = by_cluster(known.select(list(_TOLD)), changed)
        fresh = [row for row in changed if row.uuid not in before or is_newer(row, before[row.uuid])]
        rows = self._rows(account, fresh, self._machines(account, fresh, before), wanted)
        return hiding(pa.concat_tables([leaving_out(known, [row.uuid for row in fresh]), rows]), without)

    def _machines(
        self, account: str, fresh: Sequence[ClusterRow], before: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Mapping[str, Any]]:
        """What the file knows of the machines of these: it is read for that only where one of them is in it."""
        known = [row for row in fresh if row.uuid in before]
        found = self._files.newest(account, _PRICED) if known else None
        return by_cluster(found.rows, known) if found else {}

    def _rows(
        self, account: str, fresh: Sequence[ClusterRow], before: Mapping[str, Mapping[str, Any]], columns: Sequence[str]
    ) -> pa.Table:
        prices = self._prices(account) if fresh else None
        rows: list[dict[str, Any]] = []
        for row in fresh:
            values, old = registry_columns(row), before.get(row.uuid)
            if prices is not None:
                values |= costs_since(row, old, prices)
            if "row" in columns:
                values["row"] = row_as_json(row)
            rows.append(values)
        return pa.Table.from_pylist(rows, pa.schema([CATALOG.schema.field(name) for name in columns]))


def changed_since(clusters: Clusters, account: str, known: CatalogFile) -> Iterator[ClusterRow]:
    """The registry's rows that may be newer than those of the file."""
    awake = pa.scalar(datetime.fromtimestamp(max(known.as_of - ASLEEP_S, 0.0), UTC), MOMENT)
    running = known.rows.filter((pc.field("phase") == "running") & (pc.field("last_received_at") >= awake))
    last_id = max(known.rows.column("cluster_id").to_pylist(), default=0)
    return clusters.changed(account, known.as_of - UNDER_WAY_S, last_id, running.column("cluster").to_pylist())


def by_cluster(rows: pa.Table, clusters: Sequence[ClusterRow]) -> dict[str, Mapping[str, Any]]:
    """Rows of these clusters as dicts."""
    uuids = pa.array([row.uuid for row in clusters], pa.string())
    found = rows.filter(pc.field("cluster").isin(uuids)) if clusters else rows.slice(0, 0)
    return {row["cluster"]: row for row in found.to_pylist()}


def leaving_out(rows: pa.Table, uuids: Sequence[str]) -> pa.Table:
    return rows.filter(~pc.field("cluster").isin(pa.array(uuids, pa.string()))) if uuids else rows


def hiding(rows: pa.Table, without: Exclusion) -> pa.Table:
    """Without what was deleted: clusters, and of an account all that came before."""
    rows = leaving_out(rows, sorted(without.clusters))
    if without.until is not None:
        rows = rows.filter(pc.field("first_received_at") > pa.scalar(without.until, MOMENT))
    return rows


def _no_rows(columns: Sequence[str]) -> pa.Table:
    return CATALOG.schema.empty_table().select(list(columns))

"""The catalog is made: of the file before, and of what the registry and the lake have told since.

Anew from all that the registry has once a day, and where there is no file that can be read or the prices are others:
so goes what was dropped, and comes what no store tells of who had ended (see ports.Clusters.changed). What was deleted
is left out at once. Two runs at a time make two whole files, of which the newer counts. What a process said of itself
may be so odd that nothing can be made of it: then that cluster stays as it was, and the log says so.

The lake is a moment behind the registry. So a cluster's machines are asked for again while it reports, and for the last
time when it has been silent for LAG_S; meanwhile its machines' time grows with its thread time, and its cost with that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from daskscope_lambdas.ports import ClusterRow, StoreError
from daskscope_lambdas.service.catalog_files import CatalogFile, CatalogFiles
from daskscope_lambdas.service.catalog_rows import (
    COSTS,
    LISTED,
    cost_columns,
    costs_since,
    registry_columns,
    row_as_json,
)
from daskscope_lambdas.service.cost import priced
from daskscope_lambdas.service.exclusions import excluding
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.live_catalog import UNDER_WAY_S, by_cluster, changed_since, hiding, leaving_out
from daskscope_lambdas.service.price_store import PriceReader
from daskscope_lambdas.service.prices import Prices
from daskscope_lambdas.service.repricing import is_priced_otherwise
from daskscope_lambdas.service.usage import Usage, UsageReader
from daskscope_lambdas.service.world import World
from daskscope_query import layout
from daskscope_query.exclusion import Exclusion
from daskscope_query.lake import Lake, MovedError
from daskscope_query.tables import CATALOG, MOMENT

logger = logging.getLogger("daskscope.catalog")

LAG_S = 600.0
"""The lake has every message that is not stuck so long after it was received."""
AGAIN_S = 300.0
"""From one look at the machines of a cluster that reports to the next."""
ASKED_A_RUN = 2000
"""Clusters whose machines a run asks the lake for, those first that wait longest; the others are estimates until a
later one has come to them. Each account has its share, one at least; what one leaves the next may take."""
REST_S_A_CLUSTER = 0.01
"""A catalog of 20,000 is made every 200 s at most: what has changed since is looked up by whoever asks."""
_TOGETHER = 500

_NEVER = datetime.fromtimestamp(0, UTC)
_KEPT = ("cluster", "thread_us", *COSTS)


class Cataloguer:
    """Makes the catalogs of the lake at `world.lake_root`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._files = CatalogFiles(world.objects)
        self._usage = UsageReader(Asker(world.lake_root, world.seals, world.deletions))
        self._prices = PriceReader(world.objects, world.clock)
        self._left = 0
        """Clusters of whose machines the account at hand may still ask."""
        self._trouble: Exception | None = None

    def run(self) -> int:
        """How many catalogs were made. What fails with one account keeps no other from its turn; the first failure is
        raised at the end.
        """
        made, unasked = 0, ASKED_A_RUN
        self._trouble = None
        accounts = sorted(self._accounts())
        for n_before, account in enumerate(accounts):
            share = self._left = max(unasked // (len(accounts) - n_before), 1)
            try:
                made += self._make(account)
            except MovedError as error:
                logger.info("The catalog of account %s waits for the next run: %s", account, error)
            except StoreError as error:
                logger.warning("The catalog of account %s waits for the next run, a store failed: %s", account, error)
                self._trouble = self._trouble or error
            except Exception as error:
                logger.exception("The catalog of account %s waits for the next run.", account)
                self._trouble = self._trouble or error
            unasked -= share - self._left
        if self._trouble:
            raise self._trouble
        return made

    def _accounts(self) -> set[str]:
        sealed = Lake(
            self._world.lake_root, None
        ).accounts()  # Those that the registry does not name may be among them.
        return self._world.clusters.accounts() | self._files.accounts() | sealed

    def _make(self, account: str) -> bool:
        now, prices = self._world.clock.now(), self._prices.of(account)
        without = excluding(self._world.deletions.pending(account)).get(account, Exclusion())
        known = self._newest(account, now)
        if known is None or layout.day_of(known.as_of) != layout.day_of(now) or is_priced_otherwise(known.rows, prices):
            after = self._table(account, self._world.clusters.changed(account, 0.0), self._whole(account), now, prices)
            return self._keep(account, hiding(after, without), now)
        hidden = hiding(known.rows, without).num_rows < known.rows.num_rows
        if not hidden and known.counts and now - known.as_of < REST_S_A_CLUSTER * known.rows.num_rows:
            rows = []
        else:
            rows = _longest_waiting_first(self._news(account, known, now), known)
        if rows or hidden or not known.counts:
            before = self._whole(account)
            made = self._table(account, rows, before, now, prices)
            kept = leaving_out(before, made.column("cluster").to_pylist())
            after = hiding(pa.concat_tables([kept, made]), without).sort_by("cluster_id")
            if not known.counts or not after.equals(before):
                return self._keep(account, after, now)
        self._files.sweep(account, now)
        return False

    def _newest(self, account: str, now: float) -> CatalogFile | None:
        found = self._files.newest(account, LISTED)
        if found is None or found.as_of <= now + UNDER_WAY_S:
            return found
        # The clock was set back: until it is that late again, nothing would count but this.
        self._files.clear(account)
        return None

    def _keep(self, account: str, rows: pa.Table, now: float) -> bool:
        """False if there is nothing to be kept."""
        if not rows.num_rows:
            self._files.clear(account)
            return False
        self._files.put(account, now, rows)
        self._files.sweep(account, now)
        return True

    def _whole(self, account: str) -> pa.Table:
        found = self._files.newest(account, CATALOG.schema.names)
        return found.rows if found else CATALOG.schema.empty_table()

    def _news(self, account: str, known: CatalogFile, now: float) -> Iterator[ClusterRow]:
        """Who has changed, and of whom the lake has more to tell."""
        told: set[str] = set()
        for row in changed_since(self._world.clusters, account, known):
            told.add(row.uuid)
            yield row
        behind = (pc.field("usage_at") - pc.field("last_received_at")) < _duration(LAG_S)
        looked_at = pa.scalar(datetime.fromtimestamp(now - AGAIN_S, UTC), MOMENT)
        due = known.rows.filter(pc.field("usage_at").is_null() | (behind & (pc.field("usage_at") <= looked_at)))
        asked_at = _asked_at(due)
        newest_first = list(asked_at)[::-1]
        uuids = [uuid for uuid in sorted(newest_first, key=asked_at.__getitem__) if uuid not in told]
        yield from self._world.clusters.get_many(account, uuids[: self._left])

    def _table(
        self, account: str, rows: Iterable[ClusterRow], before: pa.Table, now: float, prices: Prices
    ) -> pa.Table:
        """These as rows of the catalog, by number; a slice at a time, for the registry's take more memory."""
        made = [self._rows(account, some, before, now, prices) for some in _batched(rows)]
        return pa.concat_tables([CATALOG.schema.empty_table(), *made]).sort_by("cluster_id")

    def _rows(self, account: str, rows: Sequence[ClusterRow], before: pa.Table, now: float, prices: Prices) -> pa.Table:
        known = by_cluster(before.select(list(_KEPT)), rows)
        due = [row for row in rows if _is_due(row, known.get(row.uuid), now)][: self._left]
        self._left -= len(due)
        asked = {row.uuid for row in due}
        found = self._used(account, due)
        if found is None:
            asked, found = set[str](), dict[str, Usage]()

        def made(row: ClusterRow) -> dict[str, Any]:
            values, old = registry_columns(row), known.get(row.uuid)
            values["row"] = row_as_json(row)
            if row.uuid in asked:
                usage = found.get(row.uuid)
                return values | cost_columns(priced(row, usage, prices), usage, now, prices.digest)
            return values | costs_since(row, old, prices)

        try:
            return _as_table([made(row) for row in rows])
        except Exception:  # noqa: BLE001 - told of the cluster that it is about
            return pa.concat_tables([CATALOG.schema.empty_table(), *self._one_by_one(rows, made)])

    def _used(self, account: str, rows: Sequence[ClusterRow]) -> dict[str, Usage] | None:
        """None if the lake cannot tell: what these cost is an estimate then, and in every list."""
        try:
            return self._usage.of(account, rows) if rows else {}
        except (MovedError, StoreError):
            raise
        except Exception as error:
            logger.exception("The lake does not tell what clusters of account %s had of machines.", account)
            self._trouble = self._trouble or error
            return None

    def _one_by_one(
        self, rows: Sequence[ClusterRow], made: Callable[[ClusterRow], dict[str, Any]]
    ) -> Iterator[pa.Table]:
        """Those of which a row can be made."""
        for row in rows:
            try:
                yield _as_table([made(row)])
            except Exception:
                logger.exception("Cluster %d of account %s stays in its catalog as it was.", row.id, row.account)


def _as_table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, CATALOG.schema)


def _asked_at(rows: pa.Table) -> dict[str, datetime]:
    """By cluster, when the lake was asked for its machines."""
    asked: list[datetime | None] = rows.column("usage_at").to_pylist()
    return {uuid: at or _NEVER for uuid, at in zip(rows.column("cluster").to_pylist(), asked, strict=True)}


def _longest_waiting_first(rows: Iterable[ClusterRow], known: CatalogFile) -> list[ClusterRow]:
    asked_at = _asked_at(known.rows)
    return sorted(rows, key=lambda row: asked_at.get(row.uuid, _NEVER))


def _is_due(row: ClusterRow, old: Mapping[str, Any] | None, now: float) -> bool:
    """Whether the lake is to be asked for the cluster's machines: it has more of them, or may have."""
    if old is None or old["usage_at"] is None:
        return True
    at = old["usage_at"].timestamp()
    if at >= row.last_received_at + LAG_S:
        return False
    return now - at >= AGAIN_S or (row.phase == "closed" and at < row.last_received_at)


def _duration(seconds: float) -> pa.Scalar[Any]:
    return pa.scalar(timedelta(seconds=seconds), pa.duration("ms"))


def _batched(rows: Iterable[ClusterRow]) -> Iterator[list[ClusterRow]]:
    every = iter(rows)
    while some := list(islice(every, _TOGETHER)):
        yield some

"""Clusters, out of the newest catalog: as the registry knew them when that was made."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from daskscope_lambdas.adapters.arguments import check_limit
from daskscope_lambdas.adapters.cursors import HIGHEST, cursor_at, position
from daskscope_lambdas.adapters.direct.catalog import Found, NewestCatalog
from daskscope_lambdas.adapters.direct.mapping import refuse
from daskscope_lambdas.ports import ClusterPage, ClusterRow, Missing
from daskscope_query.tables import MOMENT


class CatalogClusters:
    """`row_of`: what makes a row of the catalog's JSON. All rows are of one account."""

    enrol = beat = ask_close = retire = drop = forget = forget_numbers = staticmethod(refuse)

    def __init__(self, catalog: NewestCatalog, row_of: Callable[[str], ClusterRow]) -> None:
        self._catalog, self._row_of = catalog, row_of
        self._indexed: tuple[Found, dict[str, int], dict[int, int]] | None = None
        """Of a catalog: where each UUID and each number stands."""

    def get(self, account: str, id: int) -> ClusterRow:
        found, _, by_id = self._index()
        return self._known(found, account, by_id.get(id), id)

    def find(self, account: str, uuid: str) -> ClusterRow:
        found, by_uuid, _ = self._index()
        return self._known(found, account, by_uuid.get(uuid), uuid)

    def get_many(self, account: str, uuids: Sequence[str]) -> list[ClusterRow]:
        found, by_uuid, _ = self._index()
        rows = [self._row(found, by_uuid[uuid]) for uuid in uuids if uuid in by_uuid]
        return [row for row in rows if row.account == account]

    def changed(
        self,
        account: str,
        since_at: float,
        last_id: int = 0,
        running: Collection[str] = (),  # noqa: ARG002  all that is known is at hand
    ) -> Iterator[ClusterRow]:
        # The column has milliseconds: enough to leave most of them out unread.
        at_least = pa.scalar(math.floor(since_at * 1000), pa.int64()).cast(MOMENT)
        new_from = last_id + 1 if last_id > 0 else math.inf
        late = (pc.field("last_received_at") >= at_least) | (pc.field("cluster_id") >= new_from)
        rows = (self._row_of(text) for text in self._catalog.found().rows.filter(late).column("row").to_pylist())
        return (
            row for row in rows if row.account == account and (row.last_received_at >= since_at or row.id >= new_from)
        )

    def page(self, account: str, since: float | None, limit: int, cursor: str | None) -> ClusterPage:
        check_limit(limit)
        before = (math.inf, HIGHEST + 1) if cursor is None else position(cursor)
        found = sorted(
            (
                row
                for row in self._all(account)
                if (row.started_at, row.id) < before and (since is None or row.last_received_at >= since)
            ),
            key=lambda row: (row.started_at, row.id),
            reverse=True,
        )
        page = found[:limit]
        return ClusterPage(page, cursor_at(page[-1].started_at, page[-1].id) if len(found) > limit else None)

    def accounts(self) -> set[str]:
        return set(self._index()[0].rows.column("account").to_pylist())

    def living(self) -> Iterator[ClusterRow]:
        found, by_uuid, _ = self._index()
        rows = (self._row(found, place) for place in by_uuid.values())
        return (row for row in rows if row.phase == "running")

    def deleted(self, uuids: Iterable[str]) -> set[str]:  # noqa: ARG002  which those were is the server's to know
        """None: here they are just not there."""
        return set()

    def _all(self, account: str) -> Iterator[ClusterRow]:
        found, by_uuid, _ = self._index()
        rows = (self._row(found, place) for place in by_uuid.values())
        return (row for row in rows if row.account == account)

    def _index(self) -> tuple[Found, dict[str, int], dict[int, int]]:
        found, known = self._catalog.found(), self._indexed
        if known is None or known[0] is not found:
            uuids, ids = (found.rows.column(name).to_pylist() for name in ("cluster", "cluster_id"))
            known = self._indexed = (
                found,
                {uuid: place for place, uuid in enumerate(uuids)},
                {number: place for place, number in enumerate(ids)},
            )
        return known

    def _known(self, found: Found, account: str, place: int | None, asked: int | str) -> ClusterRow:
        row = None if place is None else self._row(found, place)
        if row is None or row.account != account:
            raise Missing(f"No cluster {asked} in account {account}.")
        return row

    def _row(self, found: Found, place: int) -> ClusterRow:
        return self._row_of(found.rows.column("row")[place].as_py())

"""Computations and their task groups: of one cluster, of all clusters of an account, and one alone.

Records are those of docs/reference/http-api.md, times left as datetimes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from daskscope.errors import NotFound
from daskscope_lambdas.ports import Clock, ClusterRow
from daskscope_lambdas.service.catalog_rows import registry_columns
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.computation_records import (
    computation,
    group,
    id_of,
    prefix,
    seconds_of,
    sums_in,
    sums_of,
)
from daskscope_lambdas.service.found import (
    Asker,
    Days,
    Found,
    Record,
    days_of,
    days_since,
    found_in,
)
from daskscope_query import layout
from daskscope_query.lake import Answer
from daskscope_query.tables import CATALOG, MOMENT

SORTS = ("start", "duration", "n_tasks", "n_tasks_erred", "work", "cost")
STATUSES = ("running", "finished", "erred", "unfinished", "unknown")
ALIKE_DAYS = 30
"""So long before a computation began others of the same code are looked for."""

_QUICK = ("start",)
"""Sorts for which nothing but the computations themselves has to be looked at: only one with a group has a duration."""
_ID = re.compile(r"([0-9a-f]{24})-([0-9]{1,10})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which computations, and in which order. None takes all.

    `since` and `until`: of which a part lies between them. `code`: a fingerprint. `sort`: one of SORTS, with a leading
    `-` for the greatest first. `user`: of the clusters of an account. `cluster`: a UUID.
    """

    since: datetime | None = None
    until: datetime | None = None
    user: str | None = None
    cluster: str | None = None
    code: str | None = None
    status: str | None = None
    sort: str = "-start"


_ALL = Wanted()


class Computations:
    def __init__(self, asker: Asker, clock: Clock, codes: CodeKeeper, catalog: Callable[[str], pa.Table]) -> None:
        """`catalog`: an account's clusters as rows of the lake's table of that name."""
        self._asker, self._clock, self._codes, self._catalog = asker, clock, codes, catalog

    def groups(self, row: ClusterRow, limit: int, offset: int) -> Found:
        """Task groups of a cluster in the order in which they came, also those of no computation (scatter)."""
        answer = self._asker.ask_of(row, "groups", limit=limit, offset=offset)
        return found_in([group(found) for found in answer.records()], answer)

    def prefixes(self, row: ClusterRow, id: str | None = None) -> Found:
        """All task prefixes of a cluster, or of one computation, with the sums of their groups; `n_given_up` of their
        tasks, and `n_tasks_erred`, besides."""
        answer = self._asker.ask_of(row, "cluster_prefixes", computation=id)
        more = ("n_given_up", "n_tasks_erred")
        return found_in([prefix(each) | {name: each[name] for name in more} for each in answer.records()], answer)

    def of_cluster(
        self, row: ClusterRow, limit: int, offset: int, wanted: Wanted = _ALL, *, whole: bool = True
    ) -> Found:
        """A cluster's computations with the text of their code, null where it is not kept any more, and with their
        groups if `whole`."""
        asked = {**asdict(wanted), "cluster": row.uuid, "limit": limit, "offset": offset}
        return self._found(row, asked, whole=whole)

    def of_account(self, account: str, limit: int, offset: int, wanted: Wanted) -> Found:
        """As of one cluster, but without groups."""
        catalog = self._catalog(account)
        asked = {**asdict(wanted), "limit": limit, "offset": offset}
        if wanted.cluster is not None:
            catalog = catalog.filter(pc.field("cluster") == wanted.cluster)
        days, clusters = self._looked_at(catalog, wanted.since, of_one=wanted.cluster is not None)
        asked = {**asked, **clusters}
        if wanted.status is None and wanted.sort.removeprefix("-") in _QUICK:
            return self._quick_page(account, catalog, days, asked)
        return self._page(account, catalog, days, asked, whole=False)

    def alone(self, row: ClusterRow, id: str, *, whole: bool) -> Found:
        """A computation of a cluster as in its list, with its groups if `whole`. Raises NotFound."""
        found = self._found(row, {"cluster": row.uuid, "ids": [id], "limit": 1, "offset": 0}, whole=whole)
        if not found.rows:
            raise NotFound(f"No computation {id} in cluster {row.id}. `daskscope computations {row.id}` lists them.")
        return found

    def one(self, row: ClusterRow, id: str) -> Found:
        """A computation of a cluster with its groups and `same_code`. Raises NotFound."""
        found = self.alone(row, id, whole=True)
        (record,) = found.rows
        record["same_code"] = self._same_code(row.account, record)
        return found

    def cluster_of(self, account: str, id: str) -> str:
        """The UUID of the cluster that a computation is of. Raises NotFound."""
        if not (told := _ID.fullmatch(id)):
            raise NotFound(f"{id!r} names no computation: its id is like 0195a0c2b400da5c00000001-3, as lists tell it.")
        boot, catalog = told[1], self._catalog(account)
        if newest := catalog.filter(pc.field("boot") == boot).column("cluster").to_pylist():
            return newest[0]
        # A scheduler whose plugin has started anew since; one that started later cannot be it.
        began = datetime.fromtimestamp(min(int(boot[:12], 16) / 1e3, self._clock.now()), UTC)
        later = _heard_since(catalog.filter(pc.field("boot") > boot), began)
        days = (began.date() - timedelta(1), layout.day_of(self._clock.now()))
        asked = {"ids": [id], "clusters": later.column("cluster").to_pylist(), "limit": 1, "offset": 0}
        found = self._ask(account, catalog, days, asked).records() if later.num_rows else []
        if not found:
            raise NotFound(f"No computation {id} in account {account}. `daskscope computations` lists them.")
        return found[0]["cluster"]

    def _looked_at(
        self, catalog: pa.Table, since: datetime | None, *, of_one: bool
    ) -> tuple[Days, dict[str, list[str]]]:
        """Arrival days, and the clusters to which they are narrowed, where that helps: what a cluster told before
        `since` of what went on after it is looked for, too."""
        first, last = days_since(since, self._clock.now())
        if since is None and not of_one:
            return (first, last), {}
        heard = catalog if since is None else _heard_since(catalog, since)
        told: list[date] = [at.date() for at in heard.column("first_received_at").to_pylist()]
        began = min(told, default=last)
        if of_one or began >= first:
            return (min(began, last) if of_one else first, last), {}
        return (began, last), {"clusters": heard.column("cluster").to_pylist()}

    def _found(self, row: ClusterRow, asked: Mapping[str, Any], *, whole: bool) -> Found:
        return self._page(row.account, self._listed(row), days_of(row), asked, whole=whole)

    def _listed(self, row: ClusterRow) -> pa.Table:
        """A cluster's row of the catalog; without its cost where it is not in it yet."""
        listed = self._catalog(row.account).filter(pc.field("cluster") == row.uuid)
        if listed.num_rows:
            return listed
        return pa.Table.from_pylist([registry_columns(row)], CATALOG.schema)

    def _quick_page(self, account: str, catalog: pa.Table, days: Days, asked: Mapping[str, Any]) -> Found:
        """Which they are tells the list of computations alone; then only the task groups of their clusters are read."""
        narrowing = {name: value for name, value in asked.items() if name != "status"}
        page = self._asker.ask("computation_page", account, days, given={"catalog": catalog}, **narrowing)
        rows = page.records()
        if not rows:
            return found_in([], page)
        clusters = sorted({found["cluster"] for found in rows})
        ids = [id_of(found) for found in rows]
        wanted = {"ids": ids, "clusters": clusters, "sort": asked["sort"], "limit": len(rows), "offset": 0}
        listed = catalog.filter(pc.field("cluster").isin(pa.array(clusters, pa.string())))
        if listed.num_rows == len(clusters):
            days = _days_together(listed)
        found = self._at(page.until)._page(account, catalog, days, wanted, whole=False)
        skipped = sorted({*page.skipped, *found.skipped})
        return replace(found, skipped=skipped, as_of=page.as_of, until=page.until)

    def _at(self, until: datetime | None) -> Computations:
        return Computations(self._asker.at(until), self._clock, self._codes, self._catalog)

    def _page(self, account: str, catalog: pa.Table, days: Days, asked: Mapping[str, Any], *, whole: bool) -> Found:
        page = self._ask(account, catalog, days, asked)
        rows = page.records()
        ids = [id_of(found) for found in rows]
        clusters = sorted({found["cluster"] for found in rows})
        steady = self._asker.at(page.until)
        if whole:
            inner = steady.ask("groups", account, days, clusters=clusters, computations=ids)
            groups: dict[str, list[Record]] = defaultdict(list)
            for found in inner.records():
                groups[f"{found['boot']}-{found['computation']}"].append(group(found))
            told = [groups[each] for each in ids]
            records = [computation(found, sums_of(mine), mine) for found, mine in zip(rows, told, strict=True)]
        else:
            inner = steady.ask("computation_sums", account, days, clusters=clusters, ids=ids)
            sums = {found["id"]: sums_in(found) for found in inner.records()}
            records = [computation(found, sums.get(id_of(found), sums_of([])), None) for found in rows]
        self._add_code(account, records)
        return found_in(records, page, inner)

    def _ask(self, account: str, catalog: pa.Table, days: Days, asked: Mapping[str, Any]) -> Answer:
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        return self._asker.ask("computations", account, days, given={"catalog": catalog}, now=now, **asked)

    def _same_code(self, account: str, record: Record) -> Record | None:
        """Of a computation's record: how long others with its code took; None without code."""
        if record["fingerprint"] is None:
            return None
        since = record["start"] - timedelta(ALIKE_DAYS)
        took_ms = None if record["duration"] is None else round(record["duration"] * 1e3)
        wanted = {"fingerprint": record["fingerprint"], "since": since, "duration_ms": took_ms}
        (found,) = self._asker.ask("code_summary", account, days_since(since, self._clock.now()), **wanted).records()
        return {
            "since": since,
            **{name: found[name] for name in ("n", "n_clusters", "rank")},
            "median_duration": seconds_of(found["median_ms"]),
            "least_duration": seconds_of(found["least_ms"]),
            "most_duration": seconds_of(found["most_ms"]),
        }

    def _add_code(self, account: str, computations: Iterable[Record]) -> None:
        snippets = [snippet for computation in computations for snippet in computation["code"]]
        texts = self._codes.read(account, {snippet["code"] for snippet in snippets})
        for snippet in snippets:
            snippet["text"] = texts.get(snippet.pop("code"))


def is_id(text: str) -> bool:
    """Whether it is of the form of a computation's id, as no reference to a cluster is."""
    return _ID.fullmatch(text) is not None


def _days_together(listed: pa.Table) -> Days:
    """Arrival days of all messages of these clusters."""
    first = min(at.date() for at in listed.column("first_received_at").to_pylist())
    return first - timedelta(1), max(at.date() for at in listed.column("last_received_at").to_pylist())


def _heard_since(catalog: pa.Table, since: datetime) -> pa.Table:
    return catalog.filter(pc.field("last_received_at") >= pa.scalar(since, MOMENT))

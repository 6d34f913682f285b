"""Computations and their task groups: of one cluster, of all clusters of an account, and one alone.

Records are those of docs/reference/http-api.md, times left as datetimes.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from daskscope.errors import NotFound
from daskscope_lambdas.ports import Clock, ClusterRow
from daskscope_lambdas.service.catalog_rows import registry_columns
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.found import (
    Asker,
    Days,
    Found,
    Record,
    days_of,
    days_since,
    found_in,
    numbered,
    scheduler_id,
    seconds,
)
from daskscope_lambdas.service.words import dollars, share
from daskscope_query import layout
from daskscope_query.lake import Answer
from daskscope_query.tables import CATALOG, MOMENT

SORTS = ("start", "duration", "n_tasks", "n_tasks_erred", "work", "cost")
STATUSES = ("running", "finished", "erred", "unfinished", "unknown")
ALIKE_DAYS = 30
"""So long before a computation began others of the same code are looked for."""

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

    def groups(self, row: ClusterRow) -> Found:
        """All task groups of a cluster in the order in which they came, also those of no computation (scatter)."""
        answer = self._asker.ask_of(row, "groups")
        return found_in([_group(found) for found in answer.records()], answer)

    def of_cluster(self, row: ClusterRow, limit: int, offset: int, wanted: Wanted = _ALL) -> Found:
        """A cluster's computations with their groups and the text of their code, null where it is not kept any more."""
        asked = {**asdict(wanted), "cluster": row.uuid, "limit": limit, "offset": offset}
        return self._found(row, asked, whole=True)

    def of_account(self, account: str, limit: int, offset: int, wanted: Wanted) -> Found:
        """As of one cluster, but without groups."""
        catalog = self._catalog(account)
        days, clusters = self._looked_at(catalog, wanted.since)
        asked = {**asdict(wanted), "limit": limit, "offset": offset}
        if wanted.cluster is None:
            asked["clusters"] = clusters
        return self._page(account, catalog, days, asked, whole=False)

    def alone(self, row: ClusterRow, id: str) -> Found:
        """A computation of a cluster as in its list. Raises NotFound."""
        found = self._found(row, {"cluster": row.uuid, "ids": [id], "limit": 1, "offset": 0}, whole=True)
        if not found.rows:
            raise NotFound(f"No computation {id} in cluster {row.id}. `daskscope computations {row.id}` lists them.")
        return found

    def one(self, row: ClusterRow, id: str) -> Found:
        """As `alone`, with `same_code`."""
        found = self.alone(row, id)
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
        later = catalog.filter((pc.field("boot") > boot) & (pc.field("last_received_at") >= pa.scalar(began, MOMENT)))
        days = (began.date() - timedelta(1), layout.day_of(self._clock.now()))
        asked = {"ids": [id], "clusters": later.column("cluster").to_pylist(), "limit": 1, "offset": 0}
        found = self._ask(account, catalog, days, asked).records() if later.num_rows else []
        if not found:
            raise NotFound(f"No computation {id} in account {account}. `daskscope computations` lists them.")
        return found[0]["cluster"]

    def _looked_at(self, catalog: pa.Table, since: datetime | None) -> tuple[Days, list[str] | None]:
        """Arrival days, and the clusters to which they are narrowed (None: all): what a cluster told before `since` of
        what went on after it is looked for, too."""
        first, last = days_since(since, self._clock.now())
        if since is None:
            return (first, last), None
        heard = catalog.filter(pc.field("last_received_at") >= pa.scalar(since, MOMENT))
        began = min((at.date() for at in heard.column("first_received_at").to_pylist()), default=first)
        return (min(first, began), last), heard.column("cluster").to_pylist() if began < first else None

    def _found(self, row: ClusterRow, asked: Mapping[str, Any], *, whole: bool) -> Found:
        return self._page(row.account, self._listed(row), days_of(row), asked, whole=whole)

    def _listed(self, row: ClusterRow) -> pa.Table:
        """A cluster's row of the catalog; without its cost where it is not in it yet."""
        listed = self._catalog(row.account).filter(pc.field("cluster") == row.uuid)
        if listed.num_rows:
            return listed
        return pa.Table.from_pylist([registry_columns(row)], CATALOG.schema)

    def _page(self, account: str, catalog: pa.Table, days: Days, asked: Mapping[str, Any], *, whole: bool) -> Found:
        page = self._ask(account, catalog, days, asked)
        rows = page.records()
        ids = [_id(found) for found in rows]
        clusters = sorted({found["cluster"] for found in rows})
        inner = self._asker.at(page.until).ask("groups", account, days, clusters=clusters, computations=ids)
        groups: dict[str, list[Record]] = defaultdict(list)
        for found in inner.records():
            groups[f"{found['boot']}-{found['computation']}"].append(_group(found))
        records = [_computation(found, groups[_id(found)], whole=whole) for found in rows]
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
            "median_duration": _seconds_of(found["median_ms"]),
            "least_duration": _seconds_of(found["least_ms"]),
            "most_duration": _seconds_of(found["most_ms"]),
        }

    def _add_code(self, account: str, computations: Iterable[Record]) -> None:
        snippets = [snippet for computation in computations for snippet in computation["code"]]
        texts = self._codes.read(account, {snippet["code"] for snippet in snippets})
        for snippet in snippets:
            snippet["text"] = texts.get(snippet.pop("code"))


def is_id(text: str) -> bool:
    """Whether it is of the form of a computation's id, as no reference to a cluster is."""
    return _ID.fullmatch(text) is not None


def _id(found: Record) -> str:
    return f"{found['boot']}-{found['no']}"


def _computation(found: Record, groups: Sequence[Record], *, whole: bool) -> Record:
    frames = {tuple(frame.values()): frame for call in found["code"] for frame in call}
    record = {
        "id": _id(found),
        "cluster_id": found["cluster_id"],
        "scheduler_id": scheduler_id(found["cluster"], {}),
        "cluster_name": found["cluster_name"],
        "user": found["user"],
        "status": found["status"],
        "start": found["start_at"],
        "stop": found["stop_at"],
        "duration": _seconds_of(found["duration_ms"]),
        "fingerprint": found["fingerprint"],
        # Calls share their outer frames: each frame once.
        "code": list(frames.values()),
        "n_tasks": found["n_tasks"],
        "n_tasks_erred": found["n_tasks_erred"],
        "states": _sum(group["states"] for group in groups),
        "seconds": _sum(group["seconds"] for group in groups),
        "bytes": sum(group["bytes"] for group in groups),
        "cost": _cost(found),
    }
    return {**record, "groups": groups} if whole else record


def _cost(found: Record) -> Record:
    known = found["dollars"] is not None
    basis = "unknown: nobody knows yet what its cluster cost"
    if known:
        of = f"the thread time of cluster {found['cluster_id']}, which cost {dollars(found['cluster_dollars'])}"
        basis = f"{found['quality']}: {share(found['share'], 1)} of {of}"
    quality = found["quality"] if known else "unknown"
    return {"dollars": found["dollars"], "idle": None, "failed": None, "quality": quality, "basis": basis}


def _group(found: Record) -> Record:
    return {
        "id": numbered(found["boot"], found["no"]),
        "computation": numbered(found["boot"], found["computation"]),
        "name": found["name"],
        "prefix": found["prefix"],
        "start": found["start_at"],
        "stop": found["stop_at"],
        "n_tasks": found["n_tasks"],
        "n_tasks_erred": found["n_tasks_erred"],
        "states": found["states"],
        "seconds": seconds(found["action_us"]),
        "bytes": found["nbytes"],
        "dependencies": found["dependencies"],
        "types": found["types"],
        "span": found["span"],
    }


def _seconds_of(ms: float | None) -> float | None:
    return None if ms is None else ms / 1e3


def _sum(maps: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for entries in maps:
        total.update(entries)
    return dict(total)

"""What pages and the API ask of the lake. Records are those of docs/reference/http-api.md, times left as datetimes."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

from daskscope_lambdas.ports import Clock, ClusterRow, Seals
from daskscope_query import layout
from daskscope_query.lake import Answer, Lake, MovedError

Record = dict[str, Any]
Days = tuple[date, date]

_EPOCH = date(1970, 1, 1)
_TRIES = 4
"""Open files may be merged or sealed while a question is asked; each time it is asked anew."""


@dataclass(frozen=True, slots=True)
class Found:
    """`skipped`: keys of files that could not be read; `as_of`: receipt of the latest message that the lake had."""

    rows: list[Record]
    skipped: list[str]
    as_of: datetime | None

    def part(self, limit: int, offset: int) -> Found:
        """The same with `limit` of the rows, from `offset` on."""
        return replace(self, rows=self.rows[offset : offset + limit])


class Queries:
    """Questions to the lake at `lake_root`. Each opens the lake anew, so that it sees the boundary as it is."""

    def __init__(self, lake_root: str, seals: Seals, clock: Clock) -> None:
        self._root, self._seals, self._clock = lake_root, seals, clock

    def computations(self, row: ClusterRow, limit: int, offset: int) -> Found:
        """A cluster's computations with their groups, latest first.

        Each frame of `code` has `code` (the hash of its text), `file`, `line` and `line_in_code`. Only a missing end
        makes a computation `running`: whether the cluster still lives is for the caller to say.
        """
        days = self._days(row)
        page = self._ask("computations", row.account, days, cluster=row.uuid, limit=limit, offset=offset)
        rows = page.records()
        names = [f"{found['boot']}/{found['no']}" for found in rows]
        inner = self._ask("groups", row.account, days, cluster=row.uuid, computations=names)
        groups: dict[tuple[str, int], list[Record]] = defaultdict(list)
        for found in inner.records():
            groups[found["boot"], found["computation"]].append(_group(found))
        records = [_computation(found, row, groups[found["boot"], found["no"]]) for found in rows]
        return _found(records, page, inner)

    def groups(self, row: ClusterRow) -> Found:
        """All task groups of a cluster in the order in which they came, also those of no computation (scatter)."""
        answer = self._ask("groups", row.account, self._days(row), cluster=row.uuid)
        return _found([_group(found) for found in answer.records()], answer)

    def exceptions(self, row: ClusterRow, limit: int, offset: int) -> Found:
        """A cluster's exceptions, latest first."""
        return self._exceptions(row.account, self._days(row), limit, offset, cluster=row.uuid)

    def exception_kinds(self, row: ClusterRow) -> Found:
        """All kinds of a cluster's exceptions, most frequent first: `type`, `text`, `count`."""
        answer = self._ask("exception_kinds", row.account, self._days(row), cluster=row.uuid)
        return _found(answer.records(), answer)

    def account_exceptions(
        self, account: str, since_s: float | None, user: str | None, cluster: str | None, limit: int, offset: int
    ) -> Found:
        """Exceptions of all clusters of an account, latest first; `since_s` in seconds back, `cluster` a UUID."""
        now = self._clock.now()
        since = None if since_s is None else datetime.fromtimestamp(max(now - since_s, 0.0), UTC)
        days = (since.date() if since else _EPOCH, layout.day_of(now))
        return self._exceptions(account, days, limit, offset, cluster=cluster, user=user, since=since)

    def events(self, row: ClusterRow, limit: int, offset: int) -> Found:
        """A cluster's events, latest first; `detail` is JSON text."""
        answer = self._ask("events", row.account, self._days(row), cluster=row.uuid, limit=limit, offset=offset)
        records = [
            {
                "cluster_id": found["cluster_id"],
                "scheduler_id": _scheduler_id(found["cluster"], row.identity),
                "time": found["logged_at"],
                **{name: found[name] for name in ("topic", "action", "worker", "detail")},
            }
            for found in answer.records()
        ]
        return _found(records, answer)

    def workers(self, row: ClusterRow) -> Found:
        """Each worker that a cluster had, in the order in which they came; `left` if its newest message lacks it."""
        answer = self._ask("workers", row.account, self._days(row), cluster=row.uuid)
        return _found([_worker(found) for found in answer.records()], answer)

    def samples(self, row: ClusterRow) -> Found:
        """A cluster's totals over time, in at most 600 points, oldest first: columns of the lake's table `samples`."""
        answer = self._ask("samples", row.account, self._days(row), cluster=row.uuid)
        return _found(answer.records(), answer)

    def prefixes(self, account: str, days: Days, user: str | None, limit: int, offset: int) -> Found:
        """A team's task prefixes over arrival days, by worker time."""
        answer = self._ask("prefixes", account, days, user=user, limit=limit, offset=offset)
        records = [
            {
                "prefix": found["prefix"],
                "n_clusters": found["n_clusters"],
                "n_tasks": found["n_tasks"],
                "bytes": found["nbytes"],
                "seconds": _seconds(found["action_us"]),
            }
            for found in answer.records()
        ]
        return _found(records, answer)

    def exceptions_by_kind(self, account: str, days: Days, user: str | None, limit: int, offset: int) -> Found:
        """A team's exceptions over arrival days, alike ones together, most frequent first."""
        answer = self._ask("exceptions_by_kind", account, days, user=user, limit=limit, offset=offset)
        return _found(answer.records(), answer)

    def _exceptions(self, account: str, days: Days, limit: int, offset: int, **params: Any) -> Found:
        page = self._ask("exceptions", account, days, limit=limit, offset=offset, **params)
        rows = page.records()
        clusters = sorted({found["cluster"] for found in rows})
        inner = self._ask("group_names", account, days, clusters=clusters)
        groups = {(found["cluster"], found["boot"], found["no"]): found for found in inner.records()}
        records: list[Record] = []
        for found in rows:
            group = groups.get((found["cluster"], found["boot"], found["group_no"]), {})
            records.append(
                {
                    "cluster_id": found["cluster_id"],
                    "scheduler_id": _scheduler_id(found["cluster"], found),
                    **{name: found[name] for name in ("user", "type", "text", "traceback", "key", "prefix")},
                    "group": group.get("name"),
                    "computation": _id(found["boot"], group.get("computation")),
                    "workers": found["workers"],
                    "first": found["first_at"],
                    "last": found["last_at"],
                    "count": found["count"],
                }
            )
        return _found(records, page, inner)

    def _days(self, row: ClusterRow) -> Days:
        """Arrival days of a cluster's messages; the lake knows where rows stand that came late."""
        return layout.day_of(row.first_received_at), layout.day_of(row.last_received_at)

    def _ask(self, query: str, account: str, days: Days, **params: Any) -> Answer:
        for _ in range(_TRIES - 1):
            with suppress(MovedError):
                return Lake(self._root, self._seals.boundary()).ask(query, account=account, days=days, **params)
        return Lake(self._root, self._seals.boundary()).ask(query, account=account, days=days, **params)


def _found(rows: list[Record], *answers: Answer) -> Found:
    skipped = sorted({key for answer in answers for key in answer.skipped})
    return Found(rows, skipped, answers[0].as_of)


def _computation(found: Record, row: ClusterRow, groups: list[Record]) -> Record:
    states = _sum(group["states"] for group in groups)
    if found["stop_at"] is None:
        status = "running"
    else:
        status = "erred" if found["failed"] or states.get("erred") else "finished"
    frames = {tuple(frame.values()): frame for call in found["code"] for frame in call}
    return {
        "id": _id(found["boot"], found["no"]),
        "cluster_id": found["cluster_id"],
        "scheduler_id": _scheduler_id(found["cluster"], row.identity),
        "status": status,
        "start": found["start_at"],
        "stop": found["stop_at"],
        # Calls share their outer frames: each frame once.
        "code": list(frames.values()),
        "n_tasks": sum(group["n_tasks"] for group in groups),
        "n_tasks_erred": sum(group["n_tasks_erred"] for group in groups),
        "states": states,
        "seconds": _sum(group["seconds"] for group in groups),
        "bytes": sum(group["bytes"] for group in groups),
        "groups": groups,
    }


def _group(found: Record) -> Record:
    return {
        "id": _id(found["boot"], found["no"]),
        "computation": _id(found["boot"], found["computation"]),
        "name": found["name"],
        "prefix": found["prefix"],
        "start": found["start_at"],
        "stop": found["stop_at"],
        "n_tasks": found["n_tasks"],
        "n_tasks_erred": found["n_tasks_erred"],
        "states": found["states"],
        "seconds": _seconds(found["action_us"]),
        "bytes": found["nbytes"],
        "dependencies": found["dependencies"],
        "types": found["types"],
        "span": found["span"],
    }


def _worker(found: Record) -> Record:
    return {
        "address": found["address"],
        "name": found["name"],
        "status": "left" if found["gone"] else found["status"],
        "first": found["first_at"],
        "last": found["last_at"],
        "threads": found["n_threads"],
        "memory": found["memory_bytes"],
        "memory_limit": found["memory_limit_bytes"],
        "peak_memory": found["peak_memory_bytes"],
        "spilled": found["spilled_bytes"],
        **{name: found[name] for name in ("cpu_pct", "mean_cpu_pct", "executing", "ready")},
    }


def _id(boot: str, no: int | None) -> str | None:
    """Numbers start anew in each boot of the plugin, so an id is both."""
    return None if no is None else f"{boot}-{no}"


def _scheduler_id(cluster: str, identity: Mapping[str, Any]) -> str:
    return identity.get("scheduler_id") or f"Scheduler-{uuid.UUID(cluster)}"


def _seconds(action_us: Mapping[str, int]) -> dict[str, float]:
    return {action: us / 1e6 for action, us in action_us.items()}


def _sum(maps: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for entries in maps:
        total.update(entries)
    return dict(total)

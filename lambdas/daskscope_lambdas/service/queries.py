"""What pages and the API ask of the lake. Records are those of docs/reference/http-api.md, times left as datetimes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from daskscope_lambdas.ports import Clock, ClusterRow
from daskscope_lambdas.service.found import (
    Asker,
    Days,
    Found,
    Record,
    days_of,
    found_in,
    numbered,
    scheduler_id,
    seconds,
)
from daskscope_lambdas.service.records import status
from daskscope_query import layout
from daskscope_query.lake import Answer

_EPOCH = date(1970, 1, 1)


class Queries:
    """What tasks did, and how they failed: of one cluster, and of a team."""

    def __init__(self, asker: Asker, clock: Clock) -> None:
        self._asker, self._clock = asker, clock

    def computations(self, row: ClusterRow, limit: int, offset: int) -> Found:
        """A cluster's computations with their groups, latest first.

        Each frame of `code` has `code` (the hash of its text), `file`, `line` and `line_in_code`. Only a missing end
        makes a computation `running`: whether the cluster still lives is for the caller to say.
        """
        page = self._asker.ask_of(row, "computations", limit=limit, offset=offset)
        rows = page.records()
        names = [f"{found['boot']}/{found['no']}" for found in rows]
        inner = self._asker.ask_of(row, "groups", computations=names)
        groups: dict[tuple[str, int], list[Record]] = defaultdict(list)
        for found in inner.records():
            groups[found["boot"], found["computation"]].append(_group(found))
        records = [_computation(found, row, groups[found["boot"], found["no"]]) for found in rows]
        return found_in(records, page, inner)

    def groups(self, row: ClusterRow) -> Found:
        """All task groups of a cluster in the order in which they came, also those of no computation (scatter)."""
        answer = self._asker.ask_of(row, "groups")
        return found_in([_group(found) for found in answer.records()], answer)

    def exceptions(self, row: ClusterRow, limit: int, offset: int, origin: str | None = None) -> Found:
        """A cluster's exceptions, latest first."""
        page = self._asker.ask_of(row, "exceptions", limit=limit, offset=offset, origin=origin)
        return self._exceptions(page, row.account, days_of(row))

    def exception_kinds(self, row: ClusterRow) -> Found:
        """All kinds of a cluster's exceptions, most frequent first: `origin`, `type`, `text`, `count`."""
        answer = self._asker.ask_of(row, "exception_kinds")
        return found_in(answer.records(), answer)

    def account_exceptions(
        self,
        account: str,
        limit: int,
        offset: int,
        *,
        since_s: float | None = None,
        user: str | None = None,
        cluster: str | None = None,
        origin: str | None = None,
    ) -> Found:
        """Exceptions of all clusters of an account, latest first; `since_s` in seconds back, `cluster` a UUID."""
        now = self._clock.now()
        since = None if since_s is None else datetime.fromtimestamp(max(now - since_s, 0.0), UTC)
        days = (since.date() if since else _EPOCH, layout.day_of(now))
        wanted = {"cluster": cluster, "user": user, "since": since, "origin": origin}
        return self._exceptions(
            self._asker.ask("exceptions", account, days, limit=limit, offset=offset, **wanted), account, days
        )

    def events(self, row: ClusterRow, limit: int, offset: int, topic: str | None = None) -> Found:
        """A cluster's events, latest first; `detail` is JSON text."""
        answer = self._asker.ask_of(row, "events", topic=topic, limit=limit, offset=offset)
        records = [
            {
                "cluster_id": found["cluster_id"],
                "scheduler_id": scheduler_id(found["cluster"], row.identity),
                "time": found["logged_at"],
                **{name: found[name] for name in ("topic", "action", "worker", "detail")},
            }
            for found in answer.records()
        ]
        return found_in(records, answer)

    def workers(self, row: ClusterRow) -> Found:
        """Each worker that a cluster had, in the order in which they came; `left` if its newest message lacks it, or it
        has ended."""
        answer = self._asker.ask_of(row, "workers")
        ended = status(row, self._clock.now()) != "running"
        return found_in([_worker(found, ended) for found in answer.records()], answer)

    def samples(self, row: ClusterRow) -> Found:
        """A cluster's totals over time, in at most 600 points, oldest first: columns of the lake's table `samples`."""
        answer = self._asker.ask_of(row, "samples")
        return found_in(answer.records(), answer)

    def prefixes(self, account: str, days: Days, user: str | None, limit: int, offset: int) -> Found:
        """A team's task prefixes over arrival days, by worker time."""
        answer = self._asker.ask("prefixes", account, days, user=user, limit=limit, offset=offset)
        records = [
            {
                "prefix": found["prefix"],
                "n_clusters": found["n_clusters"],
                "n_tasks": found["n_tasks"],
                "bytes": found["nbytes"],
                "seconds": seconds(found["action_us"]),
            }
            for found in answer.records()
        ]
        return found_in(records, answer)

    def exceptions_by_kind(self, account: str, days: Days, user: str | None, limit: int, offset: int) -> Found:
        """A team's exceptions over arrival days, alike ones together, most frequent first."""
        answer = self._asker.ask("exceptions_by_kind", account, days, user=user, limit=limit, offset=offset)
        return found_in(answer.records(), answer)

    def _exceptions(self, page: Answer, account: str, days: Days) -> Found:
        rows = page.records()
        clusters = sorted({found["cluster"] for found in rows})
        inner = self._asker.ask("group_names", account, days, clusters=clusters)
        groups = {(found["cluster"], found["boot"], found["no"]): found for found in inner.records()}
        records: list[Record] = []
        for found in rows:
            group = groups.get((found["cluster"], found["boot"], found["group_no"]), {})
            records.append(
                {
                    "cluster_id": found["cluster_id"],
                    "scheduler_id": scheduler_id(found["cluster"], found),
                    **{name: found[name] for name in ("user", "origin", "type", "text", "traceback", "key", "prefix")},
                    "group": group.get("name"),
                    "computation": numbered(found["boot"], group.get("computation")),
                    "workers": found["workers"],
                    "first": found["first_at"],
                    "last": found["last_at"],
                    "count": found["count"],
                }
            )
        return found_in(records, page, inner)


def _computation(found: Record, row: ClusterRow, groups: list[Record]) -> Record:
    states = _sum(group["states"] for group in groups)
    if found["stop_at"] is None:
        state = "running"
    elif not groups:
        # Dask counts its tasks to an earlier computation that has groups of the same names: it knows nothing of these.
        state = "unknown"
    else:
        state = "erred" if found["failed"] or states.get("erred") else "finished"
    frames = {tuple(frame.values()): frame for call in found["code"] for frame in call}
    return {
        "id": numbered(found["boot"], found["no"]),
        "cluster_id": found["cluster_id"],
        "scheduler_id": scheduler_id(found["cluster"], row.identity),
        "status": state,
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


def _worker(found: Record, ended: bool) -> Record:
    return {
        "address": found["address"],
        "name": found["name"],
        "status": "left" if found["gone"] or ended else found["status"],
        "first": found["first_at"],
        "last": found["last_at"],
        "threads": found["n_threads"],
        "memory": found["memory_bytes"],
        "memory_limit": found["memory_limit_bytes"],
        "peak_memory": found["peak_memory_bytes"],
        "managed": found["managed_bytes"],
        "spilled": found["spilled_bytes"],
        **{name: found[name] for name in ("cpu_pct", "mean_cpu_pct", "executing", "ready", "in_memory")},
        "net_read": found["net_read_bytes_s"],
        "net_write": found["net_write_bytes_s"],
        "disk_read": found["disk_read_bytes_s"],
        "disk_write": found["disk_write_bytes_s"],
        "loop_interval": found["loop_interval_ms"] / 1e3,
        "gpu_pct": found["gpu_pct"],
        "gpu_memory": found["gpu_memory_bytes"],
    }


def _sum(maps: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for entries in maps:
        total.update(entries)
    return dict(total)

"""What pages and the API ask of the lake. Records are those of docs/reference/http-api.md, times left as datetimes."""

from __future__ import annotations

from datetime import datetime

from daskscope_lambdas.ports import Clock, ClusterRow
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
)
from daskscope_lambdas.service.records import status
from daskscope_query.lake import Answer


class Queries:
    """What tasks did, and how they failed: of one cluster, and of a team."""

    def __init__(self, asker: Asker, clock: Clock) -> None:
        self._asker, self._clock = asker, clock

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
        since: datetime | None = None,
        until: datetime | None = None,
        user: str | None = None,
        cluster: str | None = None,
        origin: str | None = None,
        family: str | None = None,
    ) -> Found:
        """Exceptions of all clusters of an account, latest first; `cluster` is a UUID, `family` the id of one."""
        days = days_since(since, self._clock.now())
        wanted = {
            "cluster": cluster, "user": user, "since": since, "until": until, "origin": origin, "family": family,
        }  # fmt: skip
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

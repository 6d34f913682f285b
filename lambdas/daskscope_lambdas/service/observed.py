"""What was observed of a cluster's processes: themselves and their ends, log lines, spans, metrics, tasks.

Of log lines and metrics also over all clusters of an account. Records are those of docs/reference/http-api.md, times
left as datetimes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from daskscope_lambdas.ports import Clock, ClusterRow
from daskscope_lambdas.service.found import (
    UNLISTED,
    Asker,
    Found,
    Record,
    days_since,
    found_in,
    numbered,
    seconds,
)
from daskscope_lambdas.service.records import ended_at

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
"""Words for the levels of log lines, and the numbers that Python's `logging` has for them."""

_WORDS = {number: word for word, number in LEVELS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Which log lines, and in which order. What is None or empty takes all.

    `level`: the least, as `logging` counts. `workers`: addresses (with or without protocol), hosts or names; they leave
    the scheduler's lines out, but for `scheduler` True. `text`: a part of the line, whatever its case. `since` and
    `until`: both included. `user`: of the clusters of an account.
    """

    level: int | None = None
    role: str | None = None
    workers: Sequence[str] = ()
    scheduler: bool | None = None
    text: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    user: str | None = None
    ascending: bool = False

    def parameters(self) -> dict[str, Any]:
        """Of the question."""
        return {**asdict(self), "workers": list(self.workers) or None}


class Observed:
    def __init__(self, asker: Asker, clock: Clock) -> None:
        self._asker, self._clock = asker, clock

    def members(self, row: ClusterRow, limit: int, offset: int, role: str | None = None) -> Found:
        """The processes that a cluster had, in the order in which they came; none outlives it. `more`: `mismatches`."""
        page = self._asker.ask_of(row, "members", limit=limit, offset=offset, role=role)
        inner = self._asker.at(page.until).ask_of(row, "environments")
        environments = inner.records()
        schedulers = _schedulers(environments)
        ended = ended_at(row, self._clock.now())
        records = [_member(found, schedulers.get(found["boot"]), ended) for found in page.records()]
        found = found_in(records, page, inner)
        return found if offset else replace(found, more={"mismatches": _mismatches(environments, schedulers)})

    def deaths(self, row: ClusterRow, limit: int, offset: int, expected: bool | None = None) -> Found:
        """Workers that went, latest first, each with the last log lines of it and its nanny."""
        page = self._asker.ask_of(row, "deaths", limit=limit, offset=offset, expected=expected)
        records = [{**death(found), "logs": [_line(line) for line in found["lines"]]} for found in page.records()]
        return found_in(records, page)

    def logs(self, row: ClusterRow, limit: int, offset: int, wanted: Lines) -> Found:
        """Log lines of scheduler, workers and nannies of a cluster."""
        asked = {**wanted.parameters(), "user": None}
        page = self._asker.ask_of(row, "logs", limit=limit, offset=offset, given=UNLISTED, **asked)
        return found_in([_logged(found) for found in page.records()], page)

    def account_logs(self, account: str, catalog: pa.Table, limit: int, offset: int, wanted: Lines) -> Found:
        """Log lines of all clusters of an account; `catalog` (rows of that table) tells whose each is."""
        days = days_since(wanted.since, self._clock.now())
        asked, given = wanted.parameters(), {"catalog": catalog}
        page = self._asker.ask("logs", account, days, limit=limit, offset=offset, given=given, **asked)
        return found_in([_logged(found) for found in page.records()], page)

    def spans(self, row: ClusterRow, limit: int, offset: int) -> Found:
        """Spans, latest first, each with the sums of its own task groups."""
        page = self._asker.ask_of(row, "spans", limit=limit, offset=offset)
        return found_in([_span(found) for found in page.records()], page)

    def metrics(self, row: ClusterRow, limit: int, offset: int, span: str | None, by_prefix: bool) -> Found:
        """Fine performance metrics, those of a unit together, greatest first; `by_prefix` sums them over spans."""
        if by_prefix:
            page = self._asker.ask_of(row, "metrics_by_prefix", limit=limit, offset=offset, given=UNLISTED)
            return found_in([_metric(found) for found in page.records()], page)
        page = self._asker.ask_of(row, "metrics", limit=limit, offset=offset, span=span)
        return found_in(page.records(), page)

    def account_metrics(
        self,
        account: str,
        catalog: pa.Table,
        limit: int,
        offset: int,
        *,
        since: datetime | None = None,
        user: str | None = None,
        prefix: str | None = None,
    ) -> Found:
        """Fine performance metrics of all clusters of an account by task prefix, greatest first, with `n_clusters`:
        of those that grew after `since`, each a total over its cluster's life."""
        days, given = days_since(since, self._clock.now()), {"catalog": catalog}
        wanted = {"since": since, "user": user, "prefix": prefix}
        page = self._asker.ask("metrics_by_prefix", account, days, limit=limit, offset=offset, given=given, **wanted)
        return found_in([_metric(found) | {"n_clusters": found["n_clusters"]} for found in page.records()], page)

    def tasks(self, row: ClusterRow, limit: int, offset: int, group: str | None = None) -> Found:
        """Tasks, earliest first; `group` is the name or id of one."""
        page = self._asker.ask_of(row, "tasks", limit=limit, offset=offset, group=group)
        return found_in([_task(found) for found in page.records()], page)


def _schedulers(environments: Iterable[Record]) -> dict[str, Mapping[str, str | None]]:
    """The software of the scheduler, by boot."""
    return {found["boot"]: _software(found) for found in environments if found["role"] == "scheduler"}


def _mismatches(environments: Iterable[Record], schedulers: Mapping[str, Mapping[str, str | None]]) -> list[Record]:
    """Packages (and `python`) of which some process has another version than its scheduler, by name."""
    others: dict[tuple[str, str | None], Counter[tuple[str, str | None]]] = {}
    for found in environments:
        for name, (theirs, its) in _mismatched(_software(found), schedulers.get(found["boot"])).items():
            others.setdefault((name, its), Counter())[found["role"], theirs] += found["n"]
    return [
        {
            "package": name,
            "scheduler": its,
            "others": [{"role": role, "version": version, "n": n} for (role, version), n in found.most_common()],
        }
        for (name, its), found in sorted(others.items(), key=lambda entry: (entry[0][0], entry[0][1] or ""))
    ]


def _software(found: Record) -> Mapping[str, str | None]:
    return {"python": found["python"], **found["packages"]}


def _mismatched(
    theirs: Mapping[str, str | None], schedulers: Mapping[str, str | None] | None
) -> dict[str, tuple[str | None, str | None]]:
    """Name to both versions, theirs first; None for what one of the two lacks."""
    if schedulers is None:
        return {}
    names = sorted({*theirs, *schedulers})
    return {
        name: (theirs.get(name), schedulers.get(name)) for name in names if theirs.get(name) != schedulers.get(name)
    }


_SOFTWARE = ("python", "python_path", "os", "machine")
_HARDWARE = ("gpus", "provider", "instance_type", "region", "zone", "lifecycle")


def _member(found: Record, schedulers: Mapping[str, str | None] | None, ended: datetime | None) -> Record:
    told = found["packages"] is not None
    hardware = {"cores": found["cores"], "memory": found["memory_bytes"], **{name: found[name] for name in _HARDWARE}}
    left = found["left_at"]
    if left is None and ended is not None:
        left = max(ended, found["joined_at"])  # A scheduler's clock may be ahead of the server's.
    return {
        **{name: found[name] for name in ("id", "role", "name", "host")},
        "joined": found["joined_at"],
        "left": left,
        "threads": found["n_threads"],
        "memory_limit": found["memory_limit_bytes"],
        **{name: found[name] for name in _SOFTWARE},
        "packages": found["packages"],
        "mismatched": _mismatched(_software(found), schedulers) if told else {},
        "hardware": None if found["cores"] is None else hardware,
        "agent": found["agent"],
    }


def death(found: Record) -> Record:
    """Without the lines that it logged."""
    return {
        "id": numbered(found["boot"], found["no"]),
        "time": found["died_at"],
        **{name: found[name] for name in ("worker", "name", "host", "expected", "reason")},
        "memory": found["memory_bytes"],
        "memory_limit": found["memory_limit_bytes"],
        "memory_slope": found["memory_slope_bytes_s"],
        **{name: found[name] for name in ("n_processing", "processing", "n_results_lost")},
    }


def _line(found: Record) -> Record:
    return {
        "time": found["logged_at"],
        "level": _WORDS.get(found["level"], str(found["level"])),
        **{name: found[name] for name in ("logger", "role", "text", "dropped")},
    }


def _logged(found: Record) -> Record:
    return {
        "id": numbered(found["boot"], found["no"]),
        "cluster_id": found["cluster_id"],
        **_line(found),
        "worker": found["worker"],
    }


def _metric(found: Record) -> Record:
    return {"span": None, **{name: found[name] for name in ("context", "prefix", "activity", "unit", "value")}}


def _span(found: Record) -> Record:
    return {
        **{name: found[name] for name in ("id", "parent", "name")},
        "enqueued": found["enqueued_at"],
        "start": found["start_at"],
        "stop": found["stop_at"],
        **{name: found[name] for name in ("n_groups", "n_tasks", "n_tasks_erred", "states")},
        "seconds": seconds(found["action_us"]),
        "bytes": found["nbytes"],
        "collections": found["collections"],
    }


def _task(found: Record) -> Record:
    return {
        "id": numbered(found["boot"], found["no"]),
        "group": found["name"],
        "prefix": found["prefix"],
        "worker": found["worker"],
        "status": "erred" if found["erred"] else "finished",
        "start": found["start_at"],
        "stop": _after(found["start_at"], found["duration_us"]),
        "duration": found["duration_us"] / 1e6,
        "bytes": found["nbytes"],
        "weight": found["weight"],
    }


def _after(start: datetime, duration_us: int) -> datetime | None:
    """None if no calendar reaches there."""
    with suppress(OverflowError):
        return start + timedelta(microseconds=duration_us)
    return None

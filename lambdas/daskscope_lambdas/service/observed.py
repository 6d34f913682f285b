"""What was observed inside one cluster: processes and their ends, log lines, spans, metrics, tasks, profile, samples.

Records are those of docs/reference/http-api.md, times left as datetimes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from daskscope_lambdas.ports import Clock, ClusterRow
from daskscope_lambdas.service.found import Asker, Found, Record, found_in, numbered, seconds
from daskscope_lambdas.service.records import STATES, ended_at

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
"""Words for the levels of log lines, and the numbers that Python's `logging` has for them."""

_WORDS = {number: word for word, number in LEVELS.items()}


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
        return found_in([_death(found) for found in page.records()], page)

    def logs(
        self,
        row: ClusterRow,
        limit: int,
        offset: int,
        *,
        level: int | None = None,
        role: str | None = None,
        worker: str | None = None,
        text: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Found:
        """Log lines of scheduler, workers and nannies, latest first."""
        wanted = {"level": level, "role": role, "worker": worker, "text": text, "since": since, "until": until}
        page = self._asker.ask_of(row, "logs", limit=limit, offset=offset, **wanted)
        return found_in([_line(found) | {"worker": found["worker"]} for found in page.records()], page)

    def spans(self, row: ClusterRow, limit: int, offset: int) -> Found:
        """Spans, latest first, each with the sums of its own task groups."""
        page = self._asker.ask_of(row, "spans", limit=limit, offset=offset)
        return found_in([_span(found) for found in page.records()], page)

    def metrics(self, row: ClusterRow, limit: int, offset: int, span: str | None, by_prefix: bool) -> Found:
        """Fine performance metrics, those of a unit together, greatest first; `by_prefix` sums them over spans."""
        if by_prefix:
            page = self._asker.ask_of(row, "metrics_by_prefix", limit=limit, offset=offset)
            return found_in([{"span": None, **found} for found in page.records()], page)
        page = self._asker.ask_of(row, "metrics", limit=limit, offset=offset, span=span)
        return found_in(page.records(), page)

    def tasks(self, row: ClusterRow, limit: int, offset: int, group: str | None = None) -> Found:
        """Tasks, earliest first; `group` is the name or id of one."""
        page = self._asker.ask_of(row, "tasks", limit=limit, offset=offset, group=group)
        return found_in([_task(found) for found in page.records()], page)

    def profile(
        self,
        row: ClusterRow,
        limit: int,
        offset: int,
        prefix: str | None,
        by_prefix: bool,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Found:
        """Stacks summed over a cluster, heaviest first; `by_prefix` keeps those of two task prefixes apart, `since` and
        `until` take intervals of which a part lies between them. `more`: `total` of the stacks, and `cut`: rare stacks
        that were left out, of all prefixes together."""
        wanted = {"prefix": prefix, "by_prefix": by_prefix, "since": since, "until": until}
        page = self._asker.ask_of(row, "profile", limit=limit, offset=offset, **wanted)
        records = [
            {"prefix": found["prefix"], "stack": found["stack"], **_sampled(found["count"], found["sampled_us"])}
            for found in page.records()
        ]
        if offset:
            return found_in(records, page)
        del wanted["by_prefix"]
        sums = self._asker.at(page.until).ask_of(row, "profile_totals", **wanted)
        (found,) = sums.records()
        more = {"total": _sampled(found["count"], found["sampled_us"]), "cut": _sampled(found["cut"], found["cut_us"])}
        return replace(found_in(records, page, sums), more=more)

    def samples(self, row: ClusterRow) -> Found:
        """A cluster's totals over time, in at most 600 points, oldest first."""
        answer = self._asker.ask_of(row, "samples")
        return found_in([_sample(found) for found in answer.records()], answer)

    def worker_samples(self, row: ClusterRow, worker: str) -> Found:
        """One worker (its address) over time, in at most 600 points, oldest first."""
        answer = self._asker.ask_of(row, "worker_samples", worker=worker)
        return found_in([_worker_sample(found) for found in answer.records()], answer)


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


def _death(found: Record) -> Record:
    return {
        "id": numbered(found["boot"], found["no"]),
        "time": found["died_at"],
        **{name: found[name] for name in ("worker", "name", "host", "expected", "reason")},
        "memory": found["memory_bytes"],
        "memory_limit": found["memory_limit_bytes"],
        "memory_slope": found["memory_slope_bytes_s"],
        **{name: found[name] for name in ("n_processing", "processing", "n_results_lost")},
        "logs": [_line(line) for line in found["lines"]],
    }


def _line(found: Record) -> Record:
    return {
        "time": found["logged_at"],
        "level": _WORDS.get(found["level"], str(found["level"])),
        **{name: found[name] for name in ("logger", "role", "text", "dropped")},
    }


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


def _sampled(count: int, sampled_us: int) -> Record:
    return {"count": count, "seconds": sampled_us / 1e6}


_RATES = {
    "net_read": "net_read_kib_s",
    "net_write": "net_write_kib_s",
    "disk_read": "disk_read_kib_s",
    "disk_write": "disk_write_kib_s",
}


def _sample(found: Record) -> Record:
    return {
        "time": found["at"],
        "workers": found["n_workers"],
        "threads": found["n_threads"],
        "clients": found["n_clients"],
        "memory": found["memory_bytes"],
        "managed": found["managed_bytes"],
        # A worker may count a result that its process has not touched yet.
        "unmanaged": max(0, found["memory_bytes"] - found["managed_bytes"]),
        "spilled": found["spilled_bytes"],
        "memory_limit": found["memory_limit_bytes"],
        "tasks": {name: found[field] for field, name in STATES.items()},
        "held_bytes": found["held_bytes"],
        "idle_since": found["idle_since"],
        **{name: found[name] for name in ("n_tasks", "n_tasks_erred")},
        "thread_seconds": found["thread_us"] / 1e6,
        "seconds": seconds(found["action_us"]),
        **{name: found[name] for name in ("desired_workers", "adaptive_minimum", "adaptive_maximum")},
        "workers_lost": found["n_workers_lost"],
        "cpu_pct": found["cpu_pct"],
        **{name: _times(found[column], 1024) for name, column in _RATES.items()},
        "loop_interval": _times(found["worker_loop_ms"], 1e-3),
        "gpu_pct": found["gpu_pct"],
        "gpu_memory": _times(found["gpu_memory_mib"], 1 << 20),
        "scheduler": {
            "cpu_pct": found["scheduler_cpu_pct"],
            "memory": found["scheduler_memory_bytes"],
            "loop_interval": _times(found["scheduler_loop_ms"], 1e-3),
        },
        "itself": {
            "cpu_seconds": _times(found["self_cpu_us"], 1e-6),
            "slowest_seconds": _times(found["self_slowest_us"], 1e-6),
            "messages": found["self_messages"],
            "bytes": found["self_bytes"],
            "failed_tries": found["self_failed_tries"],
            "detail": found["self_detail"],
            "lost": found["lost"],
        },
        "phase": found["phase"],
        "reason": found["reason"],
    }


def _worker_sample(found: Record) -> Record:
    memory, managed = found["memory_mib"], found["managed_mib"]
    return {
        "time": found["at"],
        "status": found["status"],
        "threads": found["n_threads"],
        "memory": memory << 20,
        "managed": managed << 20,
        "unmanaged": max(0, memory - managed) << 20,
        "spilled": found["spilled_mib"] << 20,
        "memory_limit": found["memory_limit_mib"] << 20,
        **{name: found[name] for name in ("cpu_pct", "executing", "ready", "in_memory")},
        **{name: _times(found[column], 1024) for name, column in _RATES.items()},
        "loop_interval": _times(found["loop_interval_ms"], 1e-3),
        "gpu_pct": found["gpu_pct"],
        "gpu_memory": _times(found["gpu_memory_mib"], 1 << 20),
    }


def _times(value: int | None, unit: float) -> Any:
    """None stays None: the message was older than the column."""
    return None if value is None else value * unit

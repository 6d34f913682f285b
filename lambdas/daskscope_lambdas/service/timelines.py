"""A cluster and its workers over time, in as many points as are asked for. Times are left as datetimes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.found import Asker, Found, Record, found_in, seconds
from daskscope_lambdas.service.records import STATES

Between = tuple[datetime | None, datetime | None]
"""Both included; None has no end there."""


class Timelines:
    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def cluster(self, row: ClusterRow, points: int, between: Between = (None, None)) -> Found:
        """A cluster's totals over time, in at most `points` points, oldest first."""
        since, until = between
        answer = self._asker.ask_of(row, "samples", points=points, since=since, until=until)
        return found_in([_sample(found) for found in answer.records()], answer)

    def worker(self, row: ClusterRow, worker: str, points: int, between: Between = (None, None)) -> Found:
        """One worker (its address) over time, in at most `points` points, oldest first."""
        since, until = between
        answer = self._asker.ask_of(row, "worker_samples", worker=worker, points=points, since=since, until=until)
        return found_in([_worker_sample(found) for found in answer.records()], answer)


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

"""For tests of what speaks daskscope's format: messages like those that a plugin makes.

from daskscope.testing import message
message(seq=3, cluster="ab" * 16)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from daskscope import wire

START_MS = 1_795_248_000_000
"""2026-11-21T08:00:00Z: when the factories' clusters start."""
INTERVAL_MS = 10_000
CLUSTER = "5e0cb1a94f7d4c2e9ab83d6f12e7c5d0"
"""The cluster of `message`, unless it is told another."""


def boot_at(ms: int, random: int = 0xDA5C) -> str:
    """The name of a boot that began at `ms` (epoch milliseconds)."""
    return f"{ms:012x}{random:012x}"


def identity(**changes: Any) -> wire.Identity:
    values: dict[str, Any] = {
        "scheduler_id": f"Scheduler-{UUID(CLUSTER)}",
        "name": "demo",
        "user": "ada",
        "host": "laptop",
        "address": "tcp://127.0.0.1:8786",
        "dashboard": "http://127.0.0.1:8787/status",
        "started_at_ms": START_MS,
        "python": "3.11.7",
        "versions": {"distributed": "2026.8.0"},
        "platform": "Linux x86_64",
        "tags": {"team": "weather"},
        "plugin_version": "0.1.0",
    }
    return wire.Identity(**values | changes)


def workers(addresses: Sequence[str], **columns: Sequence[Any]) -> wire.Workers:
    """One entry per address; a column not given has the same plain value for each."""
    plain: dict[str, Any] = {
        "name": "w",
        "status": "running",
        "n_threads": 2,
        "memory_limit_mib": 4096,
        "memory_mib": 512,
        "managed_mib": 128,
        "spilled_mib": 0,
        "cpu_pct": 150,
        "executing": 2,
        "ready": 5,
        "in_memory": 10,
        "net_read_kib_s": 64,
        "net_write_kib_s": 32,
        "disk_read_kib_s": 8,
        "disk_write_kib_s": 4,
        "loop_interval_ms": 20,
    }
    filled = {name: [value] * len(addresses) for name, value in plain.items()}
    return wire.Workers(address=list(addresses), **filled | {name: list(column) for name, column in columns.items()})


def groups(*entries: dict[str, Any]) -> wire.Groups:
    """One entry per dict of `no`, and of what differs from a finished group of four tasks in computation 0.

    `states` and `action_us` are plain mappings here; a name that another entry has counts as 0.
    """
    plain: dict[str, Any] = {
        "name": "sum-1",
        "prefix": "sum",
        "computation": 0,
        "span": None,
        "start_ms": START_MS,
        "stop_ms": START_MS + 5_000,
        "n_tasks": 4,
        "nbytes": 4_000,
        "states": {"memory": 4},
        "action_us": {"compute": 4_000_000},
        "dependencies": [],
        "types": ["int"],
    }
    full = [plain | entry for entry in entries]
    columns = {name: [entry[name] for entry in full] for name in ("no", *plain) if name not in ("states", "action_us")}
    return wire.Groups(**columns, states=_columns(full, "states"), action_us=_columns(full, "action_us"))


def _columns(entries: Sequence[dict[str, Any]], field: str) -> dict[str, list[int]]:
    names = sorted({name for entry in entries for name in entry[field]})
    return {name: [entry[field].get(name, 0) for entry in entries] for name in names}


def exception(**changes: Any) -> wire.ExceptionFamily:
    values: dict[str, Any] = {
        "no": 0,
        "type": "ValueError",
        "text": "no such column",
        "traceback": 'File "job.py", line 3, in clean',
        "key": "clean-1",
        "prefix": "clean",
        "group": 0,
        "workers": ["tcp://127.0.0.1:40001"],
        "first_ms": START_MS + 1_000,
        "last_ms": START_MS + 2_000,
        "count": 3,
    }
    return wire.ExceptionFamily(**values | changes)


def event(**changes: Any) -> wire.Event:
    values: dict[str, Any] = {
        "no": 0,
        "at_ms": START_MS + 1_000,
        "topic": "all",
        "action": "add-worker",
        "worker": "tcp://127.0.0.1:40001",
    }
    return wire.Event(**values | changes)


def span(**changes: Any) -> wire.Span:
    values: dict[str, Any] = {
        "id": "5f0c9f2e-0000-4000-8000-000000000001",
        "name": ["etl"],
        "enqueued_ms": START_MS,
        "start_ms": START_MS + 100,
        "stop_ms": START_MS + 5_000,
    }
    return wire.Span(**values | changes)


def metrics(*entries: dict[str, Any]) -> wire.Metrics:
    """One entry per dict of what differs from four seconds on a thread's CPU, in the span of `span`."""
    plain: dict[str, Any] = {
        "span": "5f0c9f2e-0000-4000-8000-000000000001",
        "context": "execute",
        "prefix": "sum",
        "activity": "thread-cpu",
        "unit": "seconds",
        "value": 4.0,
    }
    full = [plain | entry for entry in entries]
    return wire.Metrics(**{name: [entry[name] for entry in full] for name in plain})


def tasks(n: int, **changes: Any) -> wire.Tasks:
    """`n` tasks of group 0, one a millisecond, on the workers of `message` in turn."""
    values: dict[str, Any] = {
        "from_ms": START_MS,
        "addresses": ["tcp://127.0.0.1:40001", "tcp://127.0.0.1:40002"],
        "group": [0] * n,
        "worker": [each % 2 for each in range(n)],
        "start_ms": list(range(n)),
        "duration_us": [1_000] * n,
        "nbytes": [28] * n,
        "erred": [0] * n,
    }
    return wire.Tasks(**values | changes)


def environment(**changes: Any) -> wire.Environment:
    values: dict[str, Any] = {
        "python": "3.11.7",
        "python_path": "/opt/conda/bin/python",
        "os": "Linux",
        "machine": "x86_64",
        "packages": {"distributed": "2026.8.0", "numpy": "2.1.0"},
    }
    return wire.Environment(**values | changes)


def member(**changes: Any) -> wire.Member:
    values: dict[str, Any] = {
        "no": 0,
        "role": "worker",
        "id": "tcp://127.0.0.1:40001",
        "name": "w",
        "host": "127.0.0.1",
        "joined_ms": START_MS + 500,
        "n_threads": 2,
        "memory_limit_bytes": 4 << 30,
        "agent": "running",
    }
    return wire.Member(**values | changes)


def death(**changes: Any) -> wire.Death:
    values: dict[str, Any] = {
        "no": 0,
        "at_ms": START_MS + 4_000,
        "worker": "tcp://127.0.0.1:40001",
        "name": "w",
        "host": "127.0.0.1",
        "expected": False,
        "reason": "nanny-memory",
        "memory_bytes": 4_100_000_000,
        "memory_limit_bytes": 4 << 30,
        "memory_slope_bytes_s": 80_000_000,
        "n_processing": 1,
        "processing": ["clean-1"],
        "n_results_lost": 7,
    }
    return wire.Death(**values | changes)


def logs(*entries: dict[str, Any]) -> wire.Logs:
    """One line per dict of `no`, and of what differs from a worker's warning."""
    plain: dict[str, Any] = {
        "at_ms": START_MS + 3_000,
        "level": 30,
        "logger": "distributed.worker.memory",
        "role": "worker",
        "worker": "tcp://127.0.0.1:40001",
        "text": "Worker is at 95% memory usage. Pausing.",
        "dropped": 0,
    }
    full = [plain | entry for entry in entries]
    return wire.Logs(**{name: [entry[name] for entry in full] for name in ("no", *plain)})


def profile(**changes: Any) -> wire.Profile:
    """Two stacks of `sum` tasks, looked at every 10 ms for a minute."""
    values: dict[str, Any] = {
        "from_ms": START_MS,
        "to_ms": START_MS + 60_000,
        "sample_us": 10_000,
        "frames": ["main (job.py:1)", "load (job.py:7)", "sum (job.py:9)"],
        "prefix": ["sum", "sum"],
        "stack": [[0, 1], [0, 2]],
        "count": [30, 10],
    }
    return wire.Profile(**values | changes)


def message(**changes: Any) -> wire.Message:
    """Message `seq` (0) of a cluster at work; the first one carries its identity, as the plugin's does."""
    seq = changes.get("seq", 0)
    values: dict[str, Any] = {
        "v": wire.VERSION,
        "cluster": CLUSTER,
        "boot": boot_at(START_MS),
        "seq": seq,
        "made_at_ms": START_MS + seq * INTERVAL_MS,
        "uptime_us": seq * INTERVAL_MS * 1000,
        "next_s": INTERVAL_MS / 1000,
        "identity": identity() if seq == 0 else None,
        "totals": wire.Totals(n_workers=2, n_threads=4, memory_bytes=1 << 30, thread_us=seq * 40_000_000),
        "workers": workers(["tcp://127.0.0.1:40001", "tcp://127.0.0.1:40002"]),
    }
    return wire.Message(**values | changes)

"""Workers as of their last heartbeat: O(workers), from `WorkerState.metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from daskscope import wire

if TYPE_CHECKING:
    from distributed import Scheduler

MIB, KIB = 1 << 20, 1 << 10
MAX_WHOLE = (1 << 31) - 1
"""What a column of the lake holds; no worker has 2 PiB of memory."""


def read_workers(scheduler: Scheduler) -> wire.Workers:
    """One entry per connected worker. A metric that a worker did not send, or not as a number, is 0."""
    columns = wire.Workers()
    for state in scheduler.workers.values():
        metrics: dict[str, Any] = state.metrics
        counts = _mapping(metrics.get("task_counts"))
        network = _mapping(metrics.get("host_net_io"))
        disk = _mapping(metrics.get("host_disk_io"))
        spilled = _mapping(metrics.get("spilled_bytes"))
        columns.address.append(state.address)
        columns.name.append(str(state.name))
        columns.status.append(state.status.name)
        columns.n_threads.append(state.nthreads)
        columns.memory_limit_mib.append(_whole(state.memory_limit, MIB))
        columns.memory_mib.append(_whole(metrics.get("memory"), MIB))
        columns.managed_mib.append(_whole(metrics.get("managed_bytes"), MIB))
        columns.spilled_mib.append(_whole(spilled.get("disk"), MIB))
        columns.cpu_pct.append(_whole(metrics.get("cpu")))
        columns.executing.append(_whole(counts.get("executing")))
        columns.ready.append(_whole(counts.get("ready")))
        columns.in_memory.append(_whole(counts.get("memory")))
        columns.net_read_kib_s.append(_whole(network.get("read_bps"), KIB))
        columns.net_write_kib_s.append(_whole(network.get("write_bps"), KIB))
        columns.disk_read_kib_s.append(_whole(disk.get("read_bps"), KIB))
        columns.disk_write_kib_s.append(_whole(disk.get("write_bps"), KIB))
        columns.loop_interval_ms.append(_whole(metrics.get("event_loop_interval"), 1e-3))
    return columns


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: object, unit: float = 1) -> int:
    """`value` in whole units; 0 for what is no finite number, for users may put anything into worker metrics."""
    try:
        whole = round(value / unit)  # type: ignore[operator]  # decided by trying: it costs least on the usual path
    except (TypeError, ValueError, OverflowError):
        return 0
    return whole if -MAX_WHOLE <= whole <= MAX_WHOLE else 0

"""Workers as of their last heartbeat: O(workers), from `WorkerState.metrics`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from daskscope import wire

if TYPE_CHECKING:
    from distributed import Scheduler

MIB, KIB = 1 << 20, 1 << 10
MAX_WHOLE = (1 << 31) - 1
"""What a column of the lake holds; no worker has 2 PiB of memory."""


class WorkerReader:
    """Reads all workers that are connected."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.lost: Counter[str] = Counter()
        """`unreadable-metrics`: values that were no finite numbers, each time that they were met."""

    def read(self) -> wire.Workers:
        """One entry per connected worker. A metric that a worker did not send, or not as a number, is 0."""
        states = list(self._scheduler.workers.values())
        metrics: list[dict[str, Any]] = [state.metrics for state in states]
        workers = wire.Workers(
            address=[state.address for state in states],
            name=[str(state.name) for state in states],
            status=[state.status.name for state in states],
            n_threads=[state.nthreads for state in states],
            memory_limit_mib=self._wholes([state.memory_limit for state in states], MIB),
            memory_mib=self._wholes([each.get("memory", 0) for each in metrics], MIB),
            managed_mib=self._wholes([each.get("managed_bytes", 0) for each in metrics], MIB),
            spilled_mib=self._wholes(_inner(metrics, "spilled_bytes", "disk"), MIB),
            cpu_pct=self._wholes([each.get("cpu", 0) for each in metrics]),
            executing=self._wholes(_inner(metrics, "task_counts", "executing")),
            ready=self._wholes(_inner(metrics, "task_counts", "ready")),
            in_memory=self._wholes(_inner(metrics, "task_counts", "memory")),
            net_read_kib_s=self._wholes(_inner(metrics, "host_net_io", "read_bps"), KIB),
            net_write_kib_s=self._wholes(_inner(metrics, "host_net_io", "write_bps"), KIB),
            disk_read_kib_s=self._wholes(_inner(metrics, "host_disk_io", "read_bps"), KIB),
            disk_write_kib_s=self._wholes(_inner(metrics, "host_disk_io", "write_bps"), KIB),
            loop_interval_ms=self._wholes([each.get("event_loop_interval", 0) for each in metrics], 1e-3),
        )
        # Dask sends it from workers that have a GPU and pynvml; a driver that does not tell makes it None.
        if any(["gpu" in each for each in metrics]):  # noqa: C419  # a list is read in half the time
            workers.gpu_pct = self._wholes(_known(_inner(metrics, "gpu", "utilization")))
            workers.gpu_memory_mib = self._wholes(_known(_inner(metrics, "gpu", "memory-used")), MIB)
        return workers

    def _wholes(self, values: Sequence[Any], unit: float = 1) -> list[int]:
        """`values` in whole units. Users may put anything into worker metrics: where one did, each value is looked
        at."""
        try:
            wholes = list(map(float.__round__, [value / unit for value in values]))
            if min(wholes, default=0) >= -MAX_WHOLE and max(wholes, default=0) <= MAX_WHOLE:
                return wholes
        except (TypeError, ValueError, OverflowError):
            pass
        return [self._whole(value, unit) for value in values]

    def _whole(self, value: object, unit: float) -> int:
        """`value` in whole units; 0 for what is no finite number."""
        try:
            whole = round(value / unit)  # type: ignore[operator]  # decided by trying: it costs least on the usual path
            if -MAX_WHOLE <= whole <= MAX_WHOLE:
                return whole
        except (TypeError, ValueError, OverflowError):
            pass
        self.lost["unreadable-metrics"] += 1
        return 0


def _inner(metrics: Sequence[dict[str, Any]], name: str, key: str) -> list[Any]:
    """What stands under `key` of each worker's metric `name`; 0 where that is missing, NaN where it is no mapping."""
    try:
        return [each[name].get(key, 0) for each in metrics]
    except (KeyError, AttributeError):
        found = [each.get(name, {}) for each in metrics]
        return [inner.get(key, 0) if isinstance(inner, dict) else math.nan for inner in found]


def _known(values: Sequence[Any]) -> list[Any]:
    return [0 if value is None else value for value in values]

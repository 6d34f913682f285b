"""Workers as of their last heartbeat: O(workers), from `WorkerState.metrics`."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from distributed.core import Status

from daskscope import wire
from daskscope.collect.bounds import worker_name
from daskscope.collect.roster import Presence

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.scheduler import WorkerState

MIB, KIB = 1 << 20, 1 << 10
MAX_WHOLE = (1 << 31) - 1
"""What a column of the lake holds; no worker has 2 PiB of memory."""

_COLUMNS = (
    ("memory_mib", "memory", "", MIB),
    ("managed_mib", "managed_bytes", "", MIB),
    ("spilled_mib", "spilled_bytes", "disk", MIB),
    ("cpu_pct", "cpu", "", 1),
    ("executing", "task_counts", "executing", 1),
    ("ready", "task_counts", "ready", 1),
    ("in_memory", "task_counts", "memory", 1),
    ("net_read_kib_s", "host_net_io", "read_bps", KIB),
    ("net_write_kib_s", "host_net_io", "write_bps", KIB),
    ("disk_read_kib_s", "host_disk_io", "read_bps", KIB),
    ("disk_write_kib_s", "host_disk_io", "write_bps", KIB),
    ("loop_interval_ms", "event_loop_interval", "", 1e-3),
)
"""A column, the metric that it is read from, the key within that if it is a mapping, and how many make one."""
_outer = itemgetter(*dict.fromkeys(metric for _, metric, _, _ in _COLUMNS))
_rates = itemgetter("read_bps", "write_bps")
_STATUS = {status: status.name for status in Status}
"""To ask a member of an enum for its name runs Python code."""


class WorkerReader:
    """Reads all workers that are connected."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._presence = Presence(scheduler)
        self._addresses: list[str] = []
        self._names: list[str] = []
        self._limits_mib: list[int] = []
        self.lost: Counter[str] = Counter()
        """`unreadable-metrics`: values that were no finite numbers, each time that they were met."""

    def read(self) -> wire.Workers:
        """One entry per connected worker. A metric that a worker did not send, or not as a number, is 0."""
        self._presence.look(self._look_at)
        states = self._presence.states
        metrics: list[dict[str, Any]] = [state.metrics for state in states]
        # Copies: messages are encoded later, in another thread.
        workers = wire.Workers(
            address=[*self._addresses],
            name=[*self._names],
            status=[_STATUS[state.status] for state in states],
            n_threads=self._n_threads(states),
            memory_limit_mib=[*self._limits_mib],
        )
        columns = _all_at_once(metrics) or self._one_by_one(metrics)
        for (column, _, _, _), values in zip(_COLUMNS, columns, strict=True):
            setattr(workers, column, values)
        # Dask sends it from workers that have a GPU and pynvml; a driver that does not tell makes it None.
        if any(["gpu" in each for each in metrics]):  # noqa: C419  # a list is read in half the time
            workers.gpu_pct = self._wholes(_known(_inner(metrics, "gpu", "utilization")))
            workers.gpu_memory_mib = self._wholes(_known(_inner(metrics, "gpu", "memory-used")), MIB)
        return workers

    def _look_at(self, states: list[WorkerState]) -> None:
        """What never changes of a worker."""
        self._addresses = [state.address for state in states]
        self._names = [worker_name(state.name) for state in states]
        self._limits_mib = self._wholes([state.memory_limit for state in states], MIB)

    def _n_threads(self, states: list[WorkerState]) -> list[int]:
        found: list[Any] = [state.nthreads for state in states]
        is_whole = {*map(type, found)} <= {int} and max(found, default=0) <= MAX_WHOLE
        return found if is_whole else self._wholes(found)

    def _one_by_one(self, metrics: Sequence[dict[str, Any]]) -> list[list[int]]:
        """The same as `_all_at_once`, whatever users have put there."""
        return [
            self._wholes(_inner(metrics, name, key) if key else [each.get(name, 0) for each in metrics], unit)
            for _, name, key, unit in _COLUMNS
        ]

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


def _all_at_once(metrics: Sequence[dict[str, Any]]) -> list[list[int]] | None:
    """_COLUMNS of all workers in one pass, as it is once an interval; None if anything is not as Dask sends it."""
    figures: list[float] = []
    try:
        for memory, managed, spilled, cpu, counts, net, disk, tick in map(_outer, metrics):
            read_net, write_net = _rates(net)
            read_disk, write_disk = _rates(disk)
            n_of = counts.get  # states without tasks are left out
            figures += (
                memory / MIB, managed / MIB, spilled["disk"] / MIB, cpu / 1,
                n_of("executing", 0) / 1, n_of("ready", 0) / 1, n_of("memory", 0) / 1,
                read_net / KIB, write_net / KIB, read_disk / KIB, write_disk / KIB, tick / 1e-3,
            )  # fmt: skip
        wholes = list(map(float.__round__, figures))
        struct.pack(f"{len(wholes)}i", *wholes)  # the cheapest way to see that each fits into 32 bits
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, struct.error):
        return None
    return [wholes[place :: len(_COLUMNS)] for place in range(len(_COLUMNS))]


def _inner(metrics: Sequence[dict[str, Any]], name: str, key: str) -> list[Any]:
    """What stands under `key` of each worker's metric `name`; 0 where that is missing, NaN where it is no mapping."""
    try:
        return [each[name].get(key, 0) for each in metrics]
    except (KeyError, AttributeError):
        found = [each.get(name, {}) for each in metrics]
        return [inner.get(key, 0) if isinstance(inner, dict) else math.nan for inner in found]


def _known(values: Sequence[Any]) -> list[Any]:
    return [0 if value is None else value for value in values]

"""The cluster as a whole: gauges, and running totals that only grow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from daskscope import wire
from daskscope.collect.adaptive import AdaptiveReader
from daskscope.collect.bounds import MAX_BYTES, within
from daskscope.collect.clients import connected_clients
from daskscope.collect.idleness import Idleness

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.scheduler import WorkerState


MAX_THREADS = (1 << 31) - 1
"""What a column of the lake holds."""


class TotalsReader:
    """Reads gauges in O(workers + prefixes) and integrates threads over time."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._adaptive = AdaptiveReader(scheduler)
        self._idleness = Idleness()
        self._ticks: tuple[float, int] | None = None
        self._n_changes = 0
        self._n_threads = 0
        self._until_s: float | None = None
        self._thread_s = 0.0
        self._peak_memory_bytes = 0
        self._peak_workers = 0
        self._n_unreadable = 0

    @property
    def lost(self) -> Counter[str]:
        """`unreadable-adaptive`, and `unreadable-sizes`: sums over workers that were no numbers."""
        return self._adaptive.lost + Counter({"unreadable-sizes": self._n_unreadable})

    def read(self, now_s: float, steady_s: float | None = None) -> wire.Totals:
        """`steady_s` is of a clock that is never set; None: nobody sets the other."""
        steady_s = now_s if steady_s is None else steady_s
        scheduler = self._scheduler
        present = scheduler.workers.values()
        memory_bytes, managed_bytes, spilled_bytes = _memory(present)
        waiting = in_memory = erred = 0
        for prefix in scheduler.task_prefixes.values():
            states = prefix.states  # 2024.1 leaves out states that have no tasks
            waiting += states.get("waiting", 0)
            in_memory += states.get("memory", 0)
            erred += states.get("erred", 0)
        n_workers = len(present)
        self._peak_memory_bytes = max(self._peak_memory_bytes, memory_bytes)
        self._peak_workers = max(self._peak_workers, n_workers)
        timeout_s = scheduler.idle_timeout
        idle_since = scheduler.idle_since
        adaptive = self._adaptive.read(now_s)
        return wire.Totals(
            n_workers=n_workers,
            n_threads=self._whole(scheduler.total_nthreads, MAX_THREADS),
            n_clients=len(connected_clients(scheduler)),
            memory_bytes=memory_bytes,
            managed_bytes=managed_bytes,
            spilled_bytes=spilled_bytes,
            memory_limit_bytes=self._whole(sum([state.memory_limit or 0 for state in present])),
            waiting=waiting,
            queued=len(scheduler.queued),
            no_worker=len(scheduler.unrunnable),
            processing=sum([len(state.processing) for state in present]),
            in_memory=in_memory,
            erred=erred,
            held_bytes=self._whole(sum([state.nbytes for state in present])),
            idle_since_ms=self._idleness.told(
                round(idle_since * 1e3) if idle_since else None, round(now_s * 1e3), steady_s * 1e3
            ),
            idle_timeout_us=round(timeout_s * 1e6) if timeout_s else None,
            desired_workers=adaptive.desired,
            adaptive_minimum=adaptive.minimum,
            adaptive_maximum=adaptive.maximum,
            scheduler_cpu_pct=self._measured("cpu"),
            scheduler_memory_bytes=self._measured("memory"),
            scheduler_loop_ms=self._loop_ms(steady_s),
            thread_us=round(self._integrate(now_s, steady_s) * 1e6),
            peak_memory_bytes=self._peak_memory_bytes,
            peak_workers=self._peak_workers,
        )

    def _whole(self, total: object, most: int = wire.MOST_BYTES) -> int:
        """A sum over workers, for which users may have put in anything; never below 0."""
        found = within(total, most)
        self._n_unreadable += found is None
        return max(found or 0, 0)

    def _measured(self, quantity: str) -> int:
        """What the scheduler's own monitor measured last; 0 if it does not."""
        values: Any = self._scheduler.monitor.quantities.get(quantity)
        return round(values[-1]) if values else 0

    def _loop_ms(self, steady_s: float) -> int:
        """Mean time between two ticks of the event loop since the last call; what Dask has measured, the first time."""
        n_ticks = self._scheduler._tick_counter
        before, self._ticks = self._ticks, (steady_s, n_ticks)
        if before is None or steady_s <= before[0]:
            return round(self._scheduler._tick_interval_observed * 1e3)
        return round((steady_s - before[0]) / max(n_ticks - before[1], 1) * 1e3)

    def _integrate(self, now_s: float, steady_s: float) -> float:
        """Thread-seconds offered since the scheduler started, from Dask's own history of changes: O(new changes).

        Dask dates changes by the wall clock. If that is set, one may seem to lie before the last look or after this
        one; the time between the two looks is right all the same.
        """
        history = self._scheduler.total_nthreads_history
        for at_s, n_threads in history[self._n_changes :]:
            to_s = steady_s - (now_s - at_s)
            self._advance(to_s if self._until_s is None else min(max(to_s, self._until_s), steady_s))
            self._n_threads = n_threads
        self._n_changes = len(history)
        self._advance(steady_s)
        return self._thread_s

    def _advance(self, to_s: float) -> None:
        if self._until_s is not None:
            self._thread_s += max(to_s - self._until_s, 0.0) * self._n_threads
        self._until_s = to_s


def _memory(states: Iterable[WorkerState]) -> tuple[int, int, int]:
    """Bytes of all processes, managed and spilled, as `WorkerState.memory` tells them; without workers whose metrics
    do not say it in numbers that a column holds."""
    memory_bytes = managed_bytes = spilled_bytes = 0
    for state in states:
        metrics = state.metrics
        try:
            process, spilled = metrics["memory"], metrics["spilled_bytes"]
            managed, disk = state.nbytes - spilled["memory"], spilled["disk"]
            managed = 0 if managed < 0 else managed if managed < process else process
            process, managed, disk = int(process), int(managed), int(disk)
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if 0 <= process <= MAX_BYTES and 0 <= disk <= MAX_BYTES:
            memory_bytes += process
            managed_bytes += managed
            spilled_bytes += disk
    return memory_bytes, managed_bytes, spilled_bytes

"""Tasks one by one, where a setting asks for them.

Workers tell the scheduler of each task that ended by a message in their stream; its two handlers are wrapped, for
nothing else is complete: Dask keeps no task that was forgotten. Whatever goes wrong in the part that is ours is counted
and stays there, for an error in a handler costs the scheduler its worker.

Rows are kept by worker, as flat integers, until they are read. When they are MAX_ROWS, a random one of each pair goes,
and from then on one of each two, four, ... tasks is kept: of every stretch of tasks the same share, whatever their
rhythm. Times are by the scheduler's clock: workers correct them, as for Dask's own task stream.
"""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Callable
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from daskscope import wire
from daskscope.collect.groups import GroupReader

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.scheduler import TaskGroup

MAX_ROWS = 20_000
"""Rows of one message: some 130 kB of it. A scheduler that does nothing else brings about so many tasks in 10 s."""

TASK_S = 3e-6
"""CPU time that is charged for a task: as measured once, for a clock would take as long."""

_OPS = ("task-finished", "task-erred")
_WIDTH = 5
"""Integers of a row: index of the group, start in ms, duration in us, bytes, whether it failed."""
_LATEST_S = wire.LATEST_MS / 1e3
_UNITS = [10 ** max(0, len(str((1 << bits) // 2)) - 3) for bits in range(64)]
"""To what the smallest number of so many bits is rounded, so that it has three digits that say something."""


class TaskReader:
    """Notes each task that ended, from `start()` to `close()`, and hands the rows out."""

    def __init__(self, scheduler: Scheduler, groups: GroupReader) -> None:
        self._scheduler, self._groups = scheduler, groups
        self._originals: dict[str, Callable[..., Any]] = {}
        self._ours: dict[str, Callable[..., Any]] = {}
        self._random = random.Random(0)  # noqa: S311  # a fair choice, not a secret one
        self._no = self._n_noted = 0
        self.lost: Counter[str] = Counter()
        self.wanted = True
        """If not, tasks are only counted."""
        self._reset()

    def _reset(self) -> None:
        self._lanes: dict[str, array[int]] = {}
        self._seen: dict[TaskGroup, int] = {}
        self._n_rows = 0
        self._weight = 1
        self._to_skip = 0
        self._rest_of_block = 0

    @property
    def charged_s(self) -> float:
        """CPU time in Dask's handlers, a running total: an estimate."""
        return TASK_S * self._n_noted

    def start(self) -> None:
        """Wrap the handlers; one that this Dask does not have is left out."""
        handlers = self._scheduler.stream_handlers
        for op in _OPS:
            if op in handlers and op not in self._ours:
                self._originals[op] = handlers[op]
                handlers[op] = self._ours[op] = self._wrap(handlers[op], failed=op == "task-erred")

    def close(self) -> None:
        """Put Dask's handlers back where ours still stand; under somebody else's wrap ours only hands on."""
        handlers = self._scheduler.stream_handlers
        for op, ours in self._ours.items():
            if handlers.get(op) is ours:
                handlers[op] = self._originals[op]
        self._ours = {}

    def read(self) -> wire.Tasks:
        """The rows since the last call. Called before the groups are read, for these then let go what is forgotten."""
        if not self._n_rows:
            self._reset()
            return wire.Tasks()
        addresses = sorted(self._lanes)
        rows = [self._lanes[address] for address in addresses]
        numbers = [*map(self._groups.number_of, self._seen), None]  # None is the last: -1
        groups, starts_ms, durations_us, sizes, failed = (
            [*chain.from_iterable(lane[place::_WIDTH] for lane in rows)] for place in range(_WIDTH)
        )
        from_ms = min(starts_ms)
        tasks = wire.Tasks(
            first_no=self._no,
            weight=self._weight,
            from_ms=from_ms,
            addresses=addresses,
            group=[numbers[index] for index in groups],
            worker=[*chain.from_iterable(repeat(n, len(lane) // _WIDTH) for n, lane in enumerate(rows))],
            start_ms=[start_ms - from_ms for start_ms in starts_ms],
            duration_us=durations_us,
            nbytes=sizes,
            erred=failed,
        )
        self._no += self._n_rows
        self._reset()
        return tasks

    def _wrap(self, original: Callable[..., Any], *, failed: bool) -> Callable[..., Any]:
        def handle(**message: Any) -> Any:
            if self._ours:
                self._note(message, failed)
            return original(**message)

        return handle

    def _note(self, message: dict[str, Any], failed: bool) -> None:
        self._n_noted += 1
        try:
            if not self.wanted:
                self.lost["tasks"] += 1
                return
            if self._weight > 1 and not self._is_chosen():
                return
            spans = message["startstops"]
            computed = spans[-1]
            if computed["action"] != "compute":
                computed = next(span for span in reversed(spans) if span["action"] == "compute")
            start_s, stop_s = computed["start"], computed["stop"]
            nbytes = message.get("nbytes") or 0
            worker = message["worker"]
            # Not a number is in no range.
            if not (0 <= start_s < _LATEST_S and 0 <= stop_s < _LATEST_S and 0 <= nbytes <= wire.MOST_BYTES):
                raise ValueError(computed)
            duration_us = max(round((stop_s - start_s) * 1e6), 0)
            unit = _UNITS[duration_us.bit_length()]
            if duration_us >= 1000 * unit:
                unit *= 10
            task = self._scheduler.tasks.get(message["key"])
            seen = self._seen
            row = (
                -1 if task is None else seen.setdefault(task.group, len(seen)),
                round(start_s * 1e3),
                (duration_us + unit // 2) // unit * unit,
                int(nbytes),
                failed,
            )
            lane = self._lanes.get(worker)
            if lane is None:
                if not isinstance(worker, str):
                    raise TypeError(worker)
                lane = self._lanes[worker] = array("q")
            lane.extend(row)
            self._n_rows += 1
            if self._n_rows >= MAX_ROWS:
                self._halve()
        except Exception:  # noqa: BLE001  # host first
            self.lost["tasks"] += self._weight

    def _is_chosen(self) -> bool:
        """Of each `weight` tasks one, at random."""
        if not self._rest_of_block:
            self._rest_of_block = self._weight
            self._to_skip = self._random.randrange(self._weight)
        self._rest_of_block -= 1
        self._to_skip -= 1
        return self._to_skip == -1

    def _halve(self) -> None:
        """Let one of each two rows go."""
        for worker, lane in self._lanes.items():
            kept = array("q")
            for place in range(0, len(lane), 2 * _WIDTH):
                place += self._random.getrandbits(1) * _WIDTH  # a last one without a pair stays every other time
                kept += lane[place : place + _WIDTH]
            self._lanes[worker] = kept
        self._n_rows = sum(map(len, self._lanes.values())) // _WIDTH
        self._weight *= 2
        self._rest_of_block = 0

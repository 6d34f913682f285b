"""Workers as they come, looked for oftener than a message is made: who comes and goes in between is known as well.

Dask's events say that such a worker came and went, but neither its name nor its limits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from distributed.metrics import time
from tornado.ioloop import PeriodicCallback

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.scheduler import WorkerState

LOOK_S = 0.2
"""From one look to the next; while nobody comes or goes, it costs the length of a list."""
MAX_SIGHTED = 10_000
"""So many new ones are remembered from one message to the next."""


class Presence:
    """The workers that are there, and what is kept of them as long as no other comes and none goes."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.states: list[WorkerState] = []
        """Those of the last look, in the scheduler's order."""

    def look(self, read: Callable[[list[WorkerState]], None]) -> None:
        """Has those who are there `read` if they are others than at the last look, or if that failed then. Else it
        costs the comparison of two lists of the same objects."""
        states = [*self._scheduler.workers.values()]
        if states != self.states:
            read(states)
            self.states = states


class Roster:
    """Who was there since the last message, and is perhaps there no more."""

    def __init__(self, scheduler: Scheduler, now: Callable[[], float] = time) -> None:
        self._scheduler, self._now = scheduler, now
        self._seen: dict[str, WorkerState] = {}
        self._n_changes = -1
        self._sighted: dict[str, list[tuple[float, WorkerState]]] = {}
        self._n_sighted = 0
        self._timer = PeriodicCallback(self._look_between, LOOK_S * 1e3)

    def start(self) -> None:
        self._timer.start()

    def close(self) -> None:
        self._timer.stop()

    def look(self) -> None:
        """Remember those that are new."""
        n_changes = len(self._scheduler.total_nthreads_history)  # Dask adds to it for each that comes or goes
        if n_changes == self._n_changes:
            return
        self._n_changes = n_changes
        workers, now_s = dict(self._scheduler.workers), self._now()
        for address, state in workers.items():
            if self._seen.get(address) is not state and self._n_sighted < MAX_SIGHTED:
                self._sighted.setdefault(address, []).append((now_s, state))
                self._n_sighted += 1
        self._seen = workers

    def find(self, address: str, since_s: float, until_s: float) -> WorkerState | None:
        """Who was first seen there in that time (epoch seconds of the scheduler); None if it was not seen since the
        last `forget`."""
        return next((state for at_s, state in self._sighted.get(address, ()) if since_s <= at_s <= until_s), None)

    def forget(self) -> None:
        """Called once a message has told of all."""
        self._sighted.clear()
        self._n_sighted = 0

    def _look_between(self) -> None:
        with contextlib.suppress(Exception):  # a scheduler that is half gone
            self.look()

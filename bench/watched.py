"""A watch over a fleet, driven by hand: no thread, no timer, no network."""

from __future__ import annotations

from dataclasses import replace

from bench.fleet import Fleet
from daskscope import settings, wire
from daskscope.compression import Encoding
from daskscope.transport import Outcome
from daskscope.watch import Watch


class Kept:
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.encodings: list[Encoding] = []

    def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
        del name, is_own
        self.bodies.append(body)
        self.encodings.append(encoding)
        return Outcome("kept", "")

    def close(self) -> None:
        pass


class Watched:
    """A fleet at work and the watch on it. Each `interval()` is one of steady state."""

    def __init__(self, fleet: Fleet, n_tasks_per_interval: int = 0, *, tasks: bool = False) -> None:
        self.fleet = fleet
        self._n_tasks = n_tasks_per_interval
        self._left = 0
        # Polled without a pause it would be over its budget, and hold back.
        self.watch = Watch(fleet.scheduler, replace(settings.load(), tasks=tasks, budget_pct=None), Kept())
        self.watch.sender.start = lambda: None
        self.watch.start()

    def advance(self) -> None:
        """What happens to a cluster between two polls: tasks end, workers beat."""
        # The next graph comes before the last one ends: a cluster at work, with a computation in hand.
        if self._left < 2 * self._n_tasks:
            self.fleet.submit_stages(10 * self._n_tasks)
            self._left += 10 * self._n_tasks
        self._left -= self.fleet.finish(self._n_tasks)
        self.fleet.beat()

    def take(self) -> wire.Message:
        """The message of a poll made now."""
        self.watch.poll()
        return self.watch.sender._inbox.pop()

    def interval(self) -> wire.Message:
        """The message of one interval."""
        self.advance()
        return self.take()

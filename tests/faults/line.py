"""A plugin's sender at the usual pace of a cluster, in time that passes as a number: hours take seconds.

The sender is the real one, and so are the bytes, the sockets and the server. No thread of it runs: where it would wait,
the clock jumps to what comes next.
"""

from __future__ import annotations

import heapq
import itertools
import random
import threading
from collections.abc import Callable
from typing import Any

from daskscope import testing, wire
from daskscope.compression import Encoding
from daskscope.outcome import Outcome
from daskscope.sender import Sender
from daskscope.transport import DEADLINE_S, Transport
from daskscope_lambdas.testing import FakeClock
from tests.faults.oracle import Oracle

PACE_S = testing.INTERVAL_MS / 1000
QUICK_S = 0.01
"""What an attempt takes that does not time out."""


class _NothingElseError(Exception):
    """Nothing waits to be sent, and nothing is due any more."""


class Line:
    """`at` says what happens when; `run` lets it happen."""

    def __init__(self, transport: Transport, clock: FakeClock, oracle: Oracle, seed: int = 0, **sender: Any) -> None:
        self.clock, self.oracle = clock, oracle
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()
        self.n_attempts = 0
        self.sender = Sender(
            _Timed(transport, self), lambda _: None, monotonic=lambda: clock.at, jitter=random.Random(seed).random,
            **sender,
        )  # fmt: skip
        self.sender._wake = _Jumps(self)

    def at(self, when: float, act: Callable[[], object]) -> None:
        heapq.heappush(self._due, (when, next(self._order), act))

    def put_every(self, make: Callable[[int], wire.Message], n: int, pace_s: float = PACE_S, first: int = 0) -> None:
        """Messages `first` to `first + n - 1`, each made when its time has come."""

        def put(seq: int) -> None:
            message = make(seq)
            self.oracle.number(message)
            self.sender.put(message)

        for step in range(n):
            self.at(self.clock.at + step * pace_s, lambda seq=first + step: put(seq))

    def run(self, until: float = float("inf")) -> None:
        """Until then, or until nothing is left to do."""
        ended = list[bool]()
        if until < float("inf"):
            self.at(until, lambda: ended.append(True))
        try:
            while not ended and self.sender._step():
                pass
        except _NothingElseError:
            pass

    def advance(self, seconds: float) -> None:
        """Time passes, and what is due in it happens at its time."""
        end = self.clock.at + seconds
        while self._due and self._due[0][0] <= end:
            when, _, act = heapq.heappop(self._due)
            self.clock.at = max(self.clock.at, when)
            act()
        self.clock.at = max(self.clock.at, end)

    def jump(self, at_most_s: float | None) -> None:
        """To what is due next, or by so much. Raises _NothingElseError."""
        if self._due and (at_most_s is None or self._due[0][0] <= self.clock.at + at_most_s):
            self.advance(max(self._due[0][0] - self.clock.at, 0.0))
        elif at_most_s is None:
            raise _NothingElseError
        else:
            self.advance(at_most_s)


class _Jumps(threading.Condition):
    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line

    def wait(self, timeout: float | None = None) -> bool:
        self._line.jump(timeout)
        return True


class _Timed:
    """Takes a moment for each attempt, and as long as a request may last for one that timed out."""

    def __init__(self, inner: Transport, line: Line) -> None:
        self._inner, self._line = inner, line

    def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
        outcome = self._inner.deliver(name, body, encoding, is_own=is_own)
        self._line.n_attempts += 1
        if outcome.verdict == "kept":
            self._line.oracle.acknowledge(name, body, encoding)
        self._line.advance(DEADLINE_S if "Timeout" in outcome.reason else QUICK_S)
        return outcome

    def close(self) -> None:
        self._inner.close()

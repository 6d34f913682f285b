"""B13: a thousand clusters come back at the same moment."""

from __future__ import annotations

import heapq
import random
import threading
from collections import Counter
from collections.abc import Callable

from daskscope import testing
from daskscope.compression import Encoding
from daskscope.outcome import Outcome
from daskscope.sender import Sender
from tests.faults.line import PACE_S
from tests.faults.row import Row

WINDOW_S = 10.0
LIMIT = 3.0
"""Times the steady rate, after an outage of a minute. After ten, each has sixty messages that are to be there within a
minute: that alone is seven times the rate."""
UNLIMITED = "peak_to_steady_after_10_minutes,_for_which_no_limit_is_promised"
BEFORE_S, AFTER_S = 60.0, 300.0


class _PausedError(Exception):
    def __init__(self, pause_s: float | None) -> None:
        super().__init__()
        self.pause_s = pause_s


class _Pauses(threading.Condition):
    def wait(self, timeout: float | None = None) -> bool:
        raise _PausedError(timeout)


class _Herd:
    """Senders, real ones, whose steps come in the order of a common clock; the server is a count of requests."""

    def __init__(self, n: int, outage_s: float) -> None:
        self.now = 0.0
        self._down, self._up = BEFORE_S, BEFORE_S + outage_s
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._n_events = 0
        self._chance = random.Random(13)
        self.requests = Counter[int]()
        """After the outage, by window."""
        self.kept = set[str]()
        self.n_repeats = 0
        self.n_put = 0
        self.senders = [self._sender() for _ in range(n)]

    def run(self) -> None:
        end = self._up + AFTER_S
        for number, sender in enumerate(self.senders):
            # Clusters start at any time, and each keeps its own pace.
            self._at(self._chance.random() * PACE_S, lambda number=number, sender=sender: self._put(number, sender, 0))
        while self._events and self._events[0][0] < end:
            self.now, _, act = heapq.heappop(self._events)
            act()

    def _sender(self) -> Sender:
        chance = random.Random(self._chance.random())
        sender = Sender(self, lambda _: None, monotonic=lambda: self.now, jitter=chance.random)
        sender._wake = _Pauses()
        return sender

    def _put(self, number: int, sender: Sender, seq: int) -> None:
        sender.put(testing.message(seq=seq, cluster=f"{number:032x}", workers=testing.workers([])))
        self.n_put += 1
        self._at(self.now + PACE_S, lambda: self._put(number, sender, seq + 1))
        self._step(sender)

    def _step(self, sender: Sender) -> None:
        try:
            while sender._step():
                pass
        except _PausedError as paused:
            if paused.pause_s is not None:
                self._at(self.now + paused.pause_s, lambda: self._step(sender))

    def _at(self, when: float, act: Callable[[], object]) -> None:
        self._n_events += 1
        heapq.heappush(self._events, (when, self._n_events, act))

    def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
        if self._down <= self.now < self._up:
            return Outcome("again", "ConnectError")
        self.n_repeats += name in self.kept
        self.kept.add(name)
        if self.now >= self._up:
            self.requests[int((self.now - self._up) // WINDOW_S)] += 1
        return Outcome("kept", "")

    def close(self) -> None:
        """Nothing is held open."""


def run(short: bool) -> Row:
    n = 100 if short else 1000
    steady = n * WINDOW_S / PACE_S
    minute = _Herd(n, 60.0)
    minute.run()
    peak = max(minute.requests.values()) / steady
    figures = {
        "steady_per_s": steady / WINDOW_S,
        "peak_per_s": max(minute.requests.values()) / WINDOW_S,
        "peak_to_steady": round(peak, 2),
    }
    missing, repeats = minute.n_put - len(minute.kept), minute.n_repeats
    if not short:
        ten = _Herd(n, 600.0)
        ten.run()
        figures[UNLIMITED] = round(max(ten.requests.values()) / steady, 2)
        missing, repeats = missing + ten.n_put - len(ten.kept), repeats + ten.n_repeats
    return Row(
        id="B13",
        what=f"{n:,} clusters whose server was away for a minute come back: at most {LIMIT:.0f} times the steady rate",
        tried=minute.n_put,
        lost=missing,
        doubled=repeats,
        held=peak <= LIMIT and not missing and not repeats,
        figures=figures,
    )

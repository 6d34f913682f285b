"""When the next try is due: pauses that grow after a failure, and a slow catching up afterwards."""

from __future__ import annotations

from collections.abc import Callable

from daskscope.outcome import Outcome

BACKOFF_BASE_S = 1.0
BACKOFF_CAP_S = 60.0
PROBE_S = 600.0
"""With a token that the server denies, one message is tried so often: somebody may mend it."""
DRAIN_S = 0.5
"""From one message to the next of those that waited: others come back to the same server at the same time."""
CLOSING_TRIES = 2
"""When the scheduler closes, a server that fails so often in a row is given up at once: nobody waits for it."""


class Pace:
    """Of one sender. `jitter` gives a number from 0 to 1."""

    def __init__(self, monotonic: Callable[[], float], jitter: Callable[[], float]) -> None:
        self._monotonic, self._jitter = monotonic, jitter
        self._not_before = 0.0
        self._is_draining = False
        self.n_failures = 0
        """In a row."""
        self.interval_s = 2 * DRAIN_S
        """At which messages are made: those that wait are to grow fewer at any."""
        self.is_closing = False

    @property
    def has_given_up(self) -> bool:
        return self.is_closing and self.n_failures >= CLOSING_TRIES

    @property
    def pause_s(self) -> float:
        return max(self._not_before - self._monotonic(), 0.0)

    def close(self) -> None:
        """From now on nobody is waited for."""
        self.is_closing = True
        self._not_before, self.n_failures = 0.0, 0

    def answered(self, *, has_more: bool) -> None:
        """For good, whatever the answer; `has_more`: others wait for their turn."""
        self._is_draining = (self._is_draining or self.n_failures > 0) and has_more
        self.n_failures = 0
        self._take_breath()

    def drain(self, *, has_more: bool) -> None:
        """What is sent now is no message of this moment: not all of it at once."""
        self._is_draining = has_more

    def failed(self, outcome: Outcome) -> None:
        self.n_failures += 1
        self._not_before = self._monotonic() + self._backoff_s(outcome)

    def _take_breath(self) -> None:
        if self._is_draining and not self.is_closing:
            self._not_before = self._monotonic() + min(DRAIN_S, self.interval_s / 2)

    def _backoff_s(self, outcome: Outcome) -> float:
        if self.is_closing:
            return self._jitter() * BACKOFF_BASE_S
        if outcome.verdict == "denied":
            return PROBE_S
        ceiling_s = min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2 ** min(self.n_failures, 10))
        return max(outcome.wait_s, self._jitter() * ceiling_s)

"""How much thread time the cluster offered between two moments, from Dask's own history of its threads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence


class ThreadTime:
    """Sums kept beside `Scheduler.total_nthreads_history`, so that a question costs the logarithm of its length."""

    def __init__(self, history: Sequence[tuple[float, int]]) -> None:
        self._history = history
        self._at_s: list[float] = []
        self._before_s: list[float] = []
        """Thread seconds offered until each of these moments."""

    def between(self, start_s: float, stop_s: float) -> float:
        """Thread seconds; 0 where the times are the wrong way round."""
        for at_s, _ in self._history[len(self._at_s) :]:
            # The clock may have been set back: then no time has passed, rather than a negative one.
            at_s = max(at_s, self._at_s[-1]) if self._at_s else at_s
            self._before_s.append(self._until(at_s))
            self._at_s.append(at_s)
        return max(self._until(stop_s) - self._until(start_s), 0.0)

    def _until(self, at_s: float) -> float:
        n = bisect_right(self._at_s, at_s) - 1
        return self._before_s[n] + (at_s - self._at_s[n]) * self._history[n][1] if n >= 0 else 0.0

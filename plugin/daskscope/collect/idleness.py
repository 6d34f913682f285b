"""Since when a scheduler has had nothing to do, though its clock may be set meanwhile."""

from __future__ import annotations

RIGHT_MS = 2_000
"""What is told stays as it is while the clock agrees so far: its number names the stretch of idleness."""


class Idleness:
    """Keeps how long by a clock that is never set, and tells it by the one that Dask reads."""

    def __init__(self) -> None:
        self._since_ms: int | None = None
        """As Dask has it."""
        self._began_ms = 0.0
        """By the clock that is never set."""
        self._told_ms = 0

    def told(self, since_ms: int | None, now_ms: int, steady_ms: float) -> int | None:
        """`since_ms`, as Dask has it, and `now_ms` are of the wall clock, and so is the answer: from it to now it is as
        long as by `steady_ms`, and never negative."""
        if since_ms != self._since_ms:
            self._since_ms = since_ms
            if since_ms is not None:
                self._told_ms = min(since_ms, now_ms)
                self._began_ms = steady_ms - (now_ms - self._told_ms)
        if since_ms is None:
            return None
        true_ms = now_ms - (steady_ms - self._began_ms)
        if abs(true_ms - self._told_ms) > RIGHT_MS:
            self._told_ms = max(round(true_ms), 0)
        return self._told_ms

"""A longer memory in place of one of Dask's short ones, from one read to the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

HISTORY = 20_000
"""Failed tasks and computations that the scheduler may keep from one read to the next, instead of 100."""

T = TypeVar("T")


class LongMemory(deque[T]):
    """It is read before Dask clears it: `client.restart()` does."""

    def __init__(self, known: deque[T], before_clear: Callable[[], None]) -> None:
        self.kept = known.maxlen or HISTORY
        """How many Dask itself keeps."""
        self.n_ever = len(known)
        """How many were put at its left, where the youngest failed task is, with those it began with."""
        super().__init__(known, max(HISTORY, self.kept))
        self._before_clear = before_clear

    def appendleft(self, item: T, /) -> None:
        """Called by Dask for each task that fails: it counts, and nothing else."""
        self.n_ever += 1
        super().appendleft(item)

    def clear(self) -> None:
        self._before_clear()
        super().clear()

    def __copy__(self) -> deque[T]:
        return deque(self, self.maxlen)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leaves the scheduler as the deque it stands for: what is ours, with the token in it, does not go along."""
        return deque, (list(self), self.maxlen)

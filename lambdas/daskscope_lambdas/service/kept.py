"""What was looked up a moment ago, and is asked for with nearly every request."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from daskscope_lambdas.ports import Clock, Missing

KEPT_S = 60.0
"""So long a change may go unseen where the same was looked up just before."""
MOST = 1000
"""Answers that are kept at a time: those that were not asked for the longest go first."""

K = TypeVar("K")
V = TypeVar("V")


class Kept(Generic[K, V]):
    """What `find` found, for KEPT_S seconds; None, which is not kept, where it is Missing: who is let in is let in at
    once. Safe to use from many threads.
    """

    def __init__(self, find: Callable[[K], V], clock: Clock) -> None:
        self._find, self._clock = find, clock
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """Raises what `find` does, but for Missing."""
        now = self._clock.now()
        with self._lock:
            kept = self._kept.get(key)
            if kept and 0 <= now - kept[0] < KEPT_S:
                self._kept.move_to_end(key)
                return kept[1]
        try:
            found = self._find(key)
        except Missing:
            return None
        with self._lock:
            self._kept[key] = (now, found)
            self._kept.move_to_end(key)
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return found

    def last(self, key: K) -> V | None:
        """What was found last, however long ago; None where it is not known any more."""
        with self._lock:
            kept = self._kept.get(key)
        return kept[1] if kept else None

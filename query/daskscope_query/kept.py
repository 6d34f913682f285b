"""A cache of a process, bounded; safe to use from many threads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

V = TypeVar("V")


class Kept(Generic[V]):
    """Values of at most `limit` together, each of the size it was put with; the least recently used go first."""

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, Lock()
        self._values = OrderedDict[Hashable, tuple[V, int]]()
        self._size = 0

    def get(self, key: Hashable) -> V | None:
        """None if it is not, or no longer, there."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Hashable, value: V, size: int) -> None:
        with self._lock:
            self._size += size - self._values.pop(key, (None, 0))[1]
            self._values[key] = value, size
            while self._size > self._limit:
                self._size -= self._values.popitem(last=False)[1][1]

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
            self._size = 0

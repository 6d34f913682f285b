"""A longer memory in place of one of Dask's topics: bounded in messages, and in bytes where these are many.

Dask's own memory of a topic is bounded in messages alone. As many as Dask would keep anyway stay whatever their size;
those beyond share MAX_BYTES with all other topics.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any, cast

HISTORY = 20_000
"""Messages of a topic that the scheduler may keep from one read to the next, instead of 1,000."""
MAX_BYTES = 16 << 20
"""Of messages beyond Dask's own memories, over all topics, roughly; the oldest of a topic that grows give way."""

_FLAT = frozenset((str, bytes, int, float, bool, type(None)))
_CONTAINERS = frozenset((dict, list, tuple, set, frozenset))
_SAMPLED = 8
"""So many items of a container are looked at, and stand for the others."""
_DEPTH = 3
_UNKNOWN = 1_000
"""Bytes of what cannot be sized without the user's code."""


@dataclass(slots=True)
class Excess:
    """What all topics of a scheduler hold beyond Dask's own memories."""

    n_bytes: int = 0
    n_sized: int = 0
    """Messages that ever came, a running total."""


class History(deque[Any]):
    """`own`: how many messages Dask itself would keep."""

    def __init__(self, known: Iterable[Any], own: int, excess: Excess) -> None:
        self.own, self._excess = own, excess
        super().__init__(known, HISTORY)
        self._sizes = deque((_guarded_size(event) for event in self), HISTORY)

    def append(self, event: Any, /) -> None:
        """Called by Dask for each message: never raises."""
        was_full = len(self) == self.maxlen
        super().append(event)
        try:
            self._count(event, was_full)
        except Exception:  # noqa: BLE001  # host first: then all of them count as unknown
            self._sizes = deque(repeat(_UNKNOWN, len(self)), HISTORY)

    def _count(self, event: object, was_full: bool) -> None:
        size = _guarded_size(event)
        self._excess.n_sized += 1
        if was_full:
            self._excess.n_bytes -= self._sizes[0]
        self._sizes.append(size)
        if len(self) > self.own:
            self._excess.n_bytes += size
            while self._excess.n_bytes > MAX_BYTES and len(self) > self.own:
                self.popleft()

    def popleft(self) -> Any:
        if len(self) > self.own:
            self._excess.n_bytes -= self._sizes[0]
        self._sizes.popleft()
        return super().popleft()

    def clear(self) -> None:
        super().clear()
        self._sizes.clear()

    def excess_bytes(self) -> int:
        """Of what is kept beyond Dask's own length; found anew, for Dask lets go of whole topics."""
        return sum(islice(self._sizes, max(len(self) - self.own, 0)))

    def __copy__(self) -> deque[Any]:
        return deque(self, self.own)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leaves the scheduler as the deque it stands for."""
        return deque, (list(self), self.own)


def _guarded_size(event: object) -> int:
    try:
        return _size(event)
    except Exception:  # noqa: BLE001  # a payload that another thread is changing
        return _UNKNOWN


def _size(value: object, depth: int = 0) -> int:
    """Bytes of a payload, roughly, in a bounded time and without running code of the user's."""
    kind = type(value)
    if kind in _FLAT:
        return sys.getsizeof(value)
    if kind not in _CONTAINERS or depth > _DEPTH:
        return _UNKNOWN
    size = sys.getsizeof(value)
    if kind is dict:
        pairs = cast("Mapping[object, object]", value)
        parts = [_size(key, depth + 1) + _size(item, depth + 1) for key, item in islice(pairs.items(), _SAMPLED)]
    else:
        parts = [_size(item, depth + 1) for item in islice(cast("Iterable[object]", value), _SAMPLED)]
    n_items = len(cast("set[object]", value))
    return size + (sum(parts) * n_items // len(parts) if parts else 0)

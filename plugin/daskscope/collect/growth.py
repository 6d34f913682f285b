"""How fast workers' memory grows: looked up only when somebody wants to know."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from daskscope import wire

N_READS = 6
LEAST_S = 1.0
"""Over a shorter time nothing is said: it would be noise."""
MIB = 1 << 20

Point = tuple[float, int]
"""Epoch seconds of the scheduler, bytes."""


class Growth:
    """Memory of all workers at the last reads. Adding one is O(1): the message's own columns are held."""

    def __init__(self) -> None:
        self._reads: deque[tuple[float, list[str], list[int]]] = deque(maxlen=N_READS)
        self._tables: list[tuple[float, dict[str, int]]] | None = None

    def add(self, at_s: float, workers: wire.Workers) -> None:
        if self._reads and at_s <= self._reads[-1][0]:
            self._reads.clear()  # the clock was set back
        self._reads.append((at_s, workers.address, workers.memory_mib))
        self._tables = None

    def of(self, address: str) -> list[Point]:
        """What is known of one worker, oldest first."""
        if self._tables is None:
            self._tables = [(at_s, dict(zip(names, memory, strict=True))) for at_s, names, memory in self._reads]
        return [(at_s, table[address] * MIB) for at_s, table in self._tables if address in table]


def slope(points: Sequence[Point]) -> int:
    """Bytes per second, by least squares; 0 if the points say nothing."""
    if len(points) < 2 or points[-1][0] - points[0][0] < LEAST_S:
        return 0
    mean_s = sum(at_s for at_s, _ in points) / len(points)
    mean_bytes = sum(value for _, value in points) / len(points)
    together = sum((at_s - mean_s) * (value - mean_bytes) for at_s, value in points)
    return round(together / sum((at_s - mean_s) ** 2 for at_s, _ in points))

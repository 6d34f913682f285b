"""Time as places from 0 to WIDTH, for lines and bars that stand under each other. Whole numbers: they are few bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

WIDTH, HEIGHT = 1000, 60
_LEAST = 3
"""A bar is so wide at least, for what was short was there, too."""


@dataclass(frozen=True, slots=True)
class Axis:
    start: datetime
    stop: datetime

    @property
    def span_s(self) -> float:
        """Seconds, never 0."""
        return (self.stop - self.start).total_seconds() or 1.0

    def place(self, at: datetime) -> int:
        """What lies outside stands at the end."""
        return min(max(round(WIDTH * (at - self.start).total_seconds() / self.span_s), 0), WIDTH)

    def bar(self, start: datetime | None, stop: datetime | None) -> str:
        """An SVG path, 6 high; without a stop it lasts to the end, without a start it is empty."""
        if start is None:
            return ""
        x = min(self.place(start), WIDTH - _LEAST)
        width = max((WIDTH if stop is None else self.place(stop)) - x, _LEAST)
        return f"M{x} 0h{width}v6h-{width}"

    def line(self, times: Sequence[datetime], values: Sequence[float], top: float) -> str:
        """An SVG path, HEIGHT high, `top` at the upper end: a value holds until the next one is known. Empty for fewer
        than two points."""
        if len(times) < 2 or top <= 0:
            return ""
        places = [(self.place(at), _depth(value, top)) for at, value in zip(times, values, strict=True)]
        x, y = places[0]
        parts = [f"M{x} {y}"]
        for at, depth in places[1:]:
            if depth != y:
                parts.append(f"h{at - x}v{depth - y}")
                x, y = at, depth
        return "".join([*parts, f"H{places[-1][0]}"])


def _depth(value: float, top: float) -> int:
    return HEIGHT - 1 - round((HEIGHT - 2) * min(1.0, max(0.0, value / top)))

"""Small charts as geometry: the templates make SVG of it, the style sheet gives the colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

WIDTH, HEIGHT = 600, 60

_KINDS = {
    "compute": "compute",
    "transfer": "transfer",
    "disk-read": "disk",
    "disk-write": "disk",
    "serialize": "serialize",
    "deserialize": "serialize",
}
"""Dask's action to the colour it has on Dask's own dashboard."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One part of a bar, in per cent of the whole width. `kind` is the style sheet's name of its colour."""

    action: str
    kind: str
    x: float
    width: float


def bar(seconds: Mapping[str, float], longest: float) -> list[Piece]:
    """Actions end to end, the longest bar of a table being 100 wide."""
    pieces, x = list[Piece](), 0.0
    order = list(_KINDS)
    for action in sorted(seconds, key=lambda a: (order.index(a) if a in order else len(order), a)):
        value = seconds[action]
        width = 100 * value / longest if longest else 0.0
        pieces.append(Piece(action, _KINDS.get(action, "other"), round(x, 2), round(width, 2)))
        x += width
    return pieces


def line(times: Sequence[datetime], values: Sequence[float], top: float) -> str:
    """An SVG path of a step line: a value holds until the next one is known. Empty for fewer than two points."""
    if len(times) < 2 or top <= 0:
        return ""
    first, span = times[0], (times[-1] - times[0]).total_seconds() or 1.0
    parts = list[str]()
    for at, value in zip(times, values, strict=True):
        x = WIDTH * (at - first).total_seconds() / span
        y = HEIGHT - 1 - (HEIGHT - 2) * min(1.0, value / top)
        parts.append(f"H{x:.1f}V{y:.1f}" if parts else f"M{x:.1f} {y:.1f}")
    return "".join(parts)

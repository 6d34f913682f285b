"""Small drawings beside figures, as SVG: where time went, how often something came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 120, 10

KINDS = {
    "compute": "compute",
    "transfer": "transfer",
    "disk-read": "disk",
    "disk-write": "disk",
    "serialize": "serialize",
    "deserialize": "serialize",
}
"""Dask's action to the name of its colour."""


def bar(seconds: Mapping[str, float], longest: float) -> str:
    """Actions end to end; `longest` seconds are the whole width."""
    order = list(KINDS)
    pieces, x = list[str](), 0.0
    for action in sorted(seconds, key=lambda a: (order.index(a) if a in order else len(order), a)):
        width = WIDTH * seconds[action] / longest if longest > 0 else 0.0
        kind = KINDS.get(action, "other")
        pieces.append(
            f'<rect class="{kind}" x="{x:.1f}" width="{max(width, 0):.1f}" height="{HEIGHT}">'
            f"<title>{escape(action)} {seconds[action]:.3g} s</title></rect>"
        )
        x += width
    return _svg("".join(pieces))


def columns(values: Sequence[float], titles: Sequence[str]) -> str:
    """A column for each value; none is empty, so that its place is seen."""
    top, step = max(values, default=0), min(8.0, WIDTH / max(len(values), 1))
    pieces = list[str]()
    for at, (value, title) in enumerate(zip(values, titles, strict=True)):
        height = max(1.0, HEIGHT * value / top) if top > 0 else 1.0
        pieces.append(
            f'<rect class="compute" x="{at * step:.1f}" y="{HEIGHT - height:.1f}" width="{step * 0.8:.1f}" '
            f'height="{height:.1f}"><title>{escape(title)}</title></rect>'
        )
    return _svg("".join(pieces))


def _svg(content: str) -> str:
    return f'<svg role="img" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">{content}</svg>'

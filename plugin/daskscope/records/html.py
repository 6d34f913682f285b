"""Records as a notebook shows them: HTML without JavaScript. Everything that comes from users is escaped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from math import isfinite
from typing import Any

from daskscope.records import drawings
from daskscope.records.style import NAME, STYLE
from daskscope.records.values import CELL, TIMES, is_number, printable, printable_lines, shown

MOST = 1e15
"""Seconds, or times, that a drawing takes."""


def page(body: str, notes: Iterable[str] = (), url: str | None = None) -> str:
    """A whole output: what is shown, remarks under it, and the address of the page with the same content."""
    rest = "".join(f"<p>{said(line)}</p>" for line in notes)
    link = f'<p><a href="{said(url)}">{said(url)}</a></p>' if url else ""
    return f'{STYLE}<div class="{NAME}">{body}{rest}{link}</div>'


def table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], right: Collection[str]) -> str:
    """A table of the rows; columns of `right` are numbers."""
    longest = max(
        (sum(found.values()) for row in rows if (found := _seconds("seconds", row.get("seconds")))), default=0
    )
    head = "".join(f'<th scope="col"{_class(name, right)}>{said(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td{_class(n, right)}>{_cell(n, row.get(n), longest)}</td>" for n in columns) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and texts below each other."""
    rows = "".join(f'<tr><th scope="row">{said(name)}</th><td class="w">{said(text)}</td></tr>' for name, text in pairs)
    return f"<table><tbody>{rows}</tbody></table>"


def folded(title: str, body: str) -> str:
    """What is there to unfold."""
    return f"<details><summary>{said(title)}</summary>{body}</details>"


def code(title: str, text: str) -> str:
    """A piece of code, under the place where it stands."""
    return f"<p>{said(title)}</p><pre>{escape(printable_lines(text))}</pre>"


def said(text: str) -> str:
    """A user's text, to stand in a page."""
    return escape(printable(text))


def _class(name: str, right: Collection[str]) -> str:
    return ' class="n"' if name in right else ' class="t"' if name in TIMES else ""


def _cell(name: str, value: Any, longest: float) -> str:
    text = said(shown(name, value, CELL))
    if found := _seconds(name, value):
        return f'<span title="{text}">{drawings.bar(found, longest)}</span>'
    if days := _days(name, value):
        return drawings.columns([count for _, count in days], [f"{day}: {count:g}" for day, count in days])
    return text


def _days(name: str, value: Any) -> list[tuple[str, float]]:
    """Days and how often, where that is what it is."""
    if name != "days" or not isinstance(value, list):
        return []
    days: list[Any] = value
    return [(printable(str(day.get("day"))), _figure(day.get("count")) or 0.0) for day in days if isinstance(day, dict)]


def _seconds(name: str, value: Any) -> dict[str, float]:
    """Seconds by action, where that is what it is."""
    if name != "seconds" or not isinstance(value, Mapping):
        return {}
    pairs: Mapping[Any, Any] = value
    return {printable(str(key)): found for key, item in pairs.items() if (found := _figure(item)) is not None}


def _figure(value: Any) -> float | None:
    """None for what cannot be drawn."""
    return float(value) if is_number(value) and isfinite(value) and 0 <= value < MOST else None

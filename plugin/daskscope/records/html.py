"""Records as a notebook shows them: HTML without JavaScript. Everything that comes from users is escaped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from daskscope.records import drawings
from daskscope.records.style import NAME, STYLE
from daskscope.records.values import CELL, TIMES, is_number, shown


def page(body: str, notes: Iterable[str] = (), url: str | None = None) -> str:
    """A whole output: what is shown, remarks under it, and the address of the page with the same content."""
    rest = "".join(f"<p>{escape(line)}</p>" for line in notes)
    link = f'<p><a href="{escape(url)}">{escape(url)}</a></p>' if url else ""
    return f'{STYLE}<div class="{NAME}">{body}{rest}{link}</div>'


def table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], right: Collection[str]) -> str:
    """A table of the rows; columns of `right` are numbers."""
    longest = max(
        (sum(found.values()) for row in rows if (found := _seconds("seconds", row.get("seconds")))), default=0
    )
    head = "".join(f'<th scope="col"{_class(name, right)}>{escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td{_class(n, right)}>{_cell(n, row.get(n), longest)}</td>" for n in columns) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and texts below each other."""
    rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in pairs)
    return f"<table><tbody>{rows}</tbody></table>"


def folded(title: str, body: str) -> str:
    """What is there to unfold."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def _class(name: str, right: Collection[str]) -> str:
    return ' class="n"' if name in right else ' class="t"' if name in TIMES else ""


def _cell(name: str, value: Any, longest: float) -> str:
    text = escape(shown(name, value, CELL))
    if found := _seconds(name, value):
        return f'<span title="{text}">{drawings.bar(found, longest)}</span>'
    if name == "days" and isinstance(value, list) and value:
        days: list[dict[str, Any]] = value
        titles = [f"{day.get('day')}: {day.get('count')}" for day in days]
        return drawings.columns([_count(day) for day in days], titles)
    return text


def _count(day: Mapping[str, Any]) -> float:
    found = day.get("count")
    return float(found) if is_number(found) and found else 0.0


def _seconds(name: str, value: Any) -> dict[str, float]:
    """Seconds by action, where that is what it is."""
    if name != "seconds" or not isinstance(value, Mapping):
        return {}
    pairs: Mapping[Any, Any] = value
    return {str(key): float(item) for key, item in pairs.items() if is_number(item)}

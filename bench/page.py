"""Rows as a table of a page, so that nobody copies figures by hand."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from bench.rows import Row, text

BEGIN, END = "<!-- measured -->", "<!-- end -->"


def fill(page: Path, rows: Iterable[Row]) -> None:
    """Put the rows between the marks of a page. Raises ValueError if it has none."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page} has no {BEGIN} ... {END} to write between.")
    made = f"{before}{BEGIN}\n\n{_setting()}\n\n{_table(rows)}\n\n{END}{after}"
    page.write_text(made)


def _setting() -> str:
    return (
        f"Measured with Python {platform.python_version()}, distributed {version('distributed')}, on "
        f"{platform.system()} {platform.machine()}."
    )


def _table(rows: Iterable[Row]) -> str:
    lines = ["| what | daskscope | budget | beside it | how |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        value = "not measured" if row.value is None else f"{text(row.value)} {row.unit}"
        missed = " (missed)" if row.held is False else ""
        budget = f"{row.budget.direction} {row.budget.limit:,g}{missed}" if row.budget else ""
        peers = "; ".join(f"{name}: {text(value)}" for name, value in row.peers.items())
        lines.append(f"| `{row.name}` | {value} | {budget} | {peers} | {row.how} |")
    return "\n".join(lines)

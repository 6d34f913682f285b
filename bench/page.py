"""Rows as a table of a page, so that nobody copies figures by hand.

`python -m bench --json NAME ... > ROWS`, as often as it takes; then `python -m bench.page PAGE ROWS ...`.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import click

from bench.rows import Row, from_json, text

BEGIN, END = "<!-- measured -->", "<!-- end -->"


@click.command()
@click.argument("page", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("rows", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
def main(page: Path, rows: tuple[Path, ...]) -> None:
    """Write what stands in ROWS into PAGE, between its marks."""
    fill(page, [from_json(json.loads(line)) for file in rows for line in file.read_text().splitlines()])


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


if __name__ == "__main__":
    main(prog_name="python -m bench.page")

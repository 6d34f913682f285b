"""A table for people: on a terminal as wide as that, else whole."""

from __future__ import annotations

import shutil
import sys

import click

from daskscope.cli.asking import hint
from daskscope.records import CELL, Records, shown

NARROWEST = 16
"""Characters of a cell that are always shown; where they have no room, columns are left out."""


def table(records: Records) -> str:
    """The records of a list, with its notes. What a program reads is whole."""
    if not sys.stdout.isatty():
        return records.text()
    width = shutil.get_terminal_size().columns
    columns, cell = fitting(records, width)
    if left_out := [name for name in records.columns if name not in columns]:
        hint(f"Not shown for want of room: {', '.join(left_out)}. --columns chooses, --format json has all.")
    head, *rest = records.showing(columns).text(cell=cell).splitlines()
    return "\n".join([click.style(head, bold=True), *rest])


def fitting(records: Records, width: int) -> tuple[list[str], int]:
    """The columns, from the first on, that a terminal of so many characters has room for, and the most of a cell."""
    names = records.columns
    needed = [max([len(name), *(len(shown(name, row.get(name), CELL)) for row in records)]) for name in names]
    most = max([NARROWEST, *needed])
    for cell in range(min(most, CELL), NARROWEST - 1, -4):
        if _wide(names, needed, cell) <= width:
            return names, cell
    for n in range(len(names) - 1, 1, -1):
        if _wide(names[:n], needed, NARROWEST) <= width:
            return names[:n], NARROWEST
    return names[:1], max(1, min(CELL, width))


def _wide(names: list[str], needed: list[int], cell: int) -> int:
    """Characters of a line: a head is never cut."""
    return sum(max(len(name), min(n, cell)) + 2 for name, n in zip(names, needed, strict=False)) - 2

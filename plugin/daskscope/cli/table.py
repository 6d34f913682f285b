"""A table for people: on a terminal no wider than that, else whole."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping

import click

from daskscope.records import CELL, Records, shown
from daskscope.records.values import TIMES, is_number

NARROWEST = 12
"""Characters that are left of a text at least; where they have no room, columns are left out from the last one on."""

NAMES = frozenset({"id", "key_id", "address", "worker", "fingerprint", "family", "instance_type", "status", "url"})
"""What is of no use in part: it is typed on in another command, or tells one from the other."""


def table(records: Records) -> str:
    """The records of a list, with its notes. What a program reads is whole."""
    if not sys.stdout.isatty():
        return records.text()
    widths = fitting(records, shutil.get_terminal_size().columns)
    cut = records.showing([*widths])
    cut[:] = [{name: _cut(name, row.get(name), most) for name, most in widths.items()} for row in records]
    head, *rest = cut.text().splitlines()
    left_out = [name for name in records.columns if name not in widths]
    note = [f"No room for {', '.join(left_out)}."] if left_out else []
    return "\n".join([click.style(head, bold=True), *rest, *note])


def fitting(records: Records, width: int) -> Mapping[str, int]:
    """Columns that a terminal of so many characters has room for, from the first on, and the most that each shows."""
    names = records.columns
    needed = {
        name: max([len(name), *(len(shown(name, row.get(name), _most(name))) for row in records)]) for name in names
    }
    least = {name: _least(name, records, needed[name]) for name in names}
    while len(names) > 1 and _wide(least, names) > width:
        names = names[:-1]
    found = {name: needed[name] for name in names}
    while _wide(found, names) > width:
        widest = max(names, key=lambda name: (found[name] > least[name], found[name]))
        if found[widest] <= least[widest]:
            break  # One column alone, wider than the terminal.
        found[widest] -= 1
    return found


def _most(name: str) -> int | None:
    return None if name in NAMES else CELL


def _least(name: str, records: Records, needed: int) -> int:
    """Of a column: texts can be cut, but for those of which a part is of no use."""
    values = [row.get(name) for row in records]
    if name in NAMES or name in TIMES or all(value is None or is_number(value) for value in values):
        return needed
    return min(needed, max(len(name), NARROWEST))


def _wide(widths: Mapping[str, int], names: list[str]) -> int:
    """Characters of a line."""
    return sum(widths[name] + 2 for name in names) - 2


def _cut(name: str, value: object, most: int) -> object:
    """What is short enough stays as it is, for its kind tells on which side it stands."""
    text = shown(name, value, most)
    return value if text == shown(name, value) else text

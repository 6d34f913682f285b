"""The rows there are: a module each in `rows`, called after its row, with a function `run(short) -> Row`.

Of a row that may take very long, it also takes the most orders, messages, ... that it is to try.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from dataclasses import replace

import tests.faults.rows
from tests.faults.row import Row

Run = Callable[..., Row]


def runs() -> dict[str, Run]:
    """By the row's id, in order of the page: B1, B2, ..., C1, ..."""
    names = [module.name for module in pkgutil.iter_modules(tests.faults.rows.__path__)]
    found = {match[1].upper(): name for name in names if (match := re.match(r"([a-z]\d+)_", name))}
    ids = sorted(found, key=lambda row: (row[0], int(row[1:])))
    return {row: importlib.import_module(f"tests.faults.rows.{found[row]}").run for row in ids}


def tried(run: Run, short: bool, most: int | None) -> Row:
    """The row, which says how much of it was tried."""
    if most is None or "most" not in inspect.signature(run).parameters:
        return replace(run(short), form="short" if short else "long")
    return replace(run(short, most), form="short" if short else "part")

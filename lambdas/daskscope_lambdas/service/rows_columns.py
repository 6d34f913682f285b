"""Columns of the lake as they grow, and as Arrow has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, compress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from daskscope_query import tables

Columns = dict[str, Any]
"""Each column of a table: a list, or Maps where the column is a map of integers."""

_LAST_MS = 253_402_300_799_999
"""End of the year 9999: no later time can be shown, and DuckDB refuses to read one."""


class Maps:
    """A growing column of maps, kept flat: a tuple for every entry would keep the garbage collector busy."""

    __slots__ = ("ends", "keys", "values")

    def __init__(self) -> None:
        self.ends, self.keys, self.values = [0], list[str](), list[int]()

    def add(self, entries: Mapping[str, int]) -> None:
        self.keys += entries.keys()
        self.values += entries.values()
        self.ends.append(len(self.keys))

    def add_columns(self, columns: Mapping[str, Sequence[int]], n: int) -> None:
        """`n` rows out of columns by name, without what is 0."""
        names = list(columns)
        rows = list(zip(*columns.values(), strict=True)) if names else [()] * n
        flat = list(chain.from_iterable(rows))
        end = len(self.keys)
        self.keys += compress(names * n, flat)
        self.values += filter(None, flat)
        for row in rows:
            end += len(row) - row.count(0)
            self.ends.append(end)

    def array(self) -> pa.Array:
        keys, values = pa.array(self.keys, pa.string()), pa.array(self.values, pa.int64())
        return pa.MapArray.from_arrays(pa.array(self.ends, pa.int32()), keys, values)


def empty(table: tables.Table) -> Columns:
    """Columns without a row, but for ORIGIN."""
    return {c.name: Maps() if c.type == tables.ACTIONS else [] for c in table.columns[len(tables.ORIGIN) :]}


def array(table: str, column: tables.Column, values: Maps | list[Any]) -> pa.Array:
    """Raises ValueError or OverflowError for what the column cannot take."""
    made = values.array() if isinstance(values, Maps) else pa.array(values, column.type)
    if column.type == tables.MOMENT and len(made):
        ends = pc.call_function("min_max", [made.cast(pa.int64())])
        if (ends["min"].as_py() or 0) < 0 or (ends["max"].as_py() or 0) > _LAST_MS:
            raise ValueError(f"{table}.{column.name} holds a time before 1970 or after 9999")
    return made

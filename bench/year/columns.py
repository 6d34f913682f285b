"""Columns of many rows at once, as Arrow has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.year.size import Numbers
from daskscope_query.tables import Table

Columns = dict[str, Any]
"""By name: Arrow, numpy, or one value for all rows."""


def picked(words: Any, places: Numbers) -> pa.Array:
    """The word at each place. `words`: of Arrow, or of Python."""
    return (words if isinstance(words, pa.Array) else pa.array(words)).take(pa.array(places))


def moments(ms: Numbers, missing: Numbers | None = None) -> pa.Array:
    """Epoch milliseconds as UTC times; null where `missing`."""
    return pa.array(ms.astype(np.int64), mask=missing).cast(pa.timestamp("ms", tz="UTC"))


def nullable(values: Numbers, missing: Numbers) -> pa.Array:
    return pa.array(values, mask=missing)


def hexes(rng: np.random.Generator, n: int) -> pa.Array:
    """`n` random words of 32 hex digits."""
    body = rng.bytes(16 * n).hex().encode()
    return pa.Array.from_buffers(
        pa.string(), n, [None, pa.py_buffer((32 * np.arange(n + 1)).astype(np.int32)), pa.py_buffer(body)]
    )


def maps(names: Sequence[str], values: Numbers) -> pa.Array:
    """A map for each row of `values` (rows x names), without what is 0."""
    n_rows, n_names = values.shape
    kept = values.ravel() != 0
    ends = np.concatenate([[0], kept.reshape(n_rows, n_names).sum(axis=1).cumsum()]).astype(np.int32)
    keys = picked(names, np.tile(np.arange(n_names), n_rows)[kept])
    return pa.MapArray.from_arrays(pa.array(ends), keys, pa.array(values.ravel()[kept].astype(np.int64)))


def joined(*parts: Any, by: str = "") -> pa.Array:
    """Texts of each row put together, `by` between them."""
    return pc.call_function("binary_join_element_wise", [*parts, by])


def lists(values: pa.Array, lengths: Numbers) -> pa.Array:
    """`values` cut into lists of these lengths."""
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], lengths.cumsum()]).astype(np.int32)), values)


def within(lengths: Numbers) -> Numbers:
    """0, 1, 2 ... of each of so many runs, one after the other."""
    return np.arange(lengths.sum()) - np.repeat(lengths.cumsum() - lengths, lengths)


def walk(rng: np.random.Generator, n: int, step: float) -> Numbers:
    """Values between 0 and 1 that change by about `step` from one to the next."""
    return np.abs((rng.normal(0, step, n).cumsum() + rng.random()) % 2 - 1)


def rows_of(table: Table, n: int, columns: Columns) -> pa.Table:
    """`n` rows of a table of the lake; what is not given is null. Raises KeyError for a column that it has not."""
    if odd := columns.keys() - set(table.schema.names):
        raise KeyError(f"{table.name} has no {', '.join(sorted(odd))}.")

    def made(field: pa.Field) -> pa.Array:
        value = columns.get(field.name)
        if not isinstance(value, np.ndarray | pa.Array):
            return pa.repeat(pa.scalar(value, field.type), n)
        array: Any = pa.array(value) if isinstance(value, np.ndarray) else value
        return array if array.type == field.type else array.cast(field.type)

    return pa.Table.from_arrays([made(field) for field in table.schema], schema=table.schema)

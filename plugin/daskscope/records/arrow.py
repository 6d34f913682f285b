"""Records as data frames, for pandas and for all that read Arrow.

The names of `values.py` say what is a time and what a duration; the rest is as JSON has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from daskscope.extras import needed
from daskscope.records.values import DURATIONS, TIMES, is_number

Rows = Sequence[Mapping[str, Any]]

BY_NAME = {
    "states": "int64",
    "tasks": "int64",
    "bytes": "int64",
    "lost": "int64",
    "seconds": "float64",
    "tags": "string",
    "packages": "string",
    "versions": "string",
}
"""Keys whose value is a mapping with names as its keys, whatever they are: a map of such values in Arrow, no struct."""


def to_pandas(rows: Rows, columns: Sequence[str] = ()) -> Any:
    """A pandas.DataFrame: a column for each key that a row has, in the order in which they come; `columns` where there
    is no row."""
    pandas = needed("pandas", "pandas", "to_pandas()")
    names = _names(rows) or [*columns]
    frame = pandas.DataFrame({name: pandas.Series([row.get(name) for row in rows]) for name in names}, columns=names)
    for name in names:
        values = [row.get(name) for row in rows]
        if _are_times(name, values):
            frame[name] = pandas.to_datetime(frame[name], utc=True, format="ISO8601")
        elif _are_durations(name, values):
            frame[name] = pandas.to_timedelta(frame[name], unit="s")
    return frame


def to_arrow(rows: Rows, columns: Sequence[str] = ()) -> Any:
    """A pyarrow.Table: a column for each key that a row has, in the order in which they come; `columns` where there is
    no row, of type null where the name tells none: it goes together with any."""
    pyarrow = needed("pyarrow", "arrow", "to_arrow()")
    names = _names(rows) or [*columns]
    return pyarrow.table({name: _array(pyarrow, name, [row.get(name) for row in rows]) for name in names})


def _names(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _array(pyarrow: Any, name: str, values: list[Any]) -> Any:
    if _are_times(name, values):
        moments = [None if value is None else _moment(value) for value in values]
        return pyarrow.array(moments, pyarrow.timestamp("us", tz="UTC"))
    if _are_durations(name, values):
        spans = [None if value is None else round(value * 1e6) for value in values]
        return pyarrow.array(spans, pyarrow.duration("us"))
    if name in BY_NAME and all(value is None or isinstance(value, Mapping) for value in values):
        kind = pyarrow.map_(pyarrow.string(), getattr(pyarrow, BY_NAME[name])())
        pairs = [None if value is None else list(value.items()) for value in values]
        found = _tried(pyarrow, pairs, kind)
    else:
        found = _tried(pyarrow, values, None)
    return _as_json(pyarrow, values) if found is None or _is_hollow(pyarrow, found.type) else found


def _tried(pyarrow: Any, values: list[Any], kind: Any) -> Any:
    """None if the values are not of this kind (None: of any one kind)."""
    try:
        return pyarrow.array(values, kind)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _is_hollow(pyarrow: Any, kind: Any) -> bool:
    """Whether there is a struct without a field in it, which others do not take."""
    if pyarrow.types.is_struct(kind):
        return kind.num_fields == 0 or any(_is_hollow(pyarrow, field.type) for field in kind)
    return pyarrow.types.is_list(kind) and _is_hollow(pyarrow, kind.value_type)


def _as_json(pyarrow: Any, values: list[Any]) -> Any:
    texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
    return pyarrow.array(texts, pyarrow.string())


def _are_times(name: str, values: list[Any]) -> bool:
    if name not in TIMES:
        return False
    try:
        return all(value is None or _moment(value) for value in values)
    except (TypeError, ValueError):
        return False


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _are_durations(name: str, values: list[Any]) -> bool:
    return name in DURATIONS and all(value is None or (is_number(value) and abs(value) < 1e12) for value in values)

"""What a query in SQL found: records whose columns know their types."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from daskscope.records.table import Records


class Result(Records):
    """Records as JSON has them (times in ISO 8601, spans in seconds, bytes in base64); `to_arrow()`, `to_pandas()` and
    the Arrow stream are as the query gave them. Columns of the same name are numbered."""

    def __init__(self, table: Any) -> None:
        names = _distinct(table.column_names)
        self._table = table.rename_columns(names)
        super().__init__([{name: _plain(value) for name, value in row.items()} for row in self._table.to_pylist()],
                         columns=names)  # fmt: skip

    def to_arrow(self) -> Any:
        return self._table

    def to_pandas(self) -> Any:
        return self._table.to_pandas()


def _distinct(names: list[str]) -> list[str]:
    found = list[str]()
    for name in names:
        n, free = 1, name
        while free in found:
            n += 1
            free = f"{name}_{n}"
        found.append(free)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime, date, time)):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if type(value).__name__ == "MonthDayNano":  # an interval of DuckDB's, whose months are no number of seconds
        return str(value) if value.months else value.days * 86_400 + value.nanoseconds / 1e9
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        items: list[Any] = value
        return [_plain(item) for item in items]
    return value

"""Named questions about relations that are at hand: no file of a lake is read for these."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pyarrow as pa

from daskscope_query import engine
from daskscope_query.questions import question


def ask_given(query: str, given: Mapping[str, pa.Table], **params: Any) -> pa.Table:
    """Run a query of `sql/` over `given`, relations by name; a parameter left out is null."""
    asked = question(query)
    with closing(engine.cursor()) as cursor:
        for name, rows in given.items():
            cursor.register(name, rows)
        return cursor.sql(asked.sql, params=asked.arguments(params) or None).to_arrow_table()

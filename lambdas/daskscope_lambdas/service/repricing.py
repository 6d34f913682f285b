"""The catalog by the prices in force, where it was made by others: they were set since, and it is made anew soon."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from daskscope_lambdas.service.catalog_rows import cost_columns, row_of_json, usage_of
from daskscope_lambdas.service.cost import priced
from daskscope_lambdas.service.prices import Prices

_TOGETHER = 500


def is_priced_otherwise(rows: pa.Table, prices: Prices) -> bool:
    return rows.filter(pc.field("prices") != prices.digest).num_rows > 0


def repriced(rows: pa.Table, prices: Prices) -> pa.Table:
    """These rows of the catalog, which have their `machines` and `row`, without the `row`: a slice at a time, for rows
    take more memory than columns."""
    schema = rows.drop_columns("row").schema
    made = [
        pa.Table.from_pylist([_again(row, prices) for row in rows.slice(start, _TOGETHER).to_pylist()], schema)
        for start in range(0, rows.num_rows, _TOGETHER)
    ]
    return pa.concat_tables([schema.empty_table(), *made])


def _again(row: dict[str, Any], prices: Prices) -> dict[str, Any]:
    if row["prices"] == prices.digest:
        return row
    usage = usage_of(row["machines"], row["failed_us"])
    at = row["usage_at"].timestamp() if row["usage_at"] else None
    return row | cost_columns(priced(row_of_json(row["row"]), usage, prices), usage, at, prices.digest)

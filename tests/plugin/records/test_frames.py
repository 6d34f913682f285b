"""Records as data frames: what a key's name says of its type, and what readers of Arrow make of it."""

import builtins
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.records import Records
from daskscope.records.result import Result

ROWS = [
    {"id": 2, "created": "2026-11-21T08:00:00.250Z", "duration": 90.5, "seconds": {"compute": 1.5}, "tags": {"a": "b"},
     "cost": {"dollars": 1.5, "quality": "measured"}, "workers": ["x", "y"], "detail": {"n": 1}},
    {"id": 11, "created": None, "duration": None, "seconds": {"transfer": 2.0}, "tags": {}, "cost": None,
     "workers": [], "detail": ["other"], "name": "etl"},
]  # fmt: skip
AT = datetime(2026, 11, 21, 8, 0, 0, 250_000, UTC)


def test_pandas_has_moments_in_utc_and_spans_and_leaves_what_is_nested() -> None:
    frame = Records(ROWS).to_pandas()
    assert list(frame.columns) == [*ROWS[0], "name"]
    assert frame["created"][0] == pd.Timestamp(AT)
    assert str(frame["created"].dt.tz) == "UTC"
    assert frame["duration"][0] == pd.Timedelta(seconds=90.5)
    assert frame["created"].isna().tolist() == frame["duration"].isna().tolist() == [False, True]
    assert frame["seconds"][0] == {"compute": 1.5}
    assert frame["workers"].tolist() == [["x", "y"], []]


def test_arrow_has_a_type_for_each_key() -> None:
    table = Records(ROWS).to_arrow()
    assert table.column_names == [*ROWS[0], "name"]
    assert table.schema.field("created").type == pa.timestamp("us", "UTC")
    assert table.schema.field("duration").type == pa.duration("us")
    assert table.schema.field("seconds").type == pa.map_(pa.string(), pa.float64())
    assert table.schema.field("tags").type == pa.map_(pa.string(), pa.string())
    assert table.schema.field("workers").type == pa.list_(pa.string())
    assert {field.name for field in table.schema.field("cost").type} == {"dollars", "quality"}
    assert table["created"].to_pylist() == [AT, None]
    assert table["duration"].to_pylist() == [timedelta(seconds=90.5), None]
    assert [json.loads(text) for text in table["detail"].to_pylist()] == [{"n": 1}, ["other"]]


def test_readers_of_the_arrow_stream_take_records_as_they_are() -> None:
    records = Records(ROWS)
    assert pa.RecordBatchReader.from_stream(records).read_all() == records.to_arrow()
    found = duckdb.from_arrow(records.to_arrow()).select("id, seconds['compute'], duration").order("id")
    assert found.fetchall() == [(2, 1.5, timedelta(seconds=90.5)), (11, None, None)]


def test_a_list_stays_a_list_for_pandas() -> None:
    assert pd.DataFrame(Records(ROWS))["created"].tolist()[0] == "2026-11-21T08:00:00.250Z"


@pytest.mark.parametrize("rows", [[], [{"tags": {}}], [{"cost": {}}, {"cost": None}], [{"days": [{}]}]])
def test_what_is_empty_is_no_struct_without_fields(rows: list[dict[str, Any]]) -> None:
    table = Records(rows).to_arrow().append_column("n", pa.array([1] * len(rows), pa.int64()))
    assert len(duckdb.from_arrow(table).fetchall()) == len(rows)
    assert len(Records(rows).to_pandas()) == len(rows)


def test_a_key_of_another_form_than_its_name_says_stays_as_it_is() -> None:
    table = Records([{"created": "yesterday", "duration": "long", "seconds": 2.5, "left": True}]).to_arrow()
    assert table.to_pylist() == [{"created": "yesterday", "duration": "long", "seconds": 2.5, "left": True}]


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.lists(st.dictionaries(st.sampled_from(["id", "created", "seconds", "duration", "cost"]), _values), max_size=4)
)
def test_whatever_json_holds_becomes_a_table_of_as_many_rows(rows: list[dict[str, Any]]) -> None:
    table = Records(rows).to_arrow()
    assert not table.column_names or table.num_rows == len(rows)
    assert set(table.column_names) == {name for row in rows for name in row}


@pytest.mark.parametrize(
    ("missing", "call", "extra"),
    [
        ("pyarrow", lambda records: records.to_arrow(), "arrow"),
        ("pyarrow", lambda records: records.__arrow_c_stream__(), "arrow"),
        ("pandas", lambda records: records.to_pandas(), "pandas"),
    ],
)
def test_what_is_not_installed_is_named_with_its_extra(
    missing: str, call: Callable[[Records], Any], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib import import_module

    def absent(name: str) -> Any:
        if name == missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return import_module(name)

    monkeypatch.setattr("daskscope.extras.importlib.import_module", absent)
    with pytest.raises(ImportError, match=rf"pip install 'daskscope\[{extra}\]'"):
        call(Records(ROWS))
    assert builtins.repr(Records(ROWS))


def test_what_sql_found_is_json_to_read_and_arrow_as_it_was() -> None:
    relation = duckdb.sql(
        "SELECT TIMESTAMPTZ '2026-11-21 08:00:00+00' AS at, INTERVAL 90 SECOND AS took, 1.5::DECIMAL(4, 1) AS price, "
        "'a'::BLOB AS body, {'x': [DATE '2026-11-21']} AS nested, 1 AS n, 2 AS n"
    )
    assert relation
    table = relation.to_arrow_table()
    found = Result(table)
    (row,) = found
    assert json.loads(json.dumps(row)) == row
    assert (row["took"], row["price"], row["body"], row["nested"]) == (90.0, 1.5, "YQ==", {"x": ["2026-11-21"]})
    assert (row["n"], row["n_2"]) == (1, 2)
    assert found.columns == ["at", "took", "price", "body", "nested", "n", "n_2"]
    assert found.to_arrow().schema.field("price").type == pa.decimal128(4, 1)
    assert pa.RecordBatchReader.from_stream(found).read_all().num_rows == len(found.to_pandas()) == 1


def test_without_a_record_there_are_the_columns_of_a_table_and_readers_take_them(tmp_path: Path) -> None:
    empty = Records(columns=("id", "created", "duration", "seconds", "cost"))
    table = empty.to_arrow()
    assert table.column_names == empty.columns
    assert table.schema.field("created").type == pa.timestamp("us", "UTC")
    assert table.schema.field("duration").type == pa.duration("us")
    assert table.schema.field("seconds").type == pa.map_(pa.string(), pa.float64())
    full = Records(ROWS[:1]).to_arrow().select(empty.columns)
    assert pa.concat_tables([table, full], promote_options="default").schema == full.schema
    pq.write_table(table, tmp_path / "empty.parquet")
    assert duckdb.read_parquet(f"{tmp_path}/empty.parquet").select("id, created").fetchall() == []
    frame = empty.to_pandas()
    assert list(frame.columns) == empty.columns
    assert str(frame["created"].dt.tz) == "UTC"
    assert frame["duration"].max() is pd.NaT

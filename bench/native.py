"""The same rows in DuckDB's own tables, asked with the same words: what no file of the lake can be faster than."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from bench.year.plan import ACCOUNT
from daskscope_query import engine, families, layout
from daskscope_query.questions import BEFORE, ENTRIES, question
from daskscope_query.tables import ROLLUPS, TABLES

Days = tuple[date, date]


def build(lake: Path, database: Path, wanted: Mapping[str, set[date]]) -> None:
    """Sealed rows of these days, by table or roll-up, as native tables in the order of the files; goes on where it was
    stopped. Of what is not wanted there is an empty table.
    """
    with duckdb.connect(str(database), config={"threads": "2"}) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS loaded (name VARCHAR, day DATE)")
        loaded = {*connection.execute("FROM loaded").fetchall()}
        for name, table in {**TABLES, **ROLLUPS}.items():
            connection.register("none", table.schema.empty_table())
            connection.execute(f'CREATE TABLE IF NOT EXISTS "{name}" AS FROM none')
            connection.unregister("none")
            for day in sorted(wanted.get(name, ())):
                if (name, day) not in loaded:
                    _load(connection, lake, name, day)


def _load(connection: duckdb.DuckDBPyConnection, lake: Path, name: str, day: date) -> None:
    prefix = layout.rollup_prefix if name in ROLLUPS else layout.sealed_prefix
    files = [str(file) for file in sorted((lake / prefix(name, ACCOUNT, day)).glob("*.parquet"))]
    connection.execute("BEGIN")
    if files:
        rows = "read_parquet($files, hive_partitioning = false)"
        connection.execute(f'INSERT INTO "{name}" BY NAME FROM {rows}', {"files": files})
    connection.execute("INSERT INTO loaded VALUES ($name, $day)", {"name": name, "day": day})
    connection.execute("COMMIT")


class Native:
    """See `opened`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def prepare(self, query: str, days: Days, given: Mapping[str, pa.Table], *, from_base: bool = False) -> None:
        """Make the relations that a question reads, of these days; roll-ups `from_base`: out of the tables that they
        were made of, as who keeps none must."""
        if from_base:
            for rollup in (name for name in question(query).reads if name in ROLLUPS):
                for name in question(rollup).reads:
                    self._view(name, days)
                # As if all days were one: the sums are the same, for no cluster lives longer than a day.
                text = question(rollup).sql.replace("$account", f"'{ACCOUNT}'").replace("$day", f"'{days[0]}'")
                self._connection.execute(f'CREATE OR REPLACE TEMP VIEW "{rollup}" AS {text}')
                self._add_entries(rollup)
        for name in question(query).reads:
            if name not in given and not (from_base and name in ROLLUPS):
                self._view(name, days)
                self._add_entries(name)
        for name, rows in given.items():
            self._connection.register("rows_given", rows)
            self._connection.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS FROM rows_given')

    def _add_entries(self, name: str) -> None:
        fields = ROLLUPS[name].schema if name in ROLLUPS else []
        if maps := [
            f'map_entries("{field.name}") AS "{field.name}"' for field in fields if pa.types.is_map(field.type)
        ]:
            text = f'SELECT * REPLACE ({", ".join(maps)}) FROM "{name}"'
            self._connection.execute(f'CREATE OR REPLACE TEMP VIEW "{name}{ENTRIES}" AS {text}')

    def _view(self, name: str, days: Days) -> None:
        source = name.removesuffix(BEFORE)
        first, last = days
        if name.endswith(BEFORE):
            narrowed = "false"
        elif source in ROLLUPS:
            narrowed = f"day BETWEEN DATE '{first}' AND DATE '{last}'"
        else:
            after = last + timedelta(1)
            narrowed = f"received_at >= TIMESTAMPTZ '{first} 00:00Z' AND received_at < TIMESTAMPTZ '{after} 00:00Z'"
        self._connection.execute(
            f'CREATE OR REPLACE TEMP VIEW "{name}" AS SELECT * FROM year."{source}" WHERE {narrowed}'
        )

    def ask(self, query: str, **params: Any) -> pa.Table:
        """The question as it was prepared."""
        asked = question(query)
        return self._connection.sql(asked.sql, params=asked.arguments(params) or None).to_arrow_table()


@contextmanager
def opened(database: Path) -> Generator[Native]:
    with duckdb.connect(config={"threads": "2"}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(engine._MACROS + families.MACROS)
        connection.execute(f"ATTACH '{database}' AS year (READ_ONLY)")
        yield Native(connection)

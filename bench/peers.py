"""The same rows as JSON lines, in SQLite, and as one Parquet file a post, asked what all of them can answer."""

from __future__ import annotations

import json
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.rows import Row, progress
from bench.year.plan import ACCOUNT
from bench.year.size import FIRST_DAY, Size
from daskscope_query.lake import Lake, Scope
from daskscope_query.questions import Question
from daskscope_query.tables import TABLES

DAYS = 2
POSTS = 4_000
"""Files of one post each: more than so many take longer to write than all the rest."""
_TIMES = 5

_QUESTIONS = {
    "one-cluster": (
        "workers",
        "SELECT address, max(memory_mib), avg(cpu_pct) FROM {rows} WHERE cluster = '{cluster}' GROUP BY address",
    ),
    "team": ("groups", "SELECT prefix, sum(n_tasks), sum(nbytes) FROM {rows} GROUP BY prefix"),
}
_COLUMNS = {
    "workers": [field.name for field in TABLES["workers"].schema],
    "groups": [
        "account", "cluster", "cluster_id", "boot", "seq", "received_at", "at", "no", "name", "prefix", "computation",
        "span", "start_at", "stop_at", "n_tasks", "nbytes",
    ],
}  # fmt: skip
"""Without maps and lists, which SQLite has not."""


def peers(lake: Path, size: Size) -> Iterator[Row]:
    """Over the last DAYS days, and over POSTS posts of the last one, which for a peer and for us are the same rows."""
    first = max(FIRST_DAY, size.last_day - timedelta(DAYS - 1))
    with TemporaryDirectory() as folder:
        for name, (table, sql) in _QUESTIONS.items():
            progress(f"peers: {name}")
            rows = _rows(lake, size, table, first)
            cluster = rows.column("cluster")[rows.num_rows // 2].as_py()
            sql = sql.replace("{cluster}", cluster)
            beside = _beside(Path(folder), table, rows, sql)
            ours_ms = _ours(
                lake, size, table, first, sql.replace("{rows}", table), cluster if name == "one-cluster" else None
            )
            yield Row(
                name=f"queries/peers/{name}",
                value=ours_ms,
                unit="ms CPU",
                peers=beside,
                how=f"{rows.num_rows:,} rows of `{table}` of {(size.last_day - first).days + 1} days ending "
                f"{size.last_day:%A}: ours through the lake, DuckDB over JSON lines, SQLite with an index on the "
                f"cluster. As files of a post each, asked by DuckDB, only {min(POSTS, _n_posts(rows)):,} of the "
                f"{_n_posts(rows):,} posts. Process CPU, median of {_TIMES}.",
            )


def _rows(lake: Path, size: Size, table: str, first: Any) -> pa.Table:
    opened = Lake(str(lake), size.last_day)
    keys = opened.keys(table, ACCOUNT, first, size.last_day)
    return pa.concat_tables(opened.file(table, key) for key in keys).select(_COLUMNS[table])


def _n_posts(rows: pa.Table) -> int:
    return rows.group_by(["cluster", "seq"]).aggregate([]).num_rows


def _ours(lake: Path, size: Size, table: str, first: Any, sql: str, cluster: str | None) -> float:
    opened = Lake(str(lake), size.last_day)
    clusters = [cluster] if cluster else None
    scope = Scope(ACCOUNT, first, size.last_day, clusters)
    return _cpu_ms(lambda: opened._answer(Question(sql, (table,)), scope, {}))


def _beside(folder: Path, table: str, rows: pa.Table, sql: str) -> dict[str, float]:
    lines, sqlite, posts = folder / f"{table}.jsonl", folder / f"{table}.sqlite", folder / f"{table}-posts"
    with lines.open("w") as file:
        for batch in rows.to_batches(10_000):
            file.writelines(json.dumps(row, default=str) + "\n" for row in batch.to_pylist())
    with closing(sqlite3.connect(sqlite)) as connection:
        names = ", ".join(f'"{name}"' for name in rows.column_names)
        connection.execute(f"CREATE TABLE {table} ({names})")
        marks = ", ".join("?" * rows.num_columns)
        for batch in rows.to_batches(10_000):
            values = ([str(v) if hasattr(v, "isoformat") else v for v in row.values()] for row in batch.to_pylist())
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
        connection.execute(f"CREATE INDEX of_cluster ON {table} (cluster)")
        connection.commit()
    posts.mkdir()
    by_post = rows.sort_by([("cluster", "ascending"), ("seq", "ascending")])
    ends = by_post.group_by(["cluster", "seq"], use_threads=False).aggregate([([], "count_all")]).column("count_all")
    start = 0
    for number, n in enumerate(ends.to_pylist()[:POSTS]):
        pq.write_table(by_post.slice(start, n), posts / f"{number:06d}.parquet")
        start += n
    with closing(sqlite3.connect(sqlite)) as of_sqlite, duckdb.connect(config={"threads": "2"}) as of_duckdb:

        def ask(source: str) -> Callable[[], object]:
            return lambda: of_duckdb.execute(sql.replace("{rows}", source)).fetchall()

        return {
            "JSON lines": _cpu_ms(ask(f"read_json('{lines}')")),
            "SQLite": _cpu_ms(lambda: of_sqlite.execute(sql.replace("{rows}", table)).fetchall()),
            "a file per post": _cpu_ms(ask(f"read_parquet('{posts}/*.parquet')")),
        }


def _cpu_ms(work: Callable[[], object]) -> float:
    taken: list[float] = []
    for _ in range(_TIMES):
        begun_s = time.process_time()
        work()
        taken.append((time.process_time() - begun_s) * 1e3)
    return statistics.median(taken)

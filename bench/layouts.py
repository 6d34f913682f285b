"""A day kept as one file per post, and as we keep it: what a question costs, and what lies on the disk."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow.parquet as pq

from bench.envelopes import DAY_S, N_WORKERS, envelopes, messages, world
from bench.rows import Budget, Row, progress
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.service.envelope import Envelope
from daskscope_lambdas.service.rows import to_rows
from daskscope_lambdas.service.write import Writer

TABLES = ("samples", "workers", "groups")
"""Those of which a message in steady state has rows."""
BATCH = 1000

_QUESTIONS = {
    "one-cluster": (
        "workers",
        "SELECT address, max(memory_mib), avg(cpu_pct) FROM read_parquet($files) WHERE cluster = $cluster GROUP BY ALL",
    ),
    "team": ("groups", "SELECT prefix, max(n_tasks), max(nbytes) FROM read_parquet($files) GROUP BY ALL ORDER BY ALL"),
}


def layouts(tiny: bool) -> Iterator[Row]:
    """The same messages both ways, asked by DuckDB with the same words."""
    n_clusters, n_each = (2, 5) if tiny else (20, 500)
    progress(f"{n_clusters * n_each} posts")
    sent = messages(n_clusters, n_each)
    with world() as (adapters, clock, lake), TemporaryDirectory() as folder:
        ready = envelopes(sent, clock)
        progress("one file per post and table")
        _one_file_per_post(ready, Path(folder))
        writer = Writer(adapters.objects, adapters.seals)
        for start in range(0, len(ready), BATCH):
            writer.write(ready[start : start + BATCH], f"{start:032x}")
        clock.advance(2 * DAY_S)
        progress("sealing")
        Compactor(adapters.objects, adapters.seals, clock, adapters.lake_root).run()
        naive = {table: sorted(map(str, (Path(folder) / table).glob("*.parquet"))) for table in TABLES}
        ours = {table: sorted(map(str, (lake / "sealed" / table).rglob("*.parquet"))) for table in TABLES}
        of = f"{len(sent):,} posts of {n_clusters} clusters with {N_WORKERS} workers in a day"
        for name, (table, sql) in _QUESTIONS.items():
            progress(name)
            cluster = {"cluster": sent[0].cluster} if "$cluster" in sql else {}
            sealed_ms = _cpu_ms(sql, {"files": ours[table], **cluster}, 15)
            yield Row(
                name=f"layouts/query/{name}",
                value=_cpu_ms(sql, {"files": naive[table], **cluster}, 1) / sealed_ms,
                unit="x CPU of a sealed day",
                budget=Budget("at least", 300),
                peers={"sealed day, ms": sealed_ms},
                how=f"{of}, one Parquet file a post with pyarrow's defaults against our sealed day: the same words of "
                f"DuckDB over `{table}`, process CPU, sealed: median of 15.",
            )
        yield Row(
            name="layouts/bytes",
            value=_bytes(naive) / _bytes(ours),
            unit="x bytes of a sealed day",
            budget=Budget("at least", 30),
            peers={"sealed day, bytes per message": _bytes(ours) / len(sent)},
            how=f"{of}: all files of {', '.join(TABLES)}.",
        )


def _one_file_per_post(ready: Sequence[Envelope], folder: Path) -> None:
    for table in TABLES:
        (folder / table).mkdir()
    for number, envelope in enumerate(ready):
        for table, rows in to_rows([envelope]):
            if table.name in TABLES:
                pq.write_table(rows, folder / table.name / f"{number:06d}.parquet")


def _cpu_ms(sql: str, parameters: dict[str, object], times: int) -> float:
    with duckdb.connect(config={"threads": "2"}) as connection:
        return statistics.median(_timed(lambda: connection.execute(sql, parameters).fetchall()) for _ in range(times))


def _timed(work: Callable[[], object]) -> float:
    begun_s = time.process_time()
    work()
    return (time.process_time() - begun_s) * 1e3


def _bytes(files: dict[str, list[str]]) -> int:
    return sum(Path(file).stat().st_size for found in files.values() for file in found)

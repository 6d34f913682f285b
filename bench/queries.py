"""Questions to a year of a team, beside DuckDB's own tables with the same rows and the same words."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.asked import Asked, catalog_of, questions, read_by
from bench.counting import counted
from bench.native import Native, build, opened
from bench.peers import peers
from bench.rows import Budget, Row, progress
from bench.served import list_ms
from bench.year.__main__ import build as build_year
from bench.year.plan import plan
from bench.year.size import TINY, Size, scaled
from daskscope_lambdas.adapters.local import DiskObjects
from daskscope_lambdas.service.catalog_files import CatalogFiles

FOLDER, SCALE = "DASKSCOPE_BENCH_YEAR", "DASKSCOPE_BENCH_SCALE"
"""Environment variables: where `python -m bench.year make` wrote, and at which scale (1 unless said)."""
_TIMES = {"cluster": 15, "30-days": 7, "year": 3}
_MOST = {"cluster": 1.5, "30-days": 3.0, "year": 1.0}
_READS = ("groups", "computations", "samples")
_BESIDE = {"cluster": "the same rows", "30-days": "the same rows", "year": "a scan of the tables"}


def queries(tiny: bool) -> Iterator[Row]:
    """Needs a year on the disk but for `tiny`, which makes a few days of its own."""
    with TemporaryDirectory() as own:
        folder, size = _year(tiny, Path(own))
        if folder is None:
            yield Row(
                name="queries",
                value=None,
                unit="x CPU",
                how=f"There is no year: python -m bench.year make FOLDER, then {FOLDER}=FOLDER.",
            )
            return
        yield from measured(folder, size)


def _year(tiny: bool, own: Path) -> tuple[Path | None, Size]:
    if tiny:
        build_year(own, TINY, 1)
        return own, TINY
    folder = os.environ.get(FOLDER)
    return (Path(folder) if folder else None), scaled(float(os.environ.get(SCALE, "1")))


def measured(folder: Path, size: Size) -> Iterator[Row]:
    lake, database = folder / "lake", folder / "native.duckdb"
    clusters = plan(size)
    asked = questions(size, clusters, catalog_of(CatalogFiles(DiskObjects(lake))))
    progress("DuckDB's own tables")
    build(lake, database, read_by(asked))
    of = f"{size.days} days, {size.clusters:,} clusters"
    with opened(database) as native:
        for each in asked:
            progress(each.name)
            yield _ratio(each, native, lake, size, of)
    yield from _reads([each for each in asked if each.span == "cluster" and each.query in _READS], lake, size)
    for each in asked[:1] if size == TINY else asked:  # a process each
        progress(f"memory of {each.name}")
        yield _peak(each, folder, size)
    yield list_ms(folder, len(clusters))
    yield from peers(lake, size)


def _ratio(asked: Asked, native: Native, lake: Path, size: Size, of: str) -> Row:
    times = _TIMES[asked.span]
    native.prepare(asked.query, asked.days, asked.given, from_base=asked.from_base)

    def ours() -> None:
        asked.ask(lake, size.last_day)

    def theirs() -> None:
        native.ask(asked.query, **asked.params)

    ours_ms, native_ms = in_turn([ours, theirs], times)
    peers = {"ours, ms": ours_ms, "native, ms": native_ms}
    if asked.from_base:
        native.prepare(asked.query, asked.days, asked.given)
        (peers["native roll-ups, ms"],) = in_turn([theirs], times)
    return Row(
        name=f"queries/{asked.name}",
        value=ours_ms / native_ms,
        unit="x CPU of DuckDB's own tables",
        budget=Budget("at most", _MOST[asked.span]),
        peers=peers,
        how=f"`{asked.query}` over {of}, through Lake.ask, warm; beside it {_BESIDE[asked.span]} in DuckDB's own "
        f"format, warm, asked with the same words: process CPU, all threads counted, in turn, median of {times}.",
    )


def in_turn(work: Sequence[Callable[[], None]], times: int) -> list[float]:
    """Median CPU milliseconds of each, after one that does not count."""
    taken: list[list[float]] = [[] for _ in work]
    for n in range(times + 1):
        for done, each in zip(taken, work, strict=True):
            begun_s = time.process_time()
            each()
            if n:
                done.append((time.process_time() - begun_s) * 1e3)
    return [statistics.median(each) for each in taken]


def _reads(asked: Sequence[Asked], lake: Path, size: Size) -> Iterator[Row]:
    progress("reads")
    with counted(lake) as reads:
        for each in asked:
            each.ask(lake, size.last_day)
    yield Row(
        name="queries/cluster/reads",
        value=reads.n,
        unit="reads",
        budget=Budget("at most", 12),
        peers={"kB": reads.n_bytes / 1e3},
        how=f"{', '.join(each.query for each in asked)} of one cluster, asked one after the other by a process that "
        "has read nothing yet: calls of read on files, listings apart.",
    )


def _peak(asked: Asked, folder: Path, size: Size) -> Row:
    """In a process of its own, for a peak does not go down again."""
    script = [sys.executable, "-m", "bench.queries", str(folder), str(size.days), str(size.clusters), asked.name]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    before_kib, after_kib = map(int, done.stdout.split())
    return Row(
        name=f"queries/{asked.name}/memory",
        value=max(after_kib - before_kib, 1) / 1024,
        unit="MiB",
        peers={"process before, MiB": before_kib / 1024},
        how="Greatest resident size (VmHWM) of a process that asks once, less that before, when all was imported, the "
        "catalog read, and DuckDB had answered SELECT 1.",
    )


def _child(folder: Path, size: Size, name: str) -> tuple[int, int]:
    from daskscope_query import engine

    lake = folder / "lake"
    found = questions(size, plan(size), catalog_of(CatalogFiles(DiskObjects(lake))))
    asked = next(each for each in found if each.name == name)
    engine.cursor().execute("SELECT 1").fetchall()
    Path("/proc/self/clear_refs").write_text("5")  # the peak of a process starts as that of its parent
    before_kib = _peak_kib()
    asked.ask(lake, size.last_day)
    return before_kib, _peak_kib()


def _peak_kib() -> int:
    (told,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(told)


if __name__ == "__main__":
    _folder, _days, _clusters, _name = sys.argv[1:]
    _size = next(each for each in (TINY, scaled(int(_days) / 365)) if each.clusters == int(_clusters))
    print(*_child(Path(_folder), _size, _name))

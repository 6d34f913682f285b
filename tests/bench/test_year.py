"""A few days of the made-up year: rows are what the tables promise, our answers those of DuckDB's own tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench.asked import Asked, catalog_of, questions, read_by
from bench.counting import counted
from bench.native import Native, build, opened
from bench.year.__main__ import build as build_year
from bench.year.days import WITHOUT, rows
from bench.year.plan import ACCOUNT, Clusters, plan
from bench.year.size import FIRST_DAY, TINY, Size, apportion, scaled
from daskscope_lambdas.adapters.local import DiskObjects
from daskscope_lambdas.service.catalog_files import CatalogFiles
from daskscope_query import footers, unpacked
from daskscope_query.lake import Lake
from daskscope_query.tables import ROLLUPS, TABLES

DAYS = [FIRST_DAY + timedelta(n) for n in range(TINY.days)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("year")
    build_year(made, TINY, 1)
    return made


@pytest.fixture(scope="module")
def clusters() -> Clusters:
    return plan(TINY)


@pytest.fixture(scope="module")
def asked(folder: Path, clusters: Clusters) -> list[Asked]:
    return questions(TINY, clusters, catalog_of(CatalogFiles(DiskObjects(folder / "lake"))))


@pytest.fixture(scope="module")
def native(folder: Path, asked: list[Asked]) -> Iterator[Native]:
    build(folder / "lake", folder / "native.duckdb", read_by(asked))
    with opened(folder / "native.duckdb") as found:
        yield found


def lake_of(folder: Path) -> Lake:
    return Lake(str(folder / "lake"), TINY.last_day)


def test_a_year_has_as_many_rows_as_it_says() -> None:
    year = plan(Size())
    assert len(year) == len(np.unique(year.uuid.astype(str))) == 20_000
    assert year.n_computations.sum() == 2_000_000
    assert year.n_groups.sum() == 20_000_000
    assert year.n_exceptions.sum() == 60_000
    assert abs((year.n_workers * year.n_messages).sum() / 97_000_000 - 1) < 0.01
    assert sorted(year.number) == list(range(1, 20_001))
    day_ms = (year.start_ms - year.start_ms.min()) // 86_400_000
    assert np.unique(year.day).tolist() == list(range(365))
    assert (day_ms <= year.day + 1).all()


def test_a_part_of_a_year_is_fewer_days_as_busy_as_all() -> None:
    part = scaled(0.01)
    assert (part.days, part.clusters, part.groups) == (4, 219, 219_178)
    with pytest.raises(ValueError, match=r"scale is 2; allowed: above 0, at most 1\.0"):
        scaled(2)


def test_shares_are_whole_and_make_the_total() -> None:
    assert apportion(10, np.array([1, 1, 1])).tolist() in ([4, 3, 3], [3, 4, 3], [3, 3, 4])
    assert apportion(7, np.array([0.0, 1.0])).tolist() == [0, 7]


def test_the_same_year_comes_out_twice(clusters: Clusters) -> None:
    def made() -> dict[str, pa.Table]:
        return {table.name: found for table, found in rows(clusters.on(1), 1)}

    first, again = made(), made()
    assert first.keys() | set(WITHOUT) == TABLES.keys()
    assert all(first[name].equals(again[name]) for name in first)


@pytest.mark.parametrize("day", DAYS[:2])
def test_files_are_what_sealing_would_have_made(folder: Path, day: date) -> None:
    """No key twice, in the order of sealed files: else the lake would drop rows, or give them in another order."""
    lake = lake_of(folder)
    for name in TABLES.keys() - set(WITHOUT):
        files = [lake.file(name, key) for key in lake.keys(name, ACCOUNT, day, day)]
        stored = pa.concat_tables([TABLES[name].schema.empty_table(), *files])
        keys = stored.group_by(list(TABLES[name].key)).aggregate([])
        assert stored.num_rows == keys.num_rows > 0 or name in ("deaths", "exceptions"), name
        assert lake.day(name, account=ACCOUNT, day=day).rows.equals(stored), name


def test_roll_ups_are_those_of_the_days(folder: Path) -> None:
    lake = lake_of(folder)
    for name in ROLLUPS:
        made = lake.rollup(name, account=ACCOUNT, day=DAYS[0])
        assert lake.stored(name, ACCOUNT, DAYS[0]).equals(made.rows)
        assert made.rows.num_rows > 0 or name == "exceptions_daily"


def test_the_registry_tells_what_the_lake_does(folder: Path, clusters: Clusters) -> None:
    catalog = catalog_of(CatalogFiles(DiskObjects(folder / "lake")))
    by_uuid = dict(zip(catalog.column("cluster").to_pylist(), catalog.to_pylist(), strict=True))
    assert by_uuid.keys() == set(clusters.uuid)
    found = lake_of(folder).ask("completeness", account=ACCOUNT, days=(DAYS[0], DAYS[-1]), cluster=clusters.uuid[0])
    (told,) = found.records()
    assert (told["expected"], told["received"]) == (clusters.n_messages[0],) * 2
    assert found.as_of == by_uuid[clusters.uuid[0]]["last_received_at"]


def test_every_question_has_the_answer_of_native_tables(folder: Path, asked: list[Asked], native: Native) -> None:
    for each in asked:
        native.prepare(each.query, each.days, each.given)
        ours = each.ask(folder / "lake", TINY.last_day)
        assert (ours.skipped, ours.rows.num_rows > 0) == ([], True), each.name
        assert_same(ours.rows, native.ask(each.query, **each.params), each.name)


def test_roll_ups_sum_to_what_their_tables_do(folder: Path, asked: list[Asked], native: Native) -> None:
    (prefixes,) = (each for each in asked if each.name == "year/prefixes")
    native.prepare(prefixes.query, prefixes.days, prefixes.given, from_base=True)
    ours = prefixes.ask(folder / "lake", TINY.last_day)
    assert_same(ours.rows, native.ask(prefixes.query, **prefixes.params), prefixes.name)


def test_answers_are_the_same_with_what_is_kept_and_without(folder: Path, asked: list[Asked]) -> None:
    for each in asked:
        footers.forget()
        unpacked.forget()
        fresh = each.ask(folder / "lake", TINY.last_day)
        kept = each.ask(folder / "lake", TINY.last_day)
        assert (kept.as_of, kept.until, kept.skipped) == (fresh.as_of, fresh.until, fresh.skipped), each.name
        assert_same(kept.rows, fresh.rows, each.name)


def test_a_cluster_is_a_dozen_reads(folder: Path, asked: list[Asked]) -> None:
    of_one = [each for each in asked if each.name in ("cluster/groups", "cluster/computations", "cluster/samples")]
    with counted(folder / "lake") as reads:
        for each in of_one:
            each.ask(folder / "lake", TINY.last_day)
    assert 4 < reads.n <= 12
    assert reads.n_bytes > 10_000


def assert_same(ours: pa.Table, theirs: pa.Table, name: str) -> None:
    """But for the last digits of sums, which come in another order."""
    assert ours.column_names == theirs.column_names, name
    for mine, other in zip(ours.to_pylist(), theirs.to_pylist(), strict=True):
        for column, value in mine.items():
            assert_close(value, other[column], f"{name} {column}")


def assert_close(value: Any, other: Any, what: str) -> None:
    if isinstance(value, float) and isinstance(other, float):
        assert value == pytest.approx(other, rel=1e-9, nan_ok=True), what
    else:
        assert value == other, what

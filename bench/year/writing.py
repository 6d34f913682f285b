"""A year on the disk: sealed days and their roll-ups, as `compact` would have left them."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa

from bench.year.days import rows
from bench.year.plan import ACCOUNT, Clusters, plan
from bench.year.size import FIRST_DAY, Size
from daskscope_lambdas.adapters.local import DiskObjects
from daskscope_lambdas.ports import ObjectStore, Taken
from daskscope_lambdas.service.compact import PART_ROWS
from daskscope_query import files, layout
from daskscope_query.lake import Lake
from daskscope_query.tables import ROLLUPS, Table


def write(lake: Path, size: Size, processes: int = 2) -> Iterator[int]:
    """Every day that is not there yet, several at a time; tells the number of each that is done. May be stopped and
    called again; roll-ups that were deleted are made anew.
    """
    clusters = plan(size)
    if processes == 1:
        for day in range(size.days):
            write_day(lake, size, day, clusters.on(day))
            yield day
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_quietly) as pool:
        days = [pool.submit(write_day, lake, size, day, clusters.on(day)) for day in range(size.days)]
        for day, done in enumerate(days):
            done.result()
            yield day


def _quietly() -> None:
    """Others work here too."""
    os.nice(10)
    pa.set_cpu_count(1)


def write_day(lake: Path, size: Size, day: int, clusters: Clusters) -> None:
    """The day's tables, then its roll-ups, by the services' own SQL, then when it was sealed."""
    objects, date = DiskObjects(lake), FIRST_DAY + timedelta(day)
    if layout.plan_key(date) not in objects.list(layout.plan_key(date)):
        for table, made in rows(clusters, day):
            _put(objects, table, made, partial(layout.sealed_key, table.name, ACCOUNT, date))
        plan = {"part_rows": PART_ROWS, "files": [], "accounts": {}, "skipped": {}, "without": {}}
        objects.put_new(layout.plan_key(date), json.dumps(plan).encode())
    for name, table in ROLLUPS.items():
        key = partial(layout.rollup_key, name, ACCOUNT, date)
        if key(0) not in objects.list(key(0)):
            made = Lake(str(lake), size.last_day).rollup(name, account=ACCOUNT, day=date)
            _put(objects, table, made.rows, key)
    with suppress(Taken):
        objects.put_new(
            layout.sealed_at_key(date), str(layout.midnight_ms(date + timedelta(1)) / 1000 + 7_200).encode()
        )


def _put(objects: ObjectStore, table: Table, rows: pa.Table, key: Callable[[int], str]) -> None:
    for part, start in reversed(list(enumerate(range(0, rows.num_rows, PART_ROWS)))):
        with suppress(Taken):  # written by a run that was stopped
            objects.put_new(key(part), files.encode(table, rows.slice(start, PART_ROWS)))

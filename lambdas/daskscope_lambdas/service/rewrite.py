"""Sealed days of the lake, made anew without what was deleted.

Nothing is changed in place. What is left of a day's rows is written as its next revision, part 0 last; from then on
readers take that one, and the files before it go. Whoever dies in between leaves files of which a newer revision
stands, or one that does not stand yet: nobody reads them, and the next run takes them away or writes another. Two that
do it at once write two revisions, each of them whole, of which the same one counts for everybody.

Roll-ups first: as long as a table holds rows of what was deleted, its day is known to be stale. Where no row is left of
what a roll-up was made of, for those were kept less long, nobody can tell what the cluster added: then all that it says
of that cluster's user goes.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from functools import partial

import pyarrow as pa

from daskscope_lambdas.ports import ObjectStore, Taken
from daskscope_lambdas.service.compact import PART_ROWS
from daskscope_query import files, layout
from daskscope_query.exclusion import Exclusion
from daskscope_query.lake import Lake, UnmadeError
from daskscope_query.tables import CLUSTERS_DAILY, ROLLUPS, TABLES, Table

logger = logging.getLogger("daskscope.delete")


class Rewriter:
    """Of the lake at `lake_root`, which must be what `objects` keeps."""

    def __init__(self, objects: ObjectStore, lake_root: str) -> None:
        self._objects, self._root = objects, lake_root

    def clean(self, account: str, without: Exclusion, first: date, boundary: date) -> None:
        """Have the account's sealed days from `first` to `boundary` hold nothing of what is left out.

        Raises UnreadableError if a file cannot be read: nobody knows what is in it. Raises MovedError if another run is
        at it, too.
        """
        if without.until is not None:
            self._drop_before(account, without.until.date())
        lake = Lake(self._root, boundary, without={account: without})
        tables: dict[date, list[Table]] = defaultdict(list)
        for table in TABLES.values():
            for day in _days(lake.holding(table, account, first, boundary)):
                tables[day].append(table)
        for day in sorted({*tables, *_days(lake.holding(CLUSTERS_DAILY, account, first, boundary))}):
            for rollup in ROLLUPS.values():
                self._rollup(lake, rollup, account, day, without)
            for table in tables[day]:
                self._table(lake, table, account, day, without)
        self._drop_superseded(account)

    def _drop_before(self, account: str, day: date) -> None:
        """All of these days was received before the account was deleted."""
        for prefix in _prefixes(account):
            for key in self._objects.list(prefix):
                if (of := layout.day_in(key)) and of < day:
                    self._objects.delete(key)

    def _drop_superseded(self, account: str) -> None:
        for prefix in _prefixes(account):
            for key in layout.superseded(self._objects.list(prefix)):
                self._objects.delete(key)

    def _table(self, lake: Lake, table: Table, account: str, day: date, without: Exclusion) -> None:
        keys = lake.keys(table.name, account, day, day)
        answer = lake.day(table.name, account=account, day=day)
        if answer.skipped:
            raise files.UnreadableError(f"{', '.join(answer.skipped)}: {day} cannot be made anew without its rows.")
        self._replace(table, keys, answer.rows, partial(layout.sealed_key, table.name, account, day), without)

    def _rollup(self, lake: Lake, rollup: Table, account: str, day: date, without: Exclusion) -> None:
        keys = lake.rollup_keys(rollup.name, account, day, day)
        if not keys:
            return
        try:
            answer = lake.remaining(rollup.name, account, day)
        except UnmadeError as error:
            logger.error("%s of %s on %s cannot be made anew: %s", rollup.name, account, day, error)
            with suppress(Taken):
                self._objects.put_new(layout.unmade_key(rollup.name, account, day), b"")
            for key in keys:
                self._objects.delete(key)
            return
        if answer.skipped:
            raise files.UnreadableError(f"{', '.join(answer.skipped)}: {day} cannot be made anew without its rows.")
        if not answer.rows.equals(lake.stored(rollup.name, account, day)) or rollup is CLUSTERS_DAILY:
            self._replace(rollup, keys, answer.rows, partial(layout.rollup_key, rollup.name, account, day), without)

    def _replace(
        self, table: Table, keys: list[str], rows: pa.Table, key: Callable[[int, str], str], without: Exclusion
    ) -> None:
        made_of = [sorted(keys), sorted(without.clusters), str(without.until), PART_ROWS]
        digest = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16]
        revision = layout.next_revision(keys, digest)
        # Of no rows there is one part too: it says that those before it count no more.
        for part, start in reversed(list(enumerate(range(0, max(rows.num_rows, 1), PART_ROWS)))):
            with suppress(Taken):
                self._objects.put_new(key(part, revision), files.encode(table, rows.slice(start, PART_ROWS)))
        for old in keys:
            self._objects.delete(old)


def _prefixes(account: str) -> list[str]:
    sealed = [layout.sealed_prefix(name, account) for name in TABLES]
    return sealed + [layout.rollup_prefix(name, account) for name in ROLLUPS]


def _days(keys: list[str]) -> set[date]:
    return {day for key in keys if (day := layout.day_in(key))}

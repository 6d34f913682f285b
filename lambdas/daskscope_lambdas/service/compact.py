"""Days that are over are sealed: read once, repeats dropped, sorted, written for good; then their open files go.

Why nothing is doubled or lost, wherever a run dies and however many run at once:

1. The first thing kept of a day is its plan, write-once: which open files make it up, which of them cannot be read,
   whose rows they hold, what of these was deleted, how many rows go into a part. Whoever comes later finds the plan and
   works from it alone, so every run makes the same parts of the same rows in the same order, whatever has arrived, or
   was deleted, since: that is for deletion.py, once the day is sealed. A part that is Taken
   is therefore this very part, and is left as it is. The last part of a table is put first and part 0 last: where
   that stands all do, and nothing of them is computed again. So a day that outlasts one run is sealed by several.
2. The boundary moves only when all is written, from where this run saw it. Until then readers use the open files. A run
   that meets Conflict was overtaken by another with the same plan, and leaves the rest to it.
3. A file of a sealed day that is not in its plan came too late: its copy goes into the first open day under a name
   that says so, then it goes. Dying between the two leaves the copy, which the next run finds Taken.
4. Files of the plan go an hour after a run first found the day sealed (a time kept write-once), for a reader that asked
   for the boundary before it moved may still be reading. Files that cannot be read stay, for a person to look at.

The roll-up of a day holds what the day added to counters that only grow, told from the sealed days before it. One that
cannot be made of an account's rows is marked as unmade and keeps nobody's day open: the rows themselves are sealed, and
who asks has it made of these.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from daskscope_lambdas.ports import Clock, Conflict, Missing, ObjectStore, Seals, StoreError, Taken
from daskscope_lambdas.service.exclusions import Exclusions, as_json, from_json
from daskscope_query import files, layout
from daskscope_query.lake import Answer, Lake, UnmadeError
from daskscope_query.tables import ROLLUPS, TABLES, Table

logger = logging.getLogger("daskscope.compact")

GRACE_S = 2 * 3600.0
"""After midnight UTC, for what is still in the queue."""
LINGER_S = 3600.0
"""How long open files outlive the sealing of their day."""
PART_ROWS = 768 * 1024
"""A part's footer stays small: one of 738 row groups alone cost 250 ms to read."""


@dataclass(slots=True)
class _Plan:
    """Keys are those of the store."""

    part_rows: int
    files: list[str] = field(default_factory=list[str])
    accounts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """By table, whose rows the files hold."""
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    """Files that cannot be read, and why."""
    without: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """What was deleted, as exclusions.py writes it."""


class Compactor:
    """Seals days of the lake at `lake_root`, which must be what `objects` keeps.

    `exclusions` tells what was deleted; without, nothing was.
    """

    def __init__(
        self,
        objects: ObjectStore,
        seals: Seals,
        clock: Clock,
        lake_root: str,
        exclusions: Exclusions | None = None,
    ) -> None:
        self._objects, self._seals, self._clock, self._root = objects, seals, clock, lake_root
        self._exclusions = exclusions

    def run(self) -> list[date]:
        """Seal every day that is over and past its grace, oldest first; returns those that this run sealed.

        Then sweep open files of sealed days. A file that cannot be read is logged as a warning.
        """
        sealed: list[date] = []
        boundary = self._seals.boundary()
        day = self._first_day() if boundary is None else boundary + timedelta(1)
        while day is not None and self._over(day):
            self._seal(day)
            try:
                self._seals.advance(boundary, day)
            except Conflict:
                logger.info("Another run has sealed %s.", day)
                break
            sealed.append(day)
            boundary, day = day, day + timedelta(1)
        self._sweep()
        return sealed

    def _first_day(self) -> date | None:
        return min((day for _, key in self._open_keys() if (day := layout.day_in(key))), default=None)

    def _over(self, day: date) -> bool:
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(1)
        return self._clock.now() >= midnight.timestamp() + GRACE_S

    def _open_keys(self) -> Iterator[tuple[str, str]]:
        """Table and key of every open file."""
        return ((table, key) for table in TABLES for key in self._objects.list(f"open/{table}/"))

    def _seal(self, day: date) -> None:
        plan = self._plan(day)
        for key, flaw in plan.skipped.items():
            logger.warning("%s cannot be read, %s is sealed without it: %s", key, day, flaw)
        lake = Lake(self._root, day - timedelta(1), open_files=plan.files, without=from_json(plan.without))
        for name, accounts in plan.accounts.items():
            for account in accounts:
                ask = partial(lake.day, name, account=account, day=day)
                self._keep(ask, TABLES[name], plan, partial(layout.sealed_key, name, account, day))
        for account in sorted({account for accounts in plan.accounts.values() for account in accounts}):
            for name in ROLLUPS:
                ask = partial(lake.rollup, name, account=account, day=day)
                try:
                    self._keep(ask, ROLLUPS[name], plan, partial(layout.rollup_key, name, account, day))
                except UnmadeError as error:
                    logger.error("%s of %s on %s cannot be made, its rows are sealed: %s", name, account, day, error)
                    with suppress(Taken):
                        self._objects.put_new(layout.unmade_key(name, account, day), b"")

    def _plan(self, day: date) -> _Plan:
        if known := self._known_plan(day):
            return known
        plan = _Plan(PART_ROWS)
        lake = Lake(self._root, None)
        owners: dict[str, set[tuple[str, str]]] = {}
        for table, key in self._open_keys():
            if layout.day_in(key) != day:
                continue
            try:
                found = lake.owners(table, key)
            except files.UnreadableError as error:
                plan.skipped[key] = str(error)
            else:
                plan.files.append(key)
                owners[table] = owners.get(table, set()) | found
        without = self._exclusions.among(set().union(*owners.values())) if self._exclusions else {}
        for table, pairs in owners.items():
            left = {a for a, cluster in pairs if a not in without or cluster not in without[a].clusters}
            plan.accounts[table] = sorted(left)
        plan.without = as_json(without)
        with suppress(Taken):
            self._objects.put_new(layout.plan_key(day), json.dumps(asdict(plan)).encode())
            return plan
        # Another run was faster: its plan is the plan.
        return self._known_plan(day) or plan

    def _known_plan(self, day: date) -> _Plan | None:
        try:
            return _Plan(**json.loads(self._objects.get(layout.plan_key(day))))
        except Missing:
            return None

    def _rows(self, answer: Answer, plan: _Plan) -> pa.Table:
        """Raises StoreError for a file that could be read when the plan was made and no longer can."""
        if spoilt := set(answer.skipped) & set(plan.files):
            raise StoreError(f"{', '.join(sorted(spoilt))}: could be read before and cannot now; the day stays open.")
        if answer.skipped:
            logger.warning("%s: cannot be read; roll-ups were made without.", ", ".join(answer.skipped))
        return answer.rows

    def _keep(self, ask: Callable[[], Answer], table: Table, plan: _Plan, key: Callable[[int], str]) -> None:
        if key(0) in self._objects.list(key(0)):
            return
        rows = self._rows(ask(), plan)
        for part, start in reversed(list(enumerate(range(0, rows.num_rows, plan.part_rows)))):
            with suppress(Taken):
                self._objects.put_new(key(part), files.encode(table, rows.slice(start, plan.part_rows)))

    def _sweep(self) -> None:
        """Open files of sealed days: those of the plan go after a while, late ones move to the first open day."""
        boundary = self._seals.boundary()
        if boundary is None:
            return
        old = [(table, key, day) for table, key in self._open_keys() if (day := layout.day_in(key)) and day <= boundary]
        days = {day for _, _, day in old}
        plans = [plan for day in days if (plan := self._known_plan(day))]
        planned = {key for plan in plans for key in plan.files}
        skipped = {key for plan in plans for key in plan.skipped}
        rested = {day for day in days if self._rested(day)}
        for table, key, day in old:
            if key in planned:
                if day in rested:
                    self._objects.delete(key)
            elif key not in skipped:
                self._move(table, key, day, boundary + timedelta(1))

    def _move(self, table: str, key: str, day: date, to: date) -> None:
        name = key.rpartition("/")[2].removesuffix(".parquet")
        with suppress(Taken):
            self._objects.put_new(layout.late_mark_key(day, to), b"")
        with suppress(Taken):
            self._objects.put_new(layout.late_key(table, to, name, day), self._objects.get(key))
        self._objects.delete(key)
        logger.info("%s came after its day was sealed: moved to %s.", key, to)

    def _rested(self, day: date) -> bool:
        now = self._clock.now()
        try:
            return now >= float(self._objects.get(layout.sealed_at_key(day))) + LINGER_S
        except Missing:
            with suppress(Taken):
                self._objects.put_new(layout.sealed_at_key(day), str(now).encode())
            return False

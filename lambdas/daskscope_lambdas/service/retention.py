"""How long rows are kept: sealed days that are older than their account wants go.

A row is kept for as many whole days after the one on which it was received. Open days are never older than that. Two
things stay longer:

- Rows that tell running totals are what later days are counted from: a day of such a table goes once none of its
  clusters was heard of for as long. That it went is written down, so that nobody takes what is left for all.
- `clusters_daily` tells whose the sums of the other roll-ups are: of each day it goes last.

Once `clusters` are kept for some days only, those that ended or fell silent, and were not heard of for as long, leave
the registry too. None of this is a deletion: what comes of a cluster later is taken in as if it were new.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date

from daskscope_lambdas.ports import ClusterRow, Taken
from daskscope_lambdas.service.deletion import rows_of
from daskscope_lambdas.service.records import status
from daskscope_lambdas.service.world import World
from daskscope_query import files, layout
from daskscope_query.lake import Lake, MovedError
from daskscope_query.questions import baselines
from daskscope_query.tables import AUDIT, CLUSTERS, CLUSTERS_DAILY, ROLLUPS, TABLES

logger = logging.getLogger("daskscope.retention")

KEPT = (*TABLES, *ROLLUPS)
"""What a policy may name."""
LEAST_DAYS = {AUDIT.name: 365}
"""Of others a day will do: who did something to an account must not be able to hide it."""
_DAY_S = 86_400.0


def checked(wanted: Mapping[str, int]) -> dict[str, int]:
    """Days by table or roll-up, as an account may want them. Raises ValueError that says what is allowed."""
    if odd := sorted(wanted.keys() - {*KEPT}):
        raise ValueError(f"There is no table {odd[0]!r}; allowed: {', '.join(KEPT)}.")
    if short := sorted(name for name, days in wanted.items() if days < LEAST_DAYS.get(name, 1)):
        raise ValueError(f"{short[0]} is kept for {LEAST_DAYS.get(short[0], 1)} days at least.")
    return dict(wanted)


class Retention:
    def __init__(self, world: World) -> None:
        self._world = world

    def run(self, boundary: date) -> None:
        """For every account that wants something gone. `boundary`: up to where days are sealed."""
        for account in self._world.policies.accounts():
            wanted = self._world.policies.wish(account, "retention")
            try:
                _Account(self._world, account, boundary, wanted).run()
            except (MovedError, files.UnreadableError) as error:
                logger.warning("What account %s keeps no longer stays for another day: %s", account, error)


class _Account:
    """One run for one account. `wanted`: days by table or roll-up."""

    def __init__(self, world: World, account: str, boundary: date, wanted: dict[str, int]) -> None:
        self._world, self._account = world, account
        self._wanted = {name: days for name, days in wanted.items() if name in KEPT}
        self._now = world.clock.now()
        self._lake = Lake(world.lake_root, boundary)

    def run(self) -> None:
        totals = baselines() & self._wanted.keys()
        for name in sorted(self._wanted.keys() - totals - {CLUSTERS_DAILY.name}):
            self._drop(name, self._old(name))
        if CLUSTERS_DAILY.name in self._wanted:
            told = {day for name in ROLLUPS if name != CLUSTERS_DAILY.name for day in self._keys(name)}
            self._drop(CLUSTERS_DAILY.name, self._old(CLUSTERS_DAILY.name) - told)
        if totals:
            self._drop_totals(sorted(totals), list(rows_of(self._world, self._account)))

    def _drop_totals(self, names: Iterable[str], rows: list[ClusterRow]) -> None:
        for name in names:
            alive = {row.uuid for row in rows if self._heard_within(row, self._wanted[name])}
            gone = {
                day for day in self._old(name) if not alive & self._lake.clusters(name, self._account, day)
            }  # fmt: skip
            self._drop(name, gone)
        if CLUSTERS.name in names:
            # Not before the last table that asks here whether a cluster was heard of.
            longest = max(self._wanted[name] for name in names)
            for row in rows:
                if not self._heard_within(row, longest) and status(row, self._now) != "running":
                    self._world.clusters.drop(row)

    def _heard_within(self, row: ClusterRow, days: int) -> bool:
        return row.last_received_at >= self._now - (days + 1) * _DAY_S

    def _keys(self, name: str) -> dict[date, list[str]]:
        """All that lies there, also of what is superseded or broken off."""
        prefix = layout.rollup_prefix if name in ROLLUPS else layout.sealed_prefix
        found: dict[date, list[str]] = defaultdict(list)
        for key in self._world.objects.list(prefix(name, self._account)):
            if (day := layout.day_in(key)) and not layout.is_gone(key):
                found[day].append(key)
        return found

    def _old(self, name: str) -> set[date]:
        today = layout.day_of(self._now)
        return {day for day in self._keys(name) if (today - day).days > self._wanted[name]}

    def _drop(self, name: str, days: set[date]) -> None:
        keys = self._keys(name)
        # The newest first: what is left, should this die, has all before it.
        for day in sorted(days, reverse=True):
            if name in baselines():
                with suppress(Taken):
                    self._world.objects.put_new(layout.gone_key(name, self._account, day), b"")
            # Part 0 of what stands goes before its others, and without it these count no more: a day goes as one.
            for key in [*layout.superseded(keys[day]), *keys[day]]:
                self._world.objects.delete(key)

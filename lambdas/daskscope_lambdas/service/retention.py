"""How long rows are kept: sealed days that are older than their account wants go.

A row is kept for as many whole days after the one on which it was received. Open days are never older than that. Once
`clusters` are kept for some days only, ended clusters that were not heard of for as long leave the registry too.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date

from daskscope_lambdas.ports import Missing
from daskscope_lambdas.service.deletion import rows_of
from daskscope_lambdas.service.records import status
from daskscope_lambdas.service.world import World
from daskscope_query import layout
from daskscope_query.tables import CLUSTERS, ROLLUPS, TABLES

KEPT = (*TABLES, *ROLLUPS)
"""What a policy may name."""
_DAY_S = 86_400.0


class Retention:
    def __init__(self, world: World) -> None:
        self._world = world

    def run(self) -> None:
        """For every account that wants something gone."""
        today = layout.day_of(self._world.clock.now())
        for account in self._world.policies.accounts():
            for name, days in self._world.policies.retention(account).items():
                if name in KEPT:
                    self._drop(name, account, today, days)
                if name == CLUSTERS.name:
                    self._forget(account, days)

    def _drop(self, name: str, account: str, today: date, days: int) -> None:
        prefix = layout.rollup_prefix(name, account) if name in ROLLUPS else layout.sealed_prefix(name, account)
        # Part 0 of a day goes first, and without it the rest counts no more: a day goes as one.
        for key in self._world.objects.list(prefix):
            if (day := layout.day_in(key)) and (today - day).days > days:
                self._world.objects.delete(key)

    def _forget(self, account: str, days: int) -> None:
        now = self._world.clock.now()
        for row in rows_of(self._world, account):
            if row.last_received_at < now - (days + 1) * _DAY_S and status(row, now) != "running":
                with suppress(Missing):
                    self._world.clusters.forget(account, row.uuid, now)

"""The look at all reports, with each sweep: what is kept no longer goes, and what may not be public any more is hidden.

- Reports that are as old as their account wants them go. Numbers and times rise together, so the oldest come first.
- One whose file was announced and never kept goes after a day, with whatever was brought.
- Where an account wants no public ones, those that were are hidden, and stay so if it changes its mind: their owners
  say which may be seen again.

Which of those that are over a day old need no further look, this process remembers, as long as the account wants the
same, and how old the oldest is; a new one looks at all once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from daskscope_lambdas.ports import Missing, ReportRow, StoreError
from daskscope_lambdas.service.report_policy import ReportPolicy
from daskscope_lambdas.service.reports import drop, hide
from daskscope_lambdas.service.world import World

logger = logging.getLogger("daskscope.reports")

ABANDONED_S = 86_400.0
"""A file that has not come by then does not come any more."""
_PAGE = 500


@dataclass(slots=True)
class ReportsSwept:
    """What was done: so many that expired are gone, so many that never came, and so many public ones are hidden."""

    expired: int = 0
    abandoned: int = 0
    hidden: int = 0


class ReportSweeper:
    """One per process: it remembers how far it looked. `run` is for one thread at a time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._looked_at: dict[str, tuple[ReportPolicy, int]] = {}
        """Number of the last report that needs no further look, by account, as long as it wants just that."""
        self._oldest_at: dict[str, float] = {}
        """No report of the account is from before (epoch s)."""

    def run(self) -> ReportsSwept:
        """One look at all. What fails at one account keeps nobody else's from being looked at; the first failure is
        raised at the end, and the next run finds what this one left."""
        swept, trouble = ReportsSwept(), None
        accounts = self._world.reports.accounts()
        # One that was deleted counts from 1 again, should anybody use its name.
        self._looked_at = {account: self._looked_at[account] for account in accounts if account in self._looked_at}
        for account in accounts:
            try:
                self._look(account, swept)
            except StoreError as error:
                logger.warning("Reports of %s could not all be looked at: %s", account, error)
                trouble = trouble or error
        self._world.report_files.tidy()
        if trouble:
            raise trouble
        return swept

    def _look(self, account: str, swept: ReportsSwept) -> None:
        policy, now = ReportPolicy.of(self._world.policies, account), self._world.clock.now()
        outdated = policy.outdated(now)
        if outdated is not None and self._oldest_at.get(account, outdated) <= outdated:
            self._expire(account, outdated, swept)
        of, looked_at = self._looked_at.get(account, (policy, None))
        for row in self._after(account, looked_at if of == policy else None):
            is_old = row.created_at <= now - ABANDONED_S
            if row.kept_at is None and is_old:
                self._drop(row, "never came whole")
                swept.abandoned += 1
            elif policy.is_private(row) and not row.private:
                with suppress(Missing):  # gone meanwhile
                    hide(self._world.reports, self._world.report_files, row)
                    swept.hidden += 1
            if is_old:
                self._looked_at[account] = policy, row.id

    def _expire(self, account: str, outdated: float, swept: ReportsSwept) -> None:
        for row in self._after(account, None, first=1):  # Mostly none is due, and nothing more is read.
            if row.created_at > outdated:
                self._oldest_at[account] = row.created_at
                break
            self._drop(row, "is kept no longer")
            swept.expired += 1

    def _after(self, account: str, number: int | None, first: int | None = None) -> Iterator[ReportRow]:
        """The oldest first, `first` of them in the first page. What goes or changes on the way moves nothing."""
        limit = first or _PAGE
        while rows := self._world.reports.page(account, limit, number, oldest_first=True):
            yield from rows
            number, limit = rows[-1].id, _PAGE

    def _drop(self, row: ReportRow, why: str) -> None:
        drop(self._world.reports, self._world.report_files, row)
        logger.info("Report %d of %s %s.", row.id, row.account, why)

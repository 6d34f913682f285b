"""The look at all reports, with each sweep: what is kept no longer goes, and what may not be public any more is hidden.

- Reports that are as old as their account wants them go. Numbers and times rise together, so the oldest come first.
- One whose file was announced and never kept goes after a day, with whatever was brought.
- Where an account wants no public ones, those that were are hidden, and stay so if it changes its mind: their owners
  say which may be seen again.

Which of those that are over a day old need no further look, this process remembers; a new one looks at all once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from daskscope_lambdas.ports import Missing, ReportRow, StoreError
from daskscope_lambdas.service.report_policy import ReportPolicy
from daskscope_lambdas.service.reports import ReportWorld, drop, hide

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

    def __init__(self, world: ReportWorld) -> None:
        self._world = world
        self._looked_at: dict[tuple[str, bool], int] = {}
        """Number of the last report that needs no further look, by account and whether it wants public ones."""

    def run(self) -> ReportsSwept:
        """One look at all. What fails at one account keeps nobody else's from being looked at; the first failure is
        raised at the end, and the next run finds what this one left."""
        swept, trouble = ReportsSwept(), None
        for account in self._world.reports.accounts():
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
        if policy.keep_days is not None:
            for row in self._after(account, None):
                expires_at = policy.expires_at(row)
                if expires_at is None or expires_at > now:
                    break
                self._drop(row, "is kept no longer")
                swept.expired += 1
        looked_at = account, policy.public
        self._looked_at.pop((account, not policy.public), None)  # Should the account change its mind, all count again.
        for row in self._after(account, self._looked_at.get(looked_at)):
            is_old = row.created_at <= now - ABANDONED_S
            if row.kept_at is None and is_old:
                self._drop(row, "never came whole")
                swept.abandoned += 1
            elif policy.is_private(row) and not row.private:
                with suppress(Missing):  # gone meanwhile
                    hide(self._world.reports, self._world.report_files, row)
                    swept.hidden += 1
            if is_old:
                self._looked_at[looked_at] = row.id

    def _after(self, account: str, number: int | None) -> Iterator[ReportRow]:
        """The oldest first. What goes or changes on the way moves nothing."""
        while rows := self._world.reports.page(account, _PAGE, number, oldest_first=True):
            yield from rows
            number = rows[-1].id

    def _drop(self, row: ReportRow, why: str) -> None:
        drop(self._world.reports, self._world.report_files, row)
        logger.info("Report %d of %s %s.", row.id, row.account, why)

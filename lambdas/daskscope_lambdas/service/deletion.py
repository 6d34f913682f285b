"""Deleting a cluster, or all of an account: asked for once, then carried out by the runs of `compact` until it is done.

What is asked for is written down first; from then on no answer shows it (found.py), whatever becomes of who asked. Then

1. the registry forgets: rows, which leave a fingerprint so that none comes again; of an account also what it has beside
   them (belongings.py): tokens, people, reports, what it wanted, the key to its code;
2. sealed days are made anew without it (rewrite.py), and those that are sealed later leave it out (exclusions.py);
3. after REST_DAYS, when no queue can hold a message of it any more, all sealed days are looked through once more, and
   what names it goes too: the plans of days, and that it was asked for.

Each step may be repeated without effect. Code that nobody else's rows name goes by unused.py.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from daskscope_lambdas.ports import ClusterRow, Deletion, Missing, StoreError
from daskscope_lambdas.service.belongings import forget_belongings
from daskscope_lambdas.service.exclusions import PASS_S, excluding
from daskscope_lambdas.service.letters import Letters
from daskscope_lambdas.service.rewrite import Rewriter
from daskscope_lambdas.service.world import World
from daskscope_query import files, layout
from daskscope_query.lake import MovedError
from daskscope_query.tables import TABLES

logger = logging.getLogger("daskscope.delete")

REST_DAYS = 15
"""A queue keeps a message for up to 14 days."""
_TOGETHER = 500
"""Rows of the registry at a time."""


class Deleter:
    def __init__(self, world: World) -> None:
        self._world = world
        self._letters = Letters(world.objects, world.clock)
        self._rewriter = Rewriter(world.objects, world.lake_root)

    def delete_cluster(self, row: ClusterRow, by: str) -> None:
        """From now on nobody sees it, and nothing comes of it any more."""
        self._ask(Deletion(account=row.account, cluster=row.uuid, asked_at=self._world.clock.now(), by=by))

    def delete_account(self, account: str, by: str) -> None:
        """As `delete_cluster`, for all received of it until a little after now. Its tokens are good no more."""
        self._ask(Deletion(account=account, cluster=None, asked_at=self._world.clock.now(), by=by))

    def _ask(self, deletion: Deletion) -> None:
        self._world.deletions.ask(deletion)
        self._forget(deletion)

    def run(self) -> None:
        """Go on with all that is not done. What fails with one account keeps no other from its turn; the first
        StoreError is raised at the end.
        """
        boundary = self._world.seals.boundary()
        asked: dict[str, list[Deletion]] = defaultdict(list)
        for deletion in self._world.deletions.pending():
            asked[deletion.account].append(deletion)
        trouble: StoreError | None = None
        for account, deletions in sorted(asked.items()):
            try:
                self._sweep(account, [self._begin(deletion) for deletion in deletions], boundary)
            except (MovedError, files.UnreadableError) as error:
                logger.warning("Deleting of account %s goes on with the next run: %s", account, error)
            except StoreError as error:
                logger.warning("Deleting of account %s goes on with the next run, a store failed: %s", account, error)
                trouble = trouble or error
        if trouble:
            raise trouble

    def _begin(self, deletion: Deletion) -> Deletion:
        """Once more what was done when it was asked for, and may have been cut short: until its tokens pass no more."""
        if deletion.swept_through is not None:
            return deletion
        self._forget(deletion)
        if self._world.clock.now() <= deletion.asked_at + PASS_S:
            return deletion
        self._world.deletions.swept(deletion, date.min)
        return replace(deletion, swept_through=date.min)

    def _forget(self, deletion: Deletion) -> None:
        """All but the lake."""
        world, account = self._world, deletion.account
        if deletion.cluster is not None:
            with suppress(Missing):
                world.clusters.forget(account, deletion.cluster, deletion.asked_at)
        else:
            forget_belongings(world, account, deletion.asked_at)
            for row in rows_of(world, account):
                if row.first_received_at <= deletion.asked_at + PASS_S:
                    with suppress(Missing):
                        world.clusters.forget(account, row.uuid, deletion.asked_at)
        self._forget_letters(deletion)

    def _forget_letters(self, deletion: Deletion) -> None:
        """Messages that could not be kept: a cluster's, or those of an account that came before it was deleted."""
        until = None if deletion.cluster is not None else deletion.asked_at + PASS_S
        self._letters.forget(deletion.account, deletion.cluster, until)

    def _sweep(self, account: str, deletions: list[Deletion], boundary: date | None) -> None:
        if boundary is None:
            if next(self._open_files(), None):
                return
            # Nothing was ever kept here: all days that are over hold nothing.
            boundary = layout.day_of(self._world.clock.now()) - timedelta(2)
        without = excluding(deletions)[account]
        rested = [each for each in deletions if layout.day_of(each.asked_at) + timedelta(REST_DAYS) <= boundary]
        # A deletion that is over its rest has all days looked through: a run that was slow may have left something.
        # Once a day, should it have to wait for a file.
        due = [each for each in rested if each.swept_through is None or each.swept_through < boundary]
        first = date.min if due else without.swept_through + timedelta(1)
        if first <= boundary:
            self._rewriter.clean(account, without, first, boundary)
            for deletion in deletions:
                if deletion.swept_through is not None:
                    self._world.deletions.swept(deletion, boundary)
        for deletion in rested:
            self._finish(deletion, boundary, told=deletion not in due)

    def _finish(self, deletion: Deletion, boundary: date, told: bool) -> None:
        """`told`: the log has it already what this one waits for."""
        self._forget_letters(deletion)
        if not self._forget_plans(deletion, boundary, told):
            return
        if deletion.cluster is None:
            self._world.clusters.forget_numbers(deletion.account)
            self._world.reports.forget_numbers(deletion.account)
        self._world.deletions.done(deletion)
        what = "account" if deletion.cluster is None else "a cluster of account"
        logger.info("Nothing is left of %s %s that was deleted.", what, deletion.account)

    def _forget_plans(self, deletion: Deletion, boundary: date, told: bool) -> bool:
        """Plans that name it go once the open files of their day have gone; False if some are still there."""
        objects = self._world.objects
        waiting = {day: key for key in self._open_files() if (day := layout.day_in(key)) and day <= boundary}
        gone = True
        for key in [key for key in objects.list(layout.SEALS) if key.endswith("/plan.json")]:
            day = layout.day_in(key)
            with suppress(Missing):
                if day and day <= boundary and _names(json.loads(objects.get(key)), deletion):
                    if day in waiting:
                        logger.log(
                            logging.DEBUG if told else logging.WARNING,
                            "%s is still there, and may hold what was deleted.",
                            waiting[day],
                        )
                        gone = False
                    else:
                        objects.delete(key)
        return gone

    def _open_files(self) -> Iterator[str]:
        return (key for table in TABLES for key in self._world.objects.list(f"{layout.OPEN}{table}/"))


def rows_of(world: World, account: str) -> Iterator[ClusterRow]:
    """All clusters of an account."""
    cursor = None
    while True:
        page = world.clusters.page(account, None, _TOGETHER, cursor)
        yield from page.rows
        cursor = page.cursor
        if cursor is None:
            return


def _names(plan: dict[str, Any], deletion: Deletion) -> bool:
    without = plan.get("without", {}).get(deletion.account)
    if deletion.cluster is not None:
        return without is not None and deletion.cluster in without["clusters"]
    return without is not None or any(deletion.account in accounts for accounts in plan["accounts"].values())

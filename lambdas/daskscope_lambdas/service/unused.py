"""Code that no row names any more, for the rows were deleted or kept no longer, goes a day after that was seen.

Code is kept before the rows that name it: what is named by none may have come a moment ago. So it goes only if it was
named by none on two days.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from datetime import date

from daskscope_lambdas.ports import ObjectStore, Taken
from daskscope_lambdas.service.exclusions import excluding
from daskscope_lambdas.service.world import World
from daskscope_query import files, layout
from daskscope_query.lake import Lake, MovedError

logger = logging.getLogger("daskscope.delete")


class UnusedCode:
    def __init__(self, world: World) -> None:
        self._world = world

    def run(self, boundary: date) -> None:
        """For accounts of which anything goes. `boundary`: up to where days are sealed."""
        pending = self._world.deletions.pending()
        accounts = {deletion.account for deletion in pending} | {*self._world.policies.accounts()}
        without = excluding(pending)
        for account in sorted(accounts):
            try:
                named = Lake(self._world.lake_root, boundary, without=without).codes(account)
            except (MovedError, files.UnreadableError) as error:
                logger.warning("Which code of account %s is still used cannot be told today: %s", account, error)
            else:
                drop_unused(self._world.objects, account, named, boundary)


def drop_unused(objects: ObjectStore, account: str, named: set[str], day: date) -> None:
    """Delete what an earlier day found unused and this one too; note what this one does."""
    for mark in list(objects.list(layout.unused_prefix(account))):
        if (marked := layout.day_in(mark)) and marked < day:
            for code_hash in set(json.loads(objects.get(mark))) - named:
                objects.delete(layout.code_key(account, code_hash))
            objects.delete(mark)
    kept = {key.rpartition("/")[2] for key in objects.list(layout.code_key(account, ""))}
    if unused := sorted(kept - named):
        with suppress(Taken):
            objects.put_new(layout.unused_key(account, day), json.dumps(unused).encode())

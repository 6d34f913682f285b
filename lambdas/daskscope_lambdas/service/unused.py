"""Code that nothing names any more goes, REST_DAYS after that was seen: its rows were deleted, or kept no longer.

Code is kept before the rows that name it, and these may wait: in a queue for less than REST_DAYS, as dead letters for
as long as they like. So letters name code as rows do, and for REST_DAYS a mark tells that it is about to go. What comes
again meanwhile is kept under another key (code.py), which that mark does not name. A mark of which anything is named
again counts no more.
"""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date, timedelta

from daskscope.compression import decompress
from daskscope.errors import BadMessage
from daskscope_lambdas.ports import ObjectStore, Taken
from daskscope_lambdas.service.deletion import REST_DAYS
from daskscope_lambdas.service.envelope import MAX_PLAIN_BYTES
from daskscope_lambdas.service.exclusions import excluding
from daskscope_lambdas.service.leaving import leaving
from daskscope_lambdas.service.letters import Letters
from daskscope_lambdas.service.world import World
from daskscope_query import files, layout
from daskscope_query.lake import Lake, MovedError

logger = logging.getLogger("daskscope.delete")

_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")


class UnusedCode:
    def __init__(self, world: World) -> None:
        self._world = world

    def run(self, boundary: date) -> None:
        """For accounts of which anything goes, or is about to. `boundary`: up to where days are sealed."""
        pending = self._world.deletions.pending()
        accounts = {deletion.account for deletion in pending} | {*self._world.policies.accounts()}
        accounts |= {account for key in self._world.objects.list(layout.UNUSED) if (account := layout.account_in(key))}
        if not accounts:
            return
        # Letters first: one that is sent back has its rows in the lake later, not earlier.
        waiting = set[str]().union(*map(_named, self._letters()))
        without = excluding(pending)
        for account in sorted(accounts):
            try:
                named = Lake(self._world.lake_root, boundary, without=without).codes(account) | waiting
            except (MovedError, files.UnreadableError) as error:
                logger.warning("Which code of account %s is still used cannot be told today: %s", account, error)
            else:
                drop_unused(self._world.objects, account, named, boundary)

    def _letters(self) -> Iterator[str]:
        letters = Letters(self._world.objects, self._world.clock)
        for _, keys in letters.listed():
            with suppress(BadMessage):
                if letter := letters.read(keys):
                    yield letter.body
        yield from self._world.dead_letters.lasting()


def drop_unused(objects: ObjectStore, account: str, named: set[str], day: date) -> None:
    """Delete what nothing has named since it was marked long ago; mark what nothing names now."""
    marks = leaving(objects, account)
    for marked, keys in sorted(marks.items()):
        used = any(layout.hash_in(key) in named for key in keys)
        if marked < day and (used or marked <= day - timedelta(REST_DAYS)):
            for key in () if used else keys:
                objects.delete(key)
            objects.delete(layout.unused_key(account, marked))
            del marks[marked]
    known = {key for keys in marks.values() for key in keys}
    kept = list(objects.list(layout.code_key(account, "")))
    if unused := [key for key in kept if layout.hash_in(key) not in named and key not in known]:
        with suppress(Taken):
            objects.put_new(layout.unused_key(account, day), json.dumps(unused).encode())


def _named(body: str) -> Iterable[str]:
    """All in a letter that looks like a hash of code; nothing of what can be read by nobody."""
    try:
        plain = decompress(base64.b64decode(body, validate=True), "zstd", MAX_PLAIN_BYTES)
    except (BadMessage, ValueError):
        return set()
    return {found.decode() for found in _HASH.findall(plain)}

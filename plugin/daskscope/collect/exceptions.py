"""Failed tasks, alike ones together.

`Scheduler.erred_tasks` has every task that failed by its own doing, youngest first; it keeps 100, so the watch puts a
longer deque in its place. A task whose text is empty was failed by the scheduler itself (KilledWorker, no valid
worker): the reason is then in the task's exception, which the scheduler pickled.
"""

from __future__ import annotations

import pickle
import re
from itertools import islice
from typing import TYPE_CHECKING

from dask.utils import key_split

from daskscope import wire
from daskscope.collect.groups import GroupReader

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.scheduler import ErredTask

MAX_FAMILIES = 50
"""So many families go into one message; further ones wait for the next."""
MAX_WAITING = 1_000
"""So many families are held; tasks of further ones are counted as lost."""
MAX_TEXT = 10_000
"""Characters of a text or traceback, as Dask's own `distributed.admin.max-error-length`; a longer one is marked as
cut."""
MAX_WORKERS = 10

_TYPE = re.compile(r"[A-Za-z_][\w.]*")


class ExceptionReader:
    """Reads what failed since it last looked."""

    def __init__(self, scheduler: Scheduler, groups: GroupReader, *, transmit: bool) -> None:
        self._scheduler, self._groups, self._transmit = scheduler, groups, transmit
        self._youngest: ErredTask | None = None
        self._waiting: dict[tuple[str, int | None, str, str], wire.ExceptionFamily] = {}
        self.n_rows = 0
        self.n_tasks_erred = 0
        self.lost = 0
        """Failed tasks of which no text was sent: they came faster than the deque holds, or in too many families."""

    @property
    def behind(self) -> bool:
        """Whether the last read left families for the next."""
        return bool(self._waiting)

    def read(self) -> list[wire.ExceptionFamily]:
        """Families of tasks that failed since the last call, as many as fit; `behind` tells of more."""
        fresh = self._fresh()
        self.n_tasks_erred += len(fresh)
        if not self._transmit:
            return []
        families = self._waiting
        for erred in reversed(fresh):
            text = alike = erred.exception_text
            if not text:
                text = self._reason(erred)
                alike = text.replace(str(erred.key), "")  # Dask names the task in its own errors
            prefix, group = key_split(erred.key), self._groups.number(erred.key)
            kind = (prefix, group, alike, erred.traceback_text)
            if kind in families:
                _add(families[kind], erred)
            elif len(families) < MAX_WAITING:
                families[kind] = self._family(erred, prefix, group, text)
            else:
                self.lost += 1
        return [families.pop(kind) for kind in list(islice(families, MAX_FAMILIES))]

    def _fresh(self) -> list[ErredTask]:
        fresh: list[ErredTask] = []
        known = self._scheduler.erred_tasks
        for erred in known:
            if erred is self._youngest:
                break
            fresh.append(erred)
        else:
            if self._youngest is not None and len(known) == known.maxlen:
                # The last one seen has fallen out, so others may have too; how many, the prefixes' counters would know
                # but for the dependents that they count as well. One is what is certain.
                self.lost += 1
        if fresh:
            self._youngest = fresh[0]
        return fresh

    def _family(self, erred: ErredTask, prefix: str, group: int | None, text: str) -> wire.ExceptionFamily:
        type_name = _TYPE.match(text)
        at_ms = round(erred.timestamp * 1e3)
        self.n_rows += 1
        return wire.ExceptionFamily(
            no=self.n_rows - 1,
            type=type_name[0] if type_name else "Exception",
            text=_cut(text),
            traceback=_cut(erred.traceback_text),
            key=_cut(str(erred.key)),
            prefix=prefix,
            group=group,
            workers=sorted(erred.erred_on)[:MAX_WORKERS],
            first_ms=at_ms,
            last_ms=at_ms,
            count=1,
        )

    def _reason(self, erred: ErredTask) -> str:
        """Why the scheduler failed a task. Only its own pickles are opened: a task that a worker failed has a text."""
        task = self._scheduler.tasks.get(erred.key)
        pickled = getattr(task, "exception", None)
        if not isinstance(pickled, bytes):
            return "Exception: Dask kept no text of this failure"
        error = pickle.loads(pickled)  # noqa: S301  # made by this very process
        return f"{type(error).__name__}: {error}"


def _add(family: wire.ExceptionFamily, erred: ErredTask) -> None:
    at_ms = round(erred.timestamp * 1e3)
    family.count += 1
    family.first_ms, family.last_ms = min(family.first_ms, at_ms), max(family.last_ms, at_ms)
    if len(family.workers) < MAX_WORKERS:
        family.workers = sorted({*family.workers, *erred.erred_on})[:MAX_WORKERS]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... ({len(text) - MAX_TEXT} more characters)"

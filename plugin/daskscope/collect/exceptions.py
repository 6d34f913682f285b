"""Failed tasks, alike ones together.

`Scheduler.erred_tasks` has every task that failed by its own doing, youngest first; it keeps 100, so the watch puts a
longer deque in its place. A task with neither text nor traceback was failed by the scheduler itself (KilledWorker, no
valid worker): the reason is then in the task's exception, which the scheduler pickled. Dependents of a failed task are
not told, nor what a retry healed. Failures of Dask's own (see `failures`) are numbered along with them.
"""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterable
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Literal

from dask.utils import key_split

from daskscope import wire
from daskscope.agent.texts import told
from daskscope.collect.failures import Failure
from daskscope.collect.groups import GroupReader
from daskscope.collect.memory import LongMemory
from daskscope.collect.payloads import as_key, exception_type, is_plain_key

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.scheduler import ErredTask

MAX_FAMILIES = 50
"""So many families go into one message; further ones wait for the next."""
MAX_WAITING = 1_000
"""So many families are held; tasks of further ones are counted as lost."""
MAX_FILED = 2_000
"""So many tasks are looked at in one read, in some 6 ms; the others wait in the scheduler's memory."""
MAX_TEXT = 10_000
"""Characters of a text or traceback, as Dask's own `distributed.admin.max-error-length`; a longer one is marked as
cut."""
MAX_WORKERS = 10
NO_TEXT = "Exception: Dask kept no text of this failure"
OBJECT_KEY = "its text shows the task's key, which is an object of the user's"

_MADE_BY_SCHEDULER = (b"KilledWorker", b"NoValidWorkerError", b"NoWorkerError")

Origin = Literal["user", "scheduler", "dask"]


class ExceptionReader:
    """Reads what failed since it last looked."""

    def __init__(self, scheduler: Scheduler, groups: GroupReader, *, transmit: bool) -> None:
        self._scheduler, self._groups, self._transmit = scheduler, groups, transmit
        self._youngest: ErredTask | None = None
        self._n_seen = self._n_counted = 0
        """Of all that the scheduler ever noted, where its memory is one that counts them: those that need no more
        looking at, and those that are in `n_tasks_erred`."""
        self._waiting: dict[Hashable, wire.ExceptionFamily] = {}
        self._reasons: dict[Hashable, tuple[str, str]] = {}
        self.n_rows = 0
        self.n_tasks_erred = 0
        self.lost: Counter[str] = Counter()
        """`exceptions`: failures of which no text was sent, for they came faster than the deque holds, or in too many
        families; `unreadable-exceptions`."""

    @property
    def waiting(self) -> Counter[str]:
        """What the last read left for the next: `exceptions`, in tasks."""
        return Counter({"exceptions": sum(family.count for family in self._waiting.values()) + self.n_unread})

    @property
    def behind(self) -> bool:
        """Whether the last read left families or tasks for the next."""
        return bool(self._waiting or self.n_unread)

    @property
    def n_unread(self) -> int:
        """Failed tasks that the scheduler remembers, and that were not looked at."""
        known = self._scheduler.erred_tasks
        return min(known.n_ever - self._n_seen, len(known)) if isinstance(known, LongMemory) else 0

    def let_go(self) -> None:
        """Hold nothing that nobody will read: it counts as lost."""
        self.lost += self.waiting
        known = self._scheduler.erred_tasks
        self._n_seen = known.n_ever if isinstance(known, LongMemory) else 0
        self._waiting.clear()

    def file_all(self) -> None:
        """Look at all, however many: the scheduler is about to forget them."""
        while self.n_unread:
            self._file_tasks()

    def read(self, failures: Iterable[Failure] = ()) -> list[wire.ExceptionFamily]:
        """Families of tasks that failed since the last call, and of Dask's own `failures`, as many as fit; `behind`
        tells of more."""
        self._file_tasks()
        if not self._transmit:
            return []
        for failure in failures:
            # The first line tells what failed; the others, the story of one task.
            alike = ("dask", failure.type, failure.prefix, failure.text.partition("\n")[0])
            self._file(alike, failure.at_s, failure.workers, partial(_of_dask, failure))
        families = self._waiting
        return [families.pop(alike) for alike in list(islice(families, MAX_FAMILIES))]

    def _file_tasks(self) -> None:
        fresh, n_missed = self._fresh()
        if n_missed:
            self.lost["exceptions"] += n_missed
        self._reasons.clear()
        for erred in fresh if self._transmit else ():
            try:
                self._file_task(erred)
            except Exception:  # noqa: BLE001  # one task's trouble is not the others'
                self.lost["unreadable-exceptions"] += 1

    def _file_task(self, erred: ErredTask) -> None:
        prefix, group = key_split(erred.key), self._groups.number(erred.key)
        text = same = erred.exception_text
        by_scheduler = not text and not erred.traceback_text
        if by_scheduler:
            text, same = self._reason(erred, prefix, group)
        alike = (prefix, group, same, erred.traceback_text)
        origin = "scheduler" if by_scheduler else "user"
        text = text or NO_TEXT
        self._file(alike, erred.timestamp, erred.erred_on, partial(_of_task, erred, origin, text, prefix, group))

    def _file(
        self, alike: Hashable, at_s: float, workers: Collection[str], begin: Callable[[int, int], wire.ExceptionFamily]
    ) -> None:
        """Add one failure to its family, or `begin` one with its number and time."""
        at_ms = round(at_s * 1e3)
        family = self._waiting.get(alike)
        if family is None and len(self._waiting) >= MAX_WAITING:
            self.lost["exceptions"] += 1
            return
        if family is None:
            family = self._waiting[alike] = begin(self.n_rows, at_ms)
            self.n_rows += 1
        family.count += 1
        family.first_ms, family.last_ms = min(family.first_ms, at_ms), max(family.last_ms, at_ms)
        if len(family.workers) < MAX_WORKERS:
            family.workers = sorted({*family.workers, *workers})[:MAX_WORKERS]

    def _fresh(self) -> tuple[list[ErredTask], int]:
        """The oldest of those that failed and were not looked at, oldest first, and how many had fallen out by now."""
        known = self._scheduler.erred_tasks
        if not isinstance(known, LongMemory):
            return self._fresh_of(known)
        self.n_tasks_erred += known.n_ever - self._n_counted
        n_unread, n_missed = self.n_unread, max(known.n_ever - self._n_seen - len(known), 0)
        n_taken = min(n_unread, MAX_FILED) if self._transmit else n_unread
        fresh = list(islice(known, n_unread - n_taken, n_unread))[::-1] if self._transmit else []
        self._n_seen, self._n_counted = self._n_seen + n_missed + n_taken, known.n_ever
        self._youngest = next(iter(known), self._youngest)
        return fresh, n_missed

    def _fresh_of(self, known: deque[ErredTask]) -> tuple[list[ErredTask], int]:
        """The same of a memory that counts nothing: somebody put it in place of ours. It keeps 100."""
        fresh = list(takewhile(lambda erred: erred is not self._youngest, known))
        # The last one seen has fallen out: one is what is certain.
        n_missed = 1 if self._youngest is not None and len(fresh) == known.maxlen else 0
        self.n_tasks_erred += len(fresh) + n_missed
        self._youngest = fresh[0] if fresh else self._youngest
        return fresh[::-1], n_missed

    def _reason(self, erred: ErredTask, prefix: str, group: int | None) -> tuple[str, str]:
        """Why the scheduler failed a task, and the same without the task's name. Only its own pickles are opened: a
        task that a worker failed has a text or a traceback."""
        task = self._scheduler.tasks.get(erred.key)
        pickled = getattr(task, "exception", None)
        if not isinstance(pickled, bytes):
            return NO_TEXT, NO_TEXT
        # Of 10,000 tasks that one worker took along, one is opened: that takes 20 us.
        kind = tuple(name in pickled for name in _MADE_BY_SCHEDULER)
        if not is_plain_key(erred.key):  # to open it would make the user's object, and its text has the object's `repr`
            name = next((name for name, is_it in zip(_MADE_BY_SCHEDULER, kind, strict=True) if is_it), b"Exception")
            text = f"{name.decode()}: {OBJECT_KEY}"
            return text, text
        place = (prefix, group, frozenset(erred.erred_on), kind) if any(kind) else erred.key
        if place not in self._reasons:
            error = pickle.loads(pickled)  # noqa: S301  # made by this very process
            text = told(error)
            self._reasons[place] = text, text.replace(str(erred.key), "")
        return self._reasons[place]


def _of_task(
    erred: ErredTask, origin: Origin, text: str, prefix: str, group: int | None, no: int, at_ms: int
) -> wire.ExceptionFamily:
    return wire.ExceptionFamily(
        no=no,
        origin=origin,
        type=exception_type(text),
        text=_cut(text),
        traceback=_cut(erred.traceback_text),
        key=as_key(erred.key),
        prefix=prefix,
        group=group,
        first_ms=at_ms,
        last_ms=at_ms,
        count=0,
    )


def _of_dask(failure: Failure, no: int, at_ms: int) -> wire.ExceptionFamily:
    return wire.ExceptionFamily(
        no=no,
        origin="dask",
        type=failure.type,
        text=_cut(failure.text),
        traceback=_cut(failure.traceback),
        key=failure.key,
        prefix=failure.prefix,
        first_ms=at_ms,
        last_ms=at_ms,
        count=0,
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... ({len(text) - MAX_TEXT} more characters)"

"""All readers together: asked in turn once an interval, each on its own.

The order matters where one stands on another: a failed task or a task's row names its group, so groups are let go only
after these were read. A reader that fails is left out of the message and counted; the others go on, and the scheduler
never hears of it.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from daskscope import wire
from daskscope.collect.agents import Agents
from daskscope.collect.computations import ComputationReader
from daskscope.collect.deaths import DeathReader
from daskscope.collect.events import EventReader
from daskscope.collect.exceptions import ExceptionReader
from daskscope.collect.failures import Failure, FailureReader
from daskscope.collect.groups import GroupReader
from daskscope.collect.identity import read_identity
from daskscope.collect.logs import LogReader
from daskscope.collect.members import MemberReader
from daskscope.collect.profiles import ProfileReader
from daskscope.collect.roster import Roster
from daskscope.collect.spans import SpanReader
from daskscope.collect.tasks import TaskReader
from daskscope.collect.topics import Topics
from daskscope.collect.totals import TotalsReader
from daskscope.collect.workers import WorkerReader
from daskscope.settings import Settings

if TYPE_CHECKING:
    from distributed import Scheduler

QUIET_S = 60.0

logger = logging.getLogger("distributed.daskscope")
T = TypeVar("T")


class Readers:
    """Made when the watch starts; all of it runs on the scheduler's event loop."""

    def __init__(self, scheduler: Scheduler, settings: Settings) -> None:
        self._scheduler, self._settings = scheduler, settings
        self._groups = GroupReader(scheduler)
        self._computations = ComputationReader(scheduler, self._groups, transmit_code=settings.code)
        self._spans = SpanReader(scheduler, self._groups)
        self._tasks = TaskReader(scheduler, self._groups)
        self._exceptions = ExceptionReader(scheduler, self._groups, transmit=settings.exceptions)
        self._topics = Topics(scheduler)
        self._roster = Roster(scheduler)
        self._failures = FailureReader(self._topics, transmit=settings.exceptions)
        self._deaths = DeathReader(scheduler, self._topics, self._roster)
        self._events = EventReader(self._topics, settings.events, exceptions=settings.exceptions)
        self._agents = Agents(scheduler, settings)
        self._logs = LogReader(scheduler, settings.logs)
        self._profiles = ProfileReader()
        self._members = MemberReader(
            scheduler, self._topics, self._roster, hardware=settings.hardware, agent_status=self._agents.status
        )
        self._workers = WorkerReader(scheduler)
        self._totals = TotalsReader(scheduler)
        self._sinks = {"logs": self._logs.take, "profile": self._profiles.take, "hello": self._members.take}
        listening = (self._topics, self._roster, self._logs, *([self._tasks] if settings.tasks else []), self._agents)
        self._starts = (*(reader.start for reader in listening), self._members.start)
        self._closes = tuple(reader.close for reader in reversed(listening))
        others = self._spans, self._failures, self._exceptions, self._deaths, self._events, self._logs, self._members
        self._bounded = (self._agents, self._groups, self._computations, *others)
        self._losing = (self._agents, self._tasks, self._profiles, self._workers, self._totals, *others)
        self._wants_identity = True
        self._latest = wire.Totals()
        self._unreadable: Counter[str] = Counter()
        self._quiet_until = 0.0

    def start(self) -> None:
        """Attach those that listen; the others look when they are asked."""
        for start in self._starts:
            self.attempt("start", None, start)

    def close(self) -> None:
        """Put back what stood in the scheduler before. Never raises."""
        for close in self._closes:
            self.attempt("close", None, close)

    @property
    def behind(self) -> bool:
        """Whether more is waiting than one message takes."""
        return any(reader.behind for reader in self._bounded)

    def left(self) -> Counter[str]:
        """What is left unread, by reason as in `lost`: the cluster closes, and no further message will tell it."""
        left: Counter[str] = Counter()
        for reader in self._bounded:
            left.update(self.attempt("close", Counter[str](), lambda reader=reader: reader.waiting))
        return left

    def want_identity(self) -> None:
        """Tell who the cluster is once more. From any thread."""
        self._wants_identity = True

    def resend(self) -> None:
        """A message was lost: send again whatever in it would not come again by itself."""
        self._wants_identity = True
        for reader in (self._groups, self._computations, self._spans, self._members):
            reader.resend()

    def fill(self, message: wire.Message, now_s: float) -> None:
        """All parts of a message but those that number and date it."""
        attempt, closing = self.attempt, message.phase == "closed"
        attempt("roster", None, self._roster.look)
        if not closing:
            attempt("agents", None, self._agents.look)
        attempt("agents", None, lambda: self._agents.drain(self._sinks))
        if self._wants_identity:
            self._wants_identity = False
            message.identity = attempt("identity", None, lambda: read_identity(self._scheduler, self._settings))
        first_new = self._groups.n_groups
        attempt("computations", None, self._computations.discover)
        attempt("groups", None, lambda: self._groups.track_others(first_new))
        failures = attempt("failures", list[Failure](), self._failures.read)
        message.exceptions = attempt("exceptions", message.exceptions, lambda: self._exceptions.read(failures))
        if self._settings.tasks:
            message.tasks = attempt("tasks", message.tasks, self._tasks.read)
        message.groups = attempt("groups", message.groups, lambda: self._groups.read(last=closing))
        message.spans, message.metrics = attempt(
            "spans", (message.spans, message.metrics), lambda: self._spans.read(now_s, last=closing)
        )
        message.computations, message.codes = attempt(
            "computations",
            (message.computations, message.codes),
            lambda: self._computations.read(now_s, last=closing),
        )
        message.events = attempt("events", message.events, self._events.read)
        message.workers = attempt("workers", message.workers, self._workers.read)
        message.deaths = attempt(
            "deaths", message.deaths, lambda: self._deaths.read(message.workers, now_s, last=closing)
        )
        message.members, message.environments, message.hardware = attempt(
            "members", (message.members, message.environments, message.hardware), lambda: self._members.read(now_s)
        )
        message.logs = attempt("logs", message.logs, self._logs.read)
        message.profiles = attempt("profiles", message.profiles, self._profiles.read)
        message.totals = self._latest = self._add_up(message.workers, now_s)
        attempt("topics", None, self._topics.forget)
        self._roster.forget()

    def _add_up(self, workers: wire.Workers, now_s: float) -> wire.Totals:
        totals = self.attempt("totals", self._repeated(), lambda: self._totals.read(workers, now_s))
        totals.n_computations = self._computations.n_computations
        totals.n_groups, totals.n_tasks = self._groups.n_groups, self._groups.n_tasks
        totals.action_us = dict(self._groups.action_us)
        totals.n_tasks_erred = self._exceptions.n_tasks_erred
        totals.n_workers_lost = self._deaths.n_unexpected
        return totals

    def _repeated(self) -> wire.Totals:
        """Where gauges cannot be read: running totals as they were, for these never go back."""
        latest = self._latest
        return wire.Totals(
            thread_us=latest.thread_us,
            peak_memory_bytes=latest.peak_memory_bytes,
            peak_workers=latest.peak_workers,
        )

    def lost(self) -> Counter[str]:
        """Running totals of what no message told, by reason."""
        lost = Counter({f"unreadable-{part}": count for part, count in self._unreadable.items()})
        for reader in self._losing:
            lost.update(reader.lost)
        return lost

    def attempt(self, part: str, otherwise: T, read: Callable[[], T]) -> T:
        """What `read` gives; if it raises, that is counted, told once a minute, and `otherwise` stands for it."""
        try:
            return read()
        except Exception as error:  # noqa: BLE001  # one reader's trouble is not the others', and never the scheduler's
            self._unreadable[part] += 1
            self.complain(part, error)
            return otherwise

    def complain(self, part: str, error: Exception) -> None:
        """One warning a minute at most."""
        now_s = time.monotonic()
        if now_s >= self._quiet_until:
            self._quiet_until = now_s + QUIET_S
            logger.warning(
                "daskscope could not read %s, the workload goes on: %s: %s", part, type(error).__name__, error
            )

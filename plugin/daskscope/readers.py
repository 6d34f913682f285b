"""All readers together: asked in turn once an interval, each on its own.

The order matters where one stands on another: a failed task or a task's row names its group, so groups are let go only
after these were read. A reader that fails is left out of the message and counted (see `attempts`); the others go on,
and the scheduler never hears of it.

Groups, computations, spans and metrics may be told more seldom than the rest, and so may events. What is new is noted
at each read all the same, and is told before its time where much of it waits: nothing is lost by telling it later.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from logging import ERROR
from typing import TYPE_CHECKING, Protocol

from daskscope import wire
from daskscope.attempts import Attempts
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

DETAIL = ("tasks", "profiles", "metrics", "logs", "workers", "events")
"""What is left out of messages, one after the other, when reading costs too much: rows of tasks, profiles, metrics of
spans and prefixes, log lines below ERROR, rows of workers, events. Never totals, groups, computations, exceptions,
deaths, members and the end. What happens once and is left out counts in `lost`; snapshots come when there is room
again."""
MANY = 1_000
"""Groups, computations or spans that wait: then they are told though it is not time."""


class Bounded(Protocol):
    """A reader that may leave something for the next message."""

    @property
    def behind(self) -> bool: ...

    @property
    def waiting(self) -> Counter[str]: ...


class Turn:
    """When something is told that need not be in every message."""

    def __init__(self, interval_s: float | None) -> None:
        # Messages come a little early or late: one that is due with every second of them is not to wait for the third.
        self._least_s = 0.95 * (interval_s or 0.0)
        self._last_s = -math.inf

    def take(self, now_s: float, *, now: bool) -> bool:
        """Whether it is time; `now`: whatever the clock says, which may be set back."""
        if not now and 0 <= now_s - self._last_s < self._least_s:
            return False
        self._last_s = now_s
        return True


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
        self._holding = {
            "agents": self._agents,
            "failures": self._failures,
            "exceptions": self._exceptions,
            "deaths": self._deaths,
            "logs": self._logs,
            "members": self._members,
        }
        self._charging = self._agents, self._tasks, self._topics, self._logs
        self._work = {"groups": self._groups, "computations": self._computations, "spans": self._spans}
        self._bounded = {**self._holding, **self._work, "events": self._events}
        several = self._tasks, self._profiles, self._workers, self._totals, self._groups, self._spans, self._events
        self._losing = (*several, *self._holding.values())
        self._work_turn, self._events_turn = Turn(settings.computation_interval_s), Turn(settings.events_interval_s)
        self._is_work_left = False
        """Whether the last read of groups, computations and spans left some for the next."""
        self._left_out = frozenset[str]()
        self._wants_identity = True
        self._latest = wire.Totals()
        self.attempt = Attempts()

    def start(self) -> None:
        """Attach those that listen; the others look when they are asked."""
        for start in self._starts:
            self.attempt("start", None, start)

    def rehearse(self, now_s: float) -> None:
        """In place of `start`, for one message that is only looked at: nothing is attached, no worker is called."""
        self.attempt("agents", None, self._agents.close)
        self.attempt("logs", None, lambda: self._logs.hear_earlier(now_s))

    def close(self) -> None:
        """Put back what stood in the scheduler before. Never raises."""
        for close in self._closes:
            self.attempt("close", None, close)

    @property
    def behind(self) -> bool:
        """Whether more is waiting than one message takes."""
        return self._is_behind(self._bounded)

    def _is_behind(self, readers: Mapping[str, Bounded]) -> bool:
        """Nobody waits for a part that is off."""
        return any(
            self.attempt("behind", False, lambda reader=reader: reader.behind)
            for part, reader in readers.items()
            if not self.attempt.is_off(part)
        )

    def left(self) -> Counter[str]:
        """What is left unread, by reason as in `lost`: the cluster closes, and no further message will tell it."""
        left: Counter[str] = Counter()
        for reader in self._bounded.values():
            left.update(self.attempt("close", Counter[str](), lambda reader=reader: reader.waiting))
        return left

    @property
    def n_failed_unread(self) -> int:
        """Failed tasks in Dask's memory that the next message tells; 0 if nobody reads them."""
        if self.attempt.is_off("exceptions"):
            return 0
        return self.attempt("behind", 0, lambda: self._exceptions.n_unread)

    def rescue(self) -> None:
        """Look at all failed tasks, however many: Dask is about to forget them."""
        self.attempt("exceptions", None, self._exceptions.file_all)

    def want_identity(self) -> None:
        """Tell who the cluster is once more. From any thread."""
        self._wants_identity = True

    def resend(self) -> None:
        """A message was lost: send again whatever in it would not come again by itself."""
        self._wants_identity = True
        for reader in (*self._work.values(), self._members):
            self.attempt("resend", None, reader.resend)

    def fill(self, message: wire.Message, now_s: float, detail: int = 0) -> None:
        """All parts of a message but those that number and date it, without those of `DETAIL[:detail]`."""
        attempt, closing = self.attempt, message.phase == "closed"
        self._leave_out(detail)
        attempt("roster", None, self._roster.look)
        if not closing:
            attempt("agents", None, self._agents.look, "look")
        attempt("agents", None, lambda: self._agents.drain(self._sinks), "drain")
        if self._wants_identity:
            self._wants_identity = False
            message.identity = attempt("identity", None, lambda: read_identity(self._scheduler, self._settings))
        self._discover()
        failures = attempt("failures", list[Failure](), self._failures.read)
        message.exceptions = attempt("exceptions", message.exceptions, lambda: self._exceptions.read(failures))
        if self._settings.tasks:
            message.tasks = attempt("tasks", message.tasks, self._tasks.read)
        self._fill_work(message, now_s, last=closing)
        self._fill_events(message, now_s, last=closing)
        message.workers = attempt("workers", message.workers, self._workers.read)
        message.deaths = attempt(
            "deaths", message.deaths, lambda: self._deaths.read(message.workers, now_s, last=closing)
        )
        message.members, message.environments, message.hardware = attempt(
            "members", (message.members, message.environments, message.hardware), lambda: self._members.read(now_s)
        )
        least = ERROR if "logs" in self._left_out else 0
        message.logs = attempt("logs", message.logs, lambda: self._logs.read(least))
        message.profiles = attempt("profiles", message.profiles, self._profiles.read)
        message.totals = self._latest = self._add_up(now_s, message.uptime_us / 1e6)
        if "workers" in self._left_out and not closing:
            message.workers = wire.Workers()
        attempt("topics", None, self._topics.forget)
        attempt("roster", None, self._roster.forget, "forget")
        attempt.speak()

    def _leave_out(self, detail: int) -> None:
        """What nobody reads, because of the level or because it failed too often, is not to be held either."""
        parts = frozenset(part for n, part in enumerate(DETAIL) if n < detail or self.attempt.is_off(part))
        if parts != self._left_out:
            self._left_out = parts
            self._tasks.wanted, self._profiles.wanted = "tasks" not in parts, "profiles" not in parts
        for part, reader in self._holding.items():
            if self.attempt.is_off(part):
                self.attempt("skip", None, reader.let_go, part)

    def _discover(self) -> None:
        """Note what is new: Dask forgets it. Who is told of no groups is to keep none."""
        attempt, first_new = self.attempt, self._groups.n_groups
        if not attempt.is_off("groups"):
            attempt("computations", None, self._computations.discover, "discover")
            attempt("groups", None, lambda: self._groups.track_others(first_new), "track")
        if attempt.is_off("spans"):
            self._groups.spans.clear()
            self._groups.touched.clear()

    def _fill_work(self, message: wire.Message, now_s: float, *, last: bool) -> None:
        attempt = self.attempt
        many = not attempt.is_off("groups") and self._groups.n_unread >= MANY
        many |= not attempt.is_off("computations") and self._computations.n_unsent >= MANY
        if not self._work_turn.take(now_s, now=last or many or self._is_work_left):
            attempt("groups", None, self._groups.add_up, "add")
            return
        message.groups = attempt("groups", message.groups, lambda: self._groups.read(last=last))
        with_metrics = last or "metrics" not in self._left_out  # no later message has room for them
        message.spans, message.metrics = attempt(
            "spans",
            (message.spans, message.metrics),
            lambda: self._spans.read(now_s, last=last, with_metrics=with_metrics),
        )
        message.computations, message.codes = attempt(
            "computations", (message.computations, message.codes), lambda: self._computations.read(now_s, last=last)
        )
        self._is_work_left = self._is_behind(self._work)

    def _fill_events(self, message: wire.Message, now_s: float, *, last: bool) -> None:
        if "events" in self._left_out:
            self.attempt("skip", None, self._events.skip)
        elif self._events_turn.take(now_s, now=last or self.attempt("events", True, self._is_event_waiting, "look")):
            message.events = self.attempt("events", message.events, self._events.read)

    def _is_event_waiting(self) -> bool:
        """Whether events are to be read though it is not time. Asked only where a time is set."""
        return self._settings.events_interval_s is not None and (self._events.behind or self._events.is_pressing())

    def _add_up(self, now_s: float, uptime_s: float) -> wire.Totals:
        totals = self.attempt("totals", self._repeated(), lambda: self._totals.read(now_s, uptime_s))
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

    def charged_s(self) -> float:
        """CPU time of the event loop between two visits, a running total: an estimate, by what was counted."""
        return sum(reader.charged_s for reader in self._charging)

    def lost(self) -> Counter[str]:
        """Running totals of what no message told, by reason."""
        lost = self.attempt.lost
        for reader in self._losing:
            lost.update(self.attempt("lost", Counter[str](), lambda reader=reader: reader.lost))
        return lost

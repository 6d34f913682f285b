"""The watch: asks the readers once an interval and hands the message to the sender.

It lives in `scheduler.extensions["daskscope"]`, which Dask tears down when the scheduler closes, and runs from a
periodic callback of its own. Nothing of it is in `scheduler.plugins`, whose entries are called at every transition of
every task. A reader that fails is left out of the message and counted; the scheduler never hears of it.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tornado.ioloop import PeriodicCallback

from daskscope import wire
from daskscope.collect.computations import ComputationReader
from daskscope.collect.events import EventReader
from daskscope.collect.exceptions import ExceptionReader
from daskscope.collect.groups import GroupReader
from daskscope.collect.identity import cluster_uuid, read_identity
from daskscope.collect.totals import TotalsReader
from daskscope.collect.workers import read_workers
from daskscope.sender import QUIET_S, Sender
from daskscope.settings import Settings
from daskscope.spool import Spool, folder
from daskscope.transport import Http, Transport

if TYPE_CHECKING:
    from distributed import Scheduler

EXTENSION = "daskscope"
HISTORY = 20_000
"""Failed tasks and computations that the scheduler may keep from one read to the next, instead of 100."""
MIN_PACE_S, MAX_PACE_S = 1.0, 3600.0
"""Limits of the pace that a server may ask for."""

logger = logging.getLogger("distributed.daskscope")
T = TypeVar("T")


class LongMemory(deque[T]):
    """A longer one of Dask's short memories, read before Dask clears it: `client.restart()` does."""

    def __init__(self, known: deque[T], before_clear: Callable[[], None]) -> None:
        self.kept = known.maxlen or HISTORY
        """How many Dask itself keeps."""
        super().__init__(known, max(HISTORY, self.kept))
        self._before_clear = before_clear

    def clear(self) -> None:
        self._before_clear()
        super().clear()

    def __copy__(self) -> deque[T]:
        return deque(self, self.maxlen)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leaves the scheduler as the deque it stands for: what is ours, with the token in it, does not go along."""
        return deque, (list(self), self.maxlen)


def install(scheduler: Scheduler, settings: Settings) -> Watch | None:
    """Start watching, unless this scheduler is watched already or reporting is disabled.

    Must run on the scheduler's event loop. Raises only what `Watch` raises while it is built; callers guard it.
    """
    known: Watch | None = scheduler.extensions.get(EXTENSION)
    if known is not None or settings.disabled:
        return known
    watch = Watch(scheduler, settings, _transport(settings))
    watch.start()
    return watch


def _transport(settings: Settings) -> Transport:
    if settings.server is None:
        return Spool(folder(settings.data))
    return Http(settings.server, settings.token)


class Watch:
    """One watched scheduler, from now to its close."""

    def __init__(
        self, scheduler: Scheduler, settings: Settings, transport: Transport, *, now: Callable[[], float] = time.time
    ) -> None:
        self._scheduler, self._settings, self._now = scheduler, settings, now
        self.cluster = cluster_uuid(scheduler.id)
        self.boot = f"{round(now() * 1e3):012x}{secrets.token_hex(6)}"
        self._booted_at = time.monotonic()
        self._seq = 0
        self._closed = False
        self._interval_s = settings.interval_s
        self._wants_identity = True
        self._n_lost_before = 0
        self._failures: Counter[str] = Counter()
        self._quiet_until = 0.0
        self._groups = GroupReader(scheduler)
        self._computations = ComputationReader(scheduler, self._groups, transmit_code=settings.code)
        self._exceptions = ExceptionReader(scheduler, self._groups, transmit=settings.exceptions)
        self._events = EventReader(scheduler, settings.events)
        self._totals = TotalsReader(scheduler)
        self._latest = wire.Totals()
        self.sender = Sender(transport, self._heed)
        self._timer = PeriodicCallback(self.poll, self._interval_s * 1e3)

    def start(self) -> None:
        """Lengthen Dask's short memories, take the place in `extensions`, send the first message soon."""
        scheduler: Any = self._scheduler
        scheduler.erred_tasks = LongMemory(scheduler.erred_tasks, self.poll)
        scheduler.computations = LongMemory(scheduler.computations, self.poll)
        scheduler.extensions[EXTENSION] = self
        scheduler.handlers[EXTENSION] = self.describe
        self.sender.start()
        self._timer.start()
        scheduler.loop.add_callback(self.poll)

    def describe(self) -> dict[str, str | None]:
        """Where this cluster reports to; answers the client's `register`. Never holds the token."""
        return {
            "cluster": self.cluster,
            "server": self._settings.server,
            "spool": None if self._settings.server else str(folder(self._settings.data)),
        }

    def poll(self) -> None:
        """One interval. Never raises: it runs in somebody else's event loop."""
        if self._closed:
            return
        try:
            self.sender.put(self._message("running", None))
            self._forget()
        except Exception as error:  # noqa: BLE001  # host first
            self._complain("message", error)

    def _forget(self) -> None:
        """Let Dask's memories be as short as Dask has them, now that they are read: a computation holds its code."""
        erred, computations = self._scheduler.erred_tasks, self._scheduler.computations
        if isinstance(erred, LongMemory) and isinstance(computations, LongMemory):
            for _ in range(len(erred) - erred.kept):
                erred.pop()  # the youngest is at the left
            for _ in range(len(computations) - computations.kept):
                computations.popleft()

    def teardown(self) -> None:
        """Called by the scheduler when it closes, after the workers of a LocalCluster are gone. Never raises."""
        if self._closed:
            return
        try:
            self._timer.stop()
            message = self._message("closed", self._why_closed())
            while self._groups.behind or self._exceptions.behind:  # more than one message takes: this is not the last
                message.phase, message.reason = "running", None
                self.sender.put(message)
                message = self._message("closed", self._why_closed())
            self.sender.put(message)
            self._closed = True
            self.sender.close()
        except Exception as error:  # noqa: BLE001  # an exception here would leave the scheduler's comms open
            self._complain("close", error)

    def _message(self, phase: Literal["running", "closed"], reason: str | None) -> wire.Message:
        now_s = self._now()
        message = wire.Message(
            v=wire.VERSION,
            cluster=self.cluster,
            boot=self.boot,
            seq=self._seq,
            made_at_ms=round(now_s * 1e3),
            uptime_us=round((time.monotonic() - self._booted_at) * 1e6),
            next_s=self._interval_s,
            phase=phase,
            reason=reason,
        )
        self._seq += 1
        self._fill(message, now_s)
        return message

    def _fill(self, message: wire.Message, now_s: float) -> None:
        self._catch_up()
        if self._wants_identity:
            self._wants_identity = False
            message.identity = self._try("identity", None, lambda: read_identity(self._scheduler, self._settings))
        first_new = self._groups.n_groups
        self._try("computations", None, self._computations.discover)
        self._try("groups", None, lambda: self._groups.track_others(first_new))
        # Before the groups are read, for with that the forgotten ones are let go: a failed task belongs to its group.
        message.exceptions = self._try("exceptions", message.exceptions, self._exceptions.read)
        closing = message.phase == "closed"
        message.groups = self._try("groups", message.groups, lambda: self._groups.read(last=closing))
        message.computations, message.codes = self._try(
            "computations", ([], []), lambda: self._computations.read(now_s)
        )
        message.events = self._try("events", message.events, self._events.read)
        message.workers = self._try("workers", message.workers, lambda: read_workers(self._scheduler))
        totals = self._try("totals", self._repeated(), lambda: self._totals.read(message.workers, now_s))
        totals.n_computations = self._computations.n_computations
        totals.n_groups, totals.n_tasks = self._groups.n_groups, self._groups.n_tasks
        totals.action_us = dict(self._groups.action_us)
        totals.n_tasks_erred = self._exceptions.n_tasks_erred
        message.totals = self._latest = totals
        message.lost = self._lost()

    def _repeated(self) -> wire.Totals:
        """Where gauges cannot be read: running totals as they were, for these never go back."""
        latest = self._latest
        return wire.Totals(
            thread_us=latest.thread_us,
            peak_memory_bytes=latest.peak_memory_bytes,
            peak_workers=latest.peak_workers,
        )

    def _lost(self) -> dict[str, int]:
        lost = Counter(self.sender.lost)
        lost["exceptions"] += self._exceptions.lost
        lost["events"] += self._events.lost
        lost.update({f"unreadable-{part}": count for part, count in self._failures.items()})
        return {reason: count for reason, count in lost.items() if count}

    def _catch_up(self) -> None:
        """After a lost message, send again whatever in it would not come again by itself."""
        n_lost = self.sender.lost.total()
        if n_lost != self._n_lost_before:
            self._n_lost_before = n_lost
            self._wants_identity = True
            self._groups.resend()
            self._computations.resend()

    def _heed(self, reply: wire.Reply) -> None:
        """Runs in the sender's thread: it only sets what the next poll reads."""
        if "identity" in reply.wish:
            self._wants_identity = True
        pace_s = min(max(reply.next_s, MIN_PACE_S), MAX_PACE_S) if reply.next_s else self._settings.interval_s
        if pace_s != self._interval_s:
            self._interval_s = pace_s
            self._timer.callback_time = pace_s * 1e3  # tornado reads it before each round

    def _why_closed(self) -> str:
        # Dask does not pass the reason on; an idle timeout can be told from the clock.
        since_s, timeout_s = self._scheduler.idle_since, self._scheduler.idle_timeout
        idle = since_s and timeout_s and self._now() - since_s >= timeout_s
        return "idle-timeout-exceeded" if idle else "closed"

    def _try(self, part: str, otherwise: T, read: Callable[[], T]) -> T:
        try:
            return read()
        except Exception as error:  # noqa: BLE001  # one reader's trouble is not the others', and never the scheduler's
            self._failures[part] += 1
            self._complain(part, error)
            return otherwise

    def _complain(self, part: str, error: Exception) -> None:
        now_s = time.monotonic()
        if now_s >= self._quiet_until:
            self._quiet_until = now_s + QUIET_S
            logger.warning(
                "daskscope could not read %s, the workload goes on: %s: %s", part, type(error).__name__, error
            )

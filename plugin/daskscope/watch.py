"""The watch: asks the readers once an interval and hands the message to the sender.

It lives in `scheduler.extensions["daskscope"]`, which Dask tears down when the scheduler closes, and runs from a
periodic callback of its own. Nothing of it is in `scheduler.plugins`, whose entries are called at every transition of
every task. A reader that fails is left out of the message and counted; the scheduler never hears of it.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal

from tornado.ioloop import PeriodicCallback

from daskscope import wire
from daskscope.budget import Budget
from daskscope.collect.identity import cluster_uuid, started_ms, system_user
from daskscope.collect.memory import LongMemory
from daskscope.collect.profiles import merged
from daskscope.control import Closer
from daskscope.parcel import Shelf
from daskscope.readers import DETAIL, Readers
from daskscope.sender import Sender, Shown
from daskscope.settings import Settings
from daskscope.shelf import WriteAhead, place_of
from daskscope.spool import Spool, spool_of
from daskscope.transport import Http, Transport

if TYPE_CHECKING:
    from distributed import Scheduler

    from daskscope.privacy.scrubber import Scrubber

EXTENSION = "daskscope"
MAX_LAST_MESSAGES = 100
"""So many messages a closing cluster makes of what is left: a reader that fails must not keep it from closing."""
END_S, LAST_MESSAGES_S = 4.5, 1.5
"""A close may wait so long: for its last messages to be made, the part of it that is said second, and then for the
sender. With what else there is to do it takes no 5 seconds."""
MAX_PACE_S = 3600.0
"""The slowest pace that a server may ask for. It makes nobody report oftener than is configured."""


def install(scheduler: Scheduler, settings: Settings) -> Watch | None:
    """Start watching, unless this scheduler is watched already or reporting is disabled.

    Must run on the scheduler's event loop. Raises what `Watch` raises while it is built or started, and leaves nothing
    behind then; callers guard it.
    """
    known: Watch | None = scheduler.extensions.get(EXTENSION)
    if known is not None or settings.disabled:
        return known
    watch = Watch(scheduler, settings, _transport(settings), shelf=_shelf(settings))
    try:
        watch.start()
    except BaseException:
        watch.withdraw()
        raise
    return watch


def _transport(settings: Settings) -> Transport:
    spool = spool_of(settings)
    if spool is None:
        return Http(settings.server or "", settings.token, account=settings.account)
    return Spool(spool, shared=settings.server is not None)


def _shelf(settings: Settings) -> Shelf | None:
    """None without the option, and where messages go to files anyway."""
    if settings.spool is None or settings.server is None or spool_of(settings) is not None:
        return None
    return WriteAhead(place_of(settings.spool, settings.server, settings.token, settings.account))


class Watch:
    """One watched scheduler, from now to its close."""

    def __init__(
        self,
        scheduler: Scheduler,
        settings: Settings,
        transport: Transport,
        *,
        shelf: Shelf | None = None,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        """`cpu`: seconds that the calling thread has computed so far."""
        self._scheduler, self._settings = scheduler, settings
        self._now, self._monotonic, self._cpu = now, monotonic, cpu
        self.cluster = cluster_uuid(scheduler.id)
        self.boot = f"{round(now() * 1e3):012x}{secrets.token_hex(6)}"
        self._booted_at = monotonic()
        self._started_at_ms = started_ms(scheduler)
        self._seq = 0
        self._closed = False
        self._pid = os.getpid()
        self._asked_s = settings.interval_s
        """The pace that the server asks for, else the configured one."""
        self._budget = Budget(settings.budget_pct, settings.interval_s, len(DETAIL))
        self._n_lost_before, self._n_delivered_before = 0, -1
        self._is_behind = False
        """Whether a message was lost since all was sent again."""
        self._cpu_s = self._slowest_s = 0.0
        self.readers = Readers(scheduler, settings)
        self._closer = Closer(scheduler, settings, now)
        self._scrubber: Scrubber | None = None
        self.sender = Sender(transport, self._heed, finish=self._finish, shelf=shelf)
        self._timer = PeriodicCallback(self.poll, self._asked_s * 1e3)

    def start(self) -> None:
        """Lengthen Dask's short memories, take the place in `extensions`, send the first message soon."""
        scheduler: Any = self._scheduler
        scheduler.erred_tasks = LongMemory(scheduler.erred_tasks, self._rescue)
        scheduler.computations = LongMemory(scheduler.computations, self._rescue)
        scheduler.extensions[EXTENSION] = self
        scheduler.handlers[EXTENSION] = self.describe
        self.readers.start()
        self._closer.start()
        self.sender.start()
        self._timer.start()
        scheduler.loop.add_callback(self.poll)

    def withdraw(self) -> None:
        """Leave the scheduler as it was, for it cannot be watched. Never raises."""
        self._closed = True
        scheduler: Any = self._scheduler
        scheduler.extensions.pop(EXTENSION, None)
        scheduler.handlers.pop(EXTENSION, None)
        for name in ("erred_tasks", "computations"):
            memory = getattr(scheduler, name, None)
            if isinstance(memory, LongMemory):
                setattr(scheduler, name, deque(memory, memory.kept))
        self._end(self._timer.stop, self._closer.close, self.readers.close, self.sender.close)

    def describe(self) -> dict[str, str | None]:
        """Where this cluster reports to; answers the client's `register`. Never holds the token."""
        spool = spool_of(self._settings)
        return {
            "cluster": self.cluster,
            "server": self._settings.server,
            "spool": spool and str(spool),
        }

    def show(self) -> Future[Shown]:
        """The next message, made now and sent like any other, and what it is as it will be sent."""
        return self.sender.show(self._message("running", None))

    def rehearse(self) -> Future[Shown]:
        """What the first message would be, in place of `start`. The transport gets it; close the sender after that."""
        self.readers.rehearse(self._now())
        self.sender.start()
        return self.sender.show(self._message("running", None))

    def poll(self) -> None:
        """One interval. Never raises: it runs in somebody else's event loop."""
        if self._closed or os.getpid() != self._pid:  # a forked child has no part in it
            return
        try:
            self.sender.put(self._message("running", None, self._look_after_idleness))
        except Exception as error:  # noqa: BLE001  # host first
            self.readers.attempt.complain("message", error)

    def _look_after_idleness(self) -> None:
        self.readers.attempt("idleness", None, lambda: self._closer.look(self._now()))

    def _rescue(self) -> None:
        """What is noted of Dask's memories before it clears them. Never raises."""
        if self._closed or os.getpid() != self._pid:
            return
        self._end(self.readers.rescue)
        self.poll()

    def _forget(self) -> None:
        """Let Dask's memories be as short as Dask has them, but for what was not read: a computation holds its code."""
        erred, computations = self._scheduler.erred_tasks, self._scheduler.computations
        if isinstance(erred, LongMemory) and isinstance(computations, LongMemory):
            for _ in range(len(erred) - max(erred.kept, self.readers.n_failed_unread)):
                erred.pop()  # the youngest is at the left
            for _ in range(len(computations) - computations.kept):
                computations.popleft()

    def teardown(self) -> None:
        """Called by the scheduler when it closes, after the workers of a LocalCluster are gone. Never raises."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        began_s = self._monotonic()
        self._end(
            self._timer.stop,
            lambda: self._tell_the_rest(began_s + LAST_MESSAGES_S),
            self._closer.close,
            self.readers.close,
            lambda: self.sender.close(max(began_s + END_S - self._monotonic(), 0.0)),
        )

    def _end(self, *steps: Callable[[], object]) -> None:
        for step in steps:
            try:
                step()
            except Exception as error:  # noqa: BLE001  # an exception here would leave the scheduler's comms open
                self.readers.attempt.complain("close", error)

    def _tell_the_rest(self, until_s: float) -> None:
        """As much as is made by then, and how much is not."""
        reason = self._closer.reason or "closed"
        message = self._message("closed", reason)
        for _ in range(MAX_LAST_MESSAGES):
            if not self.readers.behind or self._monotonic() >= until_s:
                break
            message.phase, message.reason = "running", None  # more than one message takes: this is not the last
            self.sender.put(message)
            message = self._message("closed", reason)
        message.lost = dict(Counter(message.lost) + self.readers.left())
        self.sender.put(message)

    def _message(
        self, phase: Literal["running", "closed"], reason: str | None, then: Callable[[], object] | None = None
    ) -> wire.Message:
        """`then`: what else the visit does, measured with it."""
        began_cpu_s, began_s, now_s = self._cpu(), self._monotonic(), self._now()
        pace_s, detail = self._budget.pace_s(self._asked_s), self._budget.detail
        self._timer.callback_time = pace_s * 1e3  # tornado reads it after each round: the next comes as told here
        message = wire.Message(
            v=wire.VERSION,
            cluster=self.cluster,
            boot=self.boot,
            seq=self._seq,
            made_at_ms=round(now_s * 1e3),
            uptime_us=round((began_s - self._booted_at) * 1e6),
            next_s=pace_s,
            started_at_ms=self._started_at_ms,
            phase=phase,
            reason=reason,
        )
        self._seq += 1
        self._catch_up(last=phase == "closed")
        self.readers.fill(message, now_s, detail)
        message.lost = dict(Counter(dict(self.sender.lost)) + self.readers.lost())
        self._end(self._forget, *([then] if then else []))
        spent_s = self._cpu() - began_cpu_s
        self._cpu_s, self._slowest_s = self._cpu_s + spent_s, max(self._slowest_s, spent_s)
        besides_s = self.sender.cpu_s + self.readers.charged_s()
        self._budget.add(began_s, spent_s, besides_s)
        message.itself = self._itself(detail, besides_s)
        return message

    def _itself(self, detail: int, besides_s: float) -> wire.Itself:
        sender = self.sender
        return wire.Itself(
            cpu_us=round((self._cpu_s + besides_s) * 1e6),
            slowest_us=round(self._slowest_s * 1e6),
            n_messages=sender.n_delivered,
            n_bytes=sender.n_delivered_bytes,
            n_failed_tries=sender.n_failed_tries,
            detail=detail,
        )

    def _catch_up(self, *, last: bool) -> None:
        """After a lost message, send again whatever in it would not come again by itself. While the server takes none
        that is done once, and not in every message: each would be lost with all that is in it."""
        n_lost, n_delivered = self.sender.lost.total(), self.sender.n_delivered
        self._is_behind = self._is_behind or n_lost != self._n_lost_before
        self._n_lost_before = n_lost
        if self._is_behind and (last or n_delivered != self._n_delivered_before):
            self._is_behind, self._n_delivered_before = False, n_delivered
            self.readers.resend()

    def _heed(self, reply: wire.Reply) -> None:
        """Runs in the sender's thread: it only sets what the next poll reads."""
        if "identity" in reply.wish:
            self.readers.want_identity()
        self._closer.heed(reply)
        self._asked_s = max(min(reply.next_s or 0.0, MAX_PACE_S), self._settings.interval_s)

    def _finish(self, message: wire.Message) -> None:
        """In the sender's thread: what would be long on the scheduler's loop."""
        message.profiles = merged(message.profiles)
        if message.identity is not None:
            message.identity.user = system_user()
        if self._scrubber is None:
            from daskscope.privacy.scrubber import Scrubber  # its patterns take 20 ms to make: not of the start

            self._scrubber = Scrubber(self._settings)
        self._scrubber.message(message)

"""The thread that brings messages to the server, and what happens when it cannot.

The scheduler's loop hands a message over and is done. Here it is encoded once, written to the shelf if there is one,
kept in a bounded buffer (`buffer.py`) until the server has it, and tried again with growing pauses (`pace.py`), but not
for ever before all others (`patience.py`). What is dropped is counted (`losses.py`), and the count travels with every
later message. Nothing here raises outwards.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future

from daskscope import wire
from daskscope.agent.texts import told
from daskscope.buffer import MAX_MESSAGES, Buffer
from daskscope.compression import decompress
from daskscope.contents import told_once
from daskscope.courier import Courier
from daskscope.errors import DaskscopeError
from daskscope.losses import Losses
from daskscope.outcome import Outcome
from daskscope.pace import Pace
from daskscope.parcel import Parcel, Shelf, in_parts, packed
from daskscope.patience import Patience
from daskscope.sampling import Sampling
from daskscope.transport import Transport

CLOSE_S = 4.0
"""So long a close waits that has nothing else to do, in the middle of a request that hangs as well."""
FAILING_CLOSE_S = 1.0
"""With a server that failed the last time, closing waits only so long: it may hang rather than refuse."""
MAX_FAULTS = 100
"""After so many faults of its own the thread ends; the buffer stays bounded, and counts what it drops."""
LEAST_BODY_BYTES = 1 << 10
"""A body that is no larger is not divided: whoever calls it too large takes no message at all."""

Shown = tuple[bytes, Parcel]
"""A message as JSON, undone from what is packed, and that; where it goes in parts, the last of them."""


class Sender:
    """`put` from the scheduler's loop, `close` once; the thread starts at once, for none can start at interpreter
    exit."""

    def __init__(
        self,
        transport: Transport,
        on_reply: Callable[[wire.Reply], None],
        *,
        finish: Callable[[wire.Message], None] = lambda _: None,
        shelf: Shelf | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`finish` does to a message what need not be done on the scheduler's loop, before it is encoded."""
        self._transport, self._on_reply, self._finish, self._shelf = transport, on_reply, finish, shelf
        self._losses, self._sampling, self._pace = Losses(monotonic), Sampling(monotonic), Pace(monotonic, jitter)
        self._inbox: deque[wire.Message] = deque()
        self._buffer = Buffer(shelf, self._losses, self._taken)
        self._patience = Patience(self._buffer, monotonic)
        self._shown: dict[int, Future[Shown]] = {}
        self._wake = threading.Condition()
        self._may_ask_shelf = False
        """Whether the server took the last message, and the shelf may have more."""
        self._is_denied = False
        self._courier: Courier | None = None
        """Where there is a shelf, so that what is made during a try is written down at once."""
        self._pid = os.getpid()
        self.n_delivered = self.n_delivered_bytes = self.n_failed_tries = 0
        """Messages that the server has, their size as posted, tries that were in vain."""
        self.cpu_s = 0.0
        """CPU time of the thread, and of the one that does the tries where there is a shelf."""
        self._thread = threading.Thread(target=self._run, name="daskscope-sender", daemon=True)

    @property
    def lost(self) -> Counter[str]:
        """Messages dropped so far by reason, and what went with them that no later message tells: failed tasks
        (`exceptions`), `events`, `deaths`, ...; `parts`: how many of them were but a part of one."""
        return self._losses.counts

    def start(self) -> None:
        if self._shelf is not None:
            self._courier = Courier(self._deliver, self._come_back)
        self._thread.start()

    def put(self, message: wire.Message) -> None:
        """Take a message over. Returns at once; in a forked child it does nothing."""
        if os.getpid() != self._pid:
            return
        with self._wake:
            self._inbox.append(message)
            if len(self._inbox) > MAX_MESSAGES:  # the thread hangs. The first of all is not to go
                dropped = self._inbox[1]
                del self._inbox[1]
                self._losses.unpacked("buffer-full", dropped)
            self._wake.notify()

    def show(self, message: wire.Message) -> Future[Shown]:
        """Like `put`, and tells what will be sent once that is made; DaskscopeError if it cannot be."""
        shown = self._shown[id(message)] = Future()
        shown.add_done_callback(lambda _: self._shown.pop(id(message), None))
        self.put(message)
        return shown

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Send what is left, for at most `timeout_s`; then count what lies nowhere else as lost (`closing`) and say how
        much it was. The thread goes on with it for as long as the process lives, in silence."""
        if os.getpid() != self._pid or self._thread.ident is None:
            return
        with self._wake:
            timeout_s = min(timeout_s, FAILING_CLOSE_S) if self._pace.n_failures else timeout_s
            self._pace.close()
            self._wake.notify()
        self._thread.join(timeout_s)
        self._losses.at_the_end(list(self._inbox), self._buffer.in_memory_alone())

    def _run(self) -> None:
        for _ in range(MAX_FAULTS):
            try:
                while self._step():
                    pass
                break
            except Exception as error:  # noqa: BLE001  # a fault of ours: the thread lives on, as long as that is rare
                self._losses.counts["failed"] += 1
                with contextlib.suppress(Exception):  # what tells of faults may have one
                    self._losses.warn_dropped(told(error))
        for end in (part.close for part in (self._courier, self._transport, self._shelf) if part is not None):
            with contextlib.suppress(Exception):  # it ends, and nobody is left to tell
                end()

    def _step(self) -> bool:
        """Wait for something to do and do it; False once there is nothing more to do ever."""
        with self._wake:
            while not (self._inbox or (self._courier is not None and self._courier.is_back)):
                pause_s = self._pause_s()
                if self._is_under_way:
                    pause_s = None
                elif self._pace.is_closing and (pause_s is None or self._pace.has_given_up):
                    return False
                elif pause_s == 0:
                    break
                self._wake.wait(pause_s)
        while (message := self._next_put()) is not None:
            self._pack(message)
        if self._courier is not None and self._courier.is_back and (parcel := self._buffer.head) is not None:
            self._heed(parcel, self._courier.outcome)
        elif not self._is_under_way and self._pause_s() == 0 and (parcel := self._head()) is not None:
            self._attempt(parcel)
        self.cpu_s = time.thread_time() + (self._courier.cpu_s if self._courier is not None else 0.0)
        return True

    def _next_put(self) -> wire.Message | None:
        with self._wake:
            return self._inbox.popleft() if self._inbox else None

    @property
    def _is_under_way(self) -> bool:
        return self._courier is not None and self._courier.is_away

    def _deliver(self, parcel: Parcel) -> Outcome:
        return self._transport.deliver(parcel.name, parcel.body, parcel.encoding, is_own=self._losses.is_own(parcel))

    def _come_back(self) -> None:
        with self._wake:
            self._wake.notify()

    def _pause_s(self) -> float | None:
        """How long until the next attempt; None if there is nothing to send."""
        return self._pace.pause_s if self._buffer or (self._may_ask_shelf and not self._pace.is_closing) else None

    def _head(self) -> Parcel | None:
        """What is to be tried next: what lies on the shelf alone, once nothing else waits."""
        if not self._buffer and self._shelf is not None:
            found = self._shelf.next()
            self._may_ask_shelf = found is not None
            if found is not None:
                self._buffer.add_kept(found)
            self._pace.drain(has_more=found is not None)
        return self._buffer.head

    def _taken(self) -> frozenset[str]:
        """What may be used beside zstd and gzip: who will take what lies on the shelf, nobody knows."""
        return self._sampling.taken if self._shelf is None else frozenset()

    def _pack(self, message: wire.Message) -> None:
        try:
            self._pace.interval_s = message.next_s
            self._losses.belong_to(message)
            once = told_once(message)
            self._finish(message)
            parcels = packed(message, self._taken(), once)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with this message, the next one is to go
            self._losses.broken(message)
            self._losses.warn_dropped(told(error))
            parcels = []
        for parcel in parcels:
            if parcel.is_too_large:
                self._losses.parcel("too-large", parcel)
                self._losses.warn_dropped(f"{len(parcel.body)} bytes")
            else:
                self._take_in(parcel)
        self._tell(message, parcels)

    def _take_in(self, parcel: Parcel) -> None:
        try:
            self._buffer.add(parcel)
        except Exception as error:  # noqa: BLE001  # a fault of ours: it waits like others, and the next one is to go
            self._losses.warn("the buffer is not in order: %s.", told(error))

    def _tell(self, message: wire.Message, parcels: list[Parcel]) -> None:
        """Whoever asked to see it; none: it was dropped, and the log says why."""
        shown = self._shown.get(id(message))
        if shown is None or not shown.set_running_or_notify_cancel():
            return
        try:
            if not parcels or parcels[-1].is_too_large:
                raise DaskscopeError("The message could not be packed: the scheduler's log says why.")
            last = parcels[-1]
            plain = wire.encode(message) if len(parcels) > 1 else decompress(last.body, last.encoding)
            shown.set_result((plain, last))
        except Exception as error:  # noqa: BLE001  # whoever asked hears of it; the message itself is to go
            shown.set_exception(error)

    def _attempt(self, parcel: Parcel) -> None:
        if not parcel.suits(self._taken()):
            try:
                parcel = parcel.plain()
            except Exception as error:  # noqa: BLE001  # as below
                self._give_up(parcel, "failed", told(error))
                return
            self._buffer.recode_head(parcel)
        if self._courier is not None:
            self._courier.send(parcel)
        else:
            self._heed(parcel, lambda: self._deliver(parcel))

    def _heed(self, parcel: Parcel, outcome: Callable[[], Outcome]) -> None:
        """What became of a try of the head, which nothing else touches meanwhile."""
        try:
            self._settle(parcel, outcome())
        except Exception as error:  # noqa: BLE001  # a fault of ours: the thread lives on, without this message
            if self._buffer.head is parcel:
                self._give_up(parcel, "failed", told(error))
            else:
                self._losses.warn("the server's answer could not be heeded: %s.", told(error))

    def _settle(self, parcel: Parcel, outcome: Outcome) -> None:
        if outcome.verdict == "kept":
            self._kept(parcel, outcome)
        elif outcome.verdict == "plain" and not parcel.suits(()):
            self._sampling.not_taken(parcel)
            self.n_failed_tries += 1
        elif outcome.verdict == "split":
            self.n_failed_tries += 1
            self._divide(parcel, outcome.reason)
        elif outcome.verdict in ("refused", "plain"):
            self._sampling.refused()
            self._give_up(parcel, "refused", outcome.reason)
        else:
            self.n_failed_tries += 1
            self._wait(parcel, outcome)

    def _kept(self, parcel: Parcel, outcome: Outcome) -> None:
        self._is_denied = False
        self._may_ask_shelf = self._shelf is not None
        self._buffer.done()
        self._go_on(parcel, is_taken=True)
        self.n_delivered += 1
        self.n_delivered_bytes += len(parcel.body)
        reply = outcome.reply if self._losses.is_own(parcel) else None  # another cluster's wishes are not ours
        self._sampling.kept(parcel, reply)
        if reply is not None:
            self._on_reply(reply)

    def _go_on(self, parcel: Parcel, *, is_taken: bool) -> None:
        """What was the head is settled."""
        self._patience.settled(parcel.name, is_taken=is_taken, is_closing=self._pace.is_closing)
        self._pace.answered(has_more=bool(self._buffer) or self._may_ask_shelf)

    def _divide(self, parcel: Parcel, reason: str) -> None:
        """Never the same body again."""
        parts = in_parts(parcel.opened(), self._taken()) if len(parcel.body) > LEAST_BODY_BYTES else []
        if len(parts) > 1:
            self._buffer.divide_head(parts)
            self._pace.drain(has_more=True)
            self._go_on(parcel, is_taken=False)
        else:
            self._give_up(parcel, "too-large", reason)

    def _wait(self, parcel: Parcel, outcome: Outcome) -> None:
        if outcome.verdict == "denied":
            self._sampling.denied()
        else:
            self._sampling.failed(parcel, is_closing=self._pace.is_closing)
        self._pace.failed(outcome)
        if not (outcome.verdict == "denied" and self._is_denied):  # said once: it is asked again every ten minutes
            self._losses.warn("not reported for now, the workload goes on: %s.", outcome.reason)
        self._is_denied = outcome.verdict == "denied"
        if parcel.seq < 0:
            self._buffer.park()  # it must not keep this scheduler's own messages waiting
            self._may_ask_shelf = False
        elif outcome.verdict == "again" and self._patience.failed(parcel.name, is_closing=self._pace.is_closing):
            self._give_up(parcel, "refused", f"for a day the server took others and not this one, {outcome.reason}")

    def _give_up(self, parcel: Parcel, reason: str, why: str) -> None:
        self._may_ask_shelf = False  # whoever refuses one may refuse all that lie there: first it is to take one again
        self._buffer.done(aside=why)
        self._go_on(parcel, is_taken=False)
        self._losses.warn_dropped(why)
        self._losses.parcel(reason, parcel)

"""The thread that brings messages to the server, and what happens when it cannot.

The scheduler's loop hands a message over and is done. Here it is encoded once, kept until the server has it, and
tried again with growing pauses. The buffer is bounded in number and bytes; what does not fit is dropped oldest first
and counted, and the count travels with every later message. Nothing here raises outwards.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future

from daskscope import wire
from daskscope.agent.texts import told
from daskscope.attempts import warn
from daskscope.compression import decompress
from daskscope.errors import DaskscopeError
from daskscope.outcome import Outcome
from daskscope.parcel import Parcel, packed, told_once
from daskscope.transport import Transport

MAX_MESSAGES = 360
"""An hour at the usual pace."""
MAX_BYTES = 16 << 20
BACKOFF_BASE_S = 1.0
BACKOFF_CAP_S = 60.0
PROBE_S = 600.0
"""With a token that the server denies, one message is tried so often: somebody may mend it."""
CLOSE_S = 4.0
"""So long a close waits that has nothing else to do, in the middle of a request that hangs as well."""
FAILING_CLOSE_S = 1.0
"""With a server that failed the last time, closing waits only so long: it may hang rather than refuse."""
CLOSING_TRIES = 2
"""When the scheduler closes, a server that fails so often in a row is given up at once: nobody waits for it."""
SAMPLED_TRIES, PLAIN_S = 3, 3600.0
"""So many tries in vain after the sample, and a message goes plain: whatever is on the way may fail at that encoding
and say that the server does. If plain helps, the sample is left alone for so long."""
QUIET_S = 60.0
MAX_FAULTS = 100
"""After so many faults of its own the thread ends; the buffer stays bounded, and counts what it drops."""

Shown = tuple[bytes, Parcel]
"""A message as JSON, undone from what will be sent, and that."""


class Sender:
    """`put` from the scheduler's loop, `close` once; the thread starts at once, for none can start at interpreter
    exit."""

    def __init__(
        self,
        transport: Transport,
        on_reply: Callable[[wire.Reply], None],
        *,
        finish: Callable[[wire.Message], None] = lambda _: None,
        monotonic: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`finish` does to a message what need not be done on the scheduler's loop, before it is encoded."""
        self._transport, self._on_reply, self._finish = transport, on_reply, finish
        self._monotonic, self._jitter = monotonic, jitter
        self._inbox: deque[wire.Message] = deque()
        self._parcels: deque[Parcel] = deque()
        self._shown: dict[int, Future[Shown]] = {}
        self._n_bytes = 0
        self._wake = threading.Condition()
        self._closing = False
        self._not_before = 0.0
        self._n_failures = 0
        self._quiet_until = 0.0
        self._taken = frozenset[str]()
        """What the server takes beside zstd and gzip. The first message does not know."""
        self._suspect = ""
        """Name of the message that was not taken after the sample, and goes again plain."""
        self._n_in_vain = 0
        """Tries after the sample in a row that were not answered for good."""
        self._suspect_s = self._plain_until_s = 0.0
        """For how long the sample is to be left alone if plain helps, and until when it is."""
        self._pid = os.getpid()
        self.lost: Counter[str] = Counter()
        """Messages dropped so far by reason, and what went with them that no later message tells: failed tasks
        (`exceptions`), `events`, `deaths`, ..."""
        self.n_delivered = self.n_delivered_bytes = self.n_failed_tries = 0
        """Messages that were answered with 2xx, their size as posted, tries that were in vain."""
        self.cpu_s = 0.0
        """CPU time of the thread."""
        self._thread = threading.Thread(target=self._run, name="daskscope-sender", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, message: wire.Message) -> None:
        """Take a message over. Returns at once; in a forked child it does nothing."""
        if os.getpid() != self._pid:
            return
        with self._wake:
            self._inbox.append(message)
            if len(self._inbox) > MAX_MESSAGES:
                self._count("buffer-full", told_once(self._inbox.popleft()))
            self._wake.notify()

    def show(self, message: wire.Message) -> Future[Shown]:
        """Like `put`, and tells what will be sent once that is made; DaskscopeError if it cannot be."""
        shown = self._shown[id(message)] = Future()
        shown.add_done_callback(lambda _: self._shown.pop(id(message), None))
        self.put(message)
        return shown

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Send what is left, for at most `timeout_s`; then count it as lost (`closing`) and say how much it was. The
        thread goes on with it for as long as the process lives, in silence."""
        if os.getpid() != self._pid or self._thread.ident is None:
            return
        with self._wake:
            self._closing = True
            timeout_s = min(timeout_s, FAILING_CLOSE_S) if self._n_failures else timeout_s
            self._not_before, self._n_failures = 0.0, 0
            self._wake.notify()
        self._thread.join(timeout_s)
        left = [*map(told_once, list(self._inbox)), *(parcel.once for parcel in list(self._parcels))]
        if left and self._quiet_until < math.inf:
            self._quiet_until = math.inf
            for once in left:
                self._count("closing", once)
            also = "".join(f", {n} {kind}" for kind, n in sum(left, Counter[str]()).items())
            warn("daskscope: %d messages could not be delivered before the scheduler closed%s.", len(left), also)

    def _run(self) -> None:
        for _ in range(MAX_FAULTS):
            try:
                while self._step():
                    pass
                break
            except Exception as error:  # noqa: BLE001  # a fault of ours: the thread lives on, as long as that is rare
                with contextlib.suppress(Exception):  # what tells of faults may have one
                    self._drop("failed", told(error), Counter())
        with contextlib.suppress(Exception):  # it ends, and nobody is left to tell
            self._transport.close()

    def _step(self) -> bool:
        """Wait for something to do and do it; False once there is nothing more to do ever."""
        with self._wake:
            while not self._inbox:
                pause_s = self._pause_s()
                if self._closing and (pause_s is None or self._n_failures >= CLOSING_TRIES):
                    return False
                if pause_s == 0:
                    break
                self._wake.wait(pause_s)
            fresh = list(self._inbox)
            self._inbox.clear()
        for message in fresh:
            self._tell(message, self._pack(message))
        if self._parcels and self._monotonic() >= self._not_before:
            self._attempt(self._parcels[0])
        self.cpu_s = time.thread_time()
        return True

    def _attempt(self, parcel: Parcel) -> None:
        try:
            if not parcel.suits(self._taken):
                parcel = self._recode(parcel)
            self._settle(parcel, self._transport.deliver(parcel.name, parcel.body, parcel.encoding))
        except Exception as error:  # noqa: BLE001  # a fault of ours: the thread lives on, without this message
            if self._parcels and self._parcels[0] is parcel:
                self._done(parcel)
                self._drop("failed", told(error), parcel.once)
            else:
                self._warn("the server's answer could not be heeded: %s.", told(error))

    def _recode(self, parcel: Parcel) -> Parcel:
        """The first of those that wait, as every server takes it."""
        plain = self._parcels[0] = parcel.plain()
        self._n_bytes += len(plain.body) - len(parcel.body)
        return plain

    def _pause_s(self) -> float | None:
        """How long until the next attempt; None if there is nothing to send."""
        if not self._parcels:
            return None
        return max(self._not_before - self._monotonic(), 0.0)

    def _pack(self, message: wire.Message) -> Parcel | None:
        once: Counter[str] = Counter()
        try:
            once = told_once(message)
            self._finish(message)
            parcel = packed(message, self._taken, once)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with this message, the next one is to go
            self._drop("not-encodable", told(error), once)
            return None
        if len(parcel.body) > wire.MAX_BODY_BYTES:
            self._drop("too-large", f"{len(parcel.body)} bytes", once)
            return None
        self._parcels.append(parcel)
        self._n_bytes += len(parcel.body)
        while len(self._parcels) > MAX_MESSAGES or self._n_bytes > MAX_BYTES:
            oldest = self._parcels.popleft()
            self._n_bytes -= len(oldest.body)
            self._count("buffer-full", oldest.once)
        return parcel

    def _tell(self, message: wire.Message, parcel: Parcel | None) -> None:
        """Whoever asked to see it; None: it was dropped, and the log says why."""
        shown = self._shown.get(id(message))
        if shown is None or not shown.set_running_or_notify_cancel():
            return
        try:
            if parcel is None:
                raise DaskscopeError("The message could not be packed: the scheduler's log says why.")
            shown.set_result((decompress(parcel.body, parcel.encoding), parcel))
        except Exception as error:  # noqa: BLE001  # whoever asked hears of it; the message itself is to go
            shown.set_exception(error)

    def _settle(self, parcel: Parcel, outcome: Outcome) -> None:
        if outcome.verdict == "kept":
            self._done(parcel)
            self.n_delivered += 1
            self.n_delivered_bytes += len(parcel.body)
            if parcel.name == self._suspect:
                self._suspect, self._plain_until_s = "", self._monotonic() + self._suspect_s
            if outcome.reply is not None:
                self._taken = frozenset(outcome.reply.accepts if self._monotonic() >= self._plain_until_s else ())
                self._on_reply(outcome.reply)
            elif outcome.reason:
                self._warn("is daskscope.server a daskscope server? It answers %s.", outcome.reason)
        elif outcome.verdict == "plain" and not parcel.suits(()):
            self._doubt(parcel, math.inf)
            self.n_failed_tries += 1
        elif outcome.verdict in ("refused", "plain"):
            self._suspect = ""
            self._done(parcel)
            self._drop("refused", outcome.reason, parcel.once)
        else:
            self._suspect = self._suspect if outcome.verdict == "again" else ""
            if outcome.verdict == "again" and not parcel.suits(()):
                self._n_in_vain += 1
                if self._n_in_vain >= (1 if self._closing else SAMPLED_TRIES):  # a close has no third try
                    self._doubt(parcel, PLAIN_S)
            self._n_failures += 1
            self.n_failed_tries += 1
            self._not_before = self._monotonic() + self._backoff_s(outcome)
            self._warn("not reported for now, the workload goes on: %s.", outcome.reason)

    def _doubt(self, parcel: Parcel, plain_s: float) -> None:
        """Send it plain, and if that helps, all others for so long."""
        self._suspect, self._suspect_s, self._taken = parcel.name, plain_s, frozenset()

    def _done(self, parcel: Parcel) -> None:
        self._parcels.popleft()
        self._n_bytes -= len(parcel.body)
        self._n_failures = self._n_in_vain = 0

    def _backoff_s(self, outcome: Outcome) -> float:
        if self._closing:
            return self._jitter() * BACKOFF_BASE_S
        if outcome.verdict == "denied":
            return PROBE_S
        ceiling_s = min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2 ** min(self._n_failures, 10))
        return max(outcome.wait_s, self._jitter() * ceiling_s)

    def _drop(self, reason: str, why: str, once: Counter[str]) -> None:
        self._count(reason, once)
        self._warn("a message was dropped: %s.", why)

    def _count(self, reason: str, once: Counter[str]) -> None:
        self.lost[reason] += 1
        self.lost.update(once)

    def _warn(self, text: str, why: str) -> None:
        """One warning a minute at most."""
        if self._monotonic() >= self._quiet_until:
            self._quiet_until = self._monotonic() + QUIET_S
            warn("daskscope: " + text, why)

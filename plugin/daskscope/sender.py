"""The thread that brings messages to the server, and what happens when it cannot.

The scheduler's loop hands a message over and is done. Here it is encoded once, kept until the server has it, and
tried again with growing pauses. The buffer is bounded in number and bytes; what does not fit is dropped oldest first
and counted, and the count travels with every later message. Nothing here raises outwards.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from daskscope import wire
from daskscope.compression import Encoding, compress
from daskscope.transport import Outcome, Transport

MAX_MESSAGES = 360
"""An hour at the usual pace."""
MAX_BYTES = 16 << 20
BACKOFF_BASE_S = 1.0
BACKOFF_CAP_S = 60.0
PROBE_S = 600.0
"""With a token that the server denies, one message is tried so often: somebody may mend it."""
CLOSE_S = 5.0
FAILING_CLOSE_S = 1.0
"""With a server that failed the last time, closing waits only so long: it may hang rather than refuse."""
CLOSING_TRIES = 2
"""When the scheduler closes, a server that fails so often in a row is given up at once: nobody waits for it."""
QUIET_S = 60.0

logger = logging.getLogger("distributed.daskscope")


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message as it will be sent, however often."""

    name: str
    body: bytes
    encoding: Encoding
    once: Counter[str]
    """How much is in it that no later message tells again."""


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
        self._n_bytes = 0
        self._wake = threading.Condition()
        self._closing = False
        self._not_before = 0.0
        self._n_failures = 0
        self._quiet_until = 0.0
        self._pid = os.getpid()
        self.lost: Counter[str] = Counter()
        """Messages dropped so far by reason, and what went with them that no later message tells: failed tasks
        (`exceptions`), `events`, `deaths`, ..."""
        self.n_delivered = self.n_delivered_bytes = self.n_failed_tries = 0
        """Messages that the server has, their size as posted, tries that were in vain."""
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
                self._count("buffer-full", _once(self._inbox.popleft()))
            self._wake.notify()

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Send what is left, for at most `timeout_s`; then leave it and say how much it was."""
        if os.getpid() != self._pid or not self._thread.is_alive():
            return
        with self._wake:
            self._closing = True
            timeout_s = min(timeout_s, FAILING_CLOSE_S) if self._n_failures else timeout_s
            self._not_before, self._n_failures = 0.0, 0
            self._wake.notify()
        self._thread.join(timeout_s)
        left = len(self._inbox) + len(self._parcels)
        if left:
            logger.warning("daskscope: %d messages could not be delivered before the scheduler closed.", left)

    def _run(self) -> None:
        try:
            while self._step():
                pass
        finally:
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
            self._pack(message)
        if self._parcels and self._monotonic() >= self._not_before:
            self._attempt(self._parcels[0])
        self.cpu_s = time.thread_time()
        return True

    def _attempt(self, parcel: Parcel) -> None:
        try:
            self._settle(parcel, self._transport.deliver(parcel.name, parcel.body, parcel.encoding))
        except Exception as error:  # noqa: BLE001  # a fault of ours: the thread lives on, without this message
            if self._parcels and self._parcels[0] is parcel:
                self._done(parcel)
                self._drop("failed", f"{type(error).__name__}: {error}", parcel.once)
            else:
                self._warn("the server's answer could not be heeded: %s.", f"{type(error).__name__}: {error}")

    def _pause_s(self) -> float | None:
        """How long until the next attempt; None if there is nothing to send."""
        if not self._parcels:
            return None
        return max(self._not_before - self._monotonic(), 0.0)

    def _pack(self, message: wire.Message) -> None:
        once: Counter[str] = Counter()
        try:
            once = _once(message)
            self._finish(message)
            body, encoding = compress(wire.encode(message))
        except Exception as error:  # noqa: BLE001  # whatever is wrong with this message, the next one is to go
            self._drop("not-encodable", f"{type(error).__name__}: {error}", once)
            return
        if len(body) > wire.MAX_BODY_BYTES:
            self._drop("too-large", f"{len(body)} bytes", once)
            return
        name = f"{message.cluster}-{message.boot}-{message.seq:08d}"
        self._parcels.append(Parcel(name, body, encoding, once))
        self._n_bytes += len(body)
        while len(self._parcels) > MAX_MESSAGES or self._n_bytes > MAX_BYTES:
            oldest = self._parcels.popleft()
            self._n_bytes -= len(oldest.body)
            self._count("buffer-full", oldest.once)

    def _settle(self, parcel: Parcel, outcome: Outcome) -> None:
        if outcome.verdict == "kept":
            self._done(parcel)
            self.n_delivered += 1
            self.n_delivered_bytes += len(parcel.body)
            if outcome.reply is not None:
                self._on_reply(outcome.reply)
        elif outcome.verdict == "refused":
            self._done(parcel)
            self._drop("refused", outcome.reason, parcel.once)
        else:
            self._n_failures += 1
            self.n_failed_tries += 1
            self._not_before = self._monotonic() + self._backoff_s(outcome)
            self._warn("not reported for now, the workload goes on: %s.", outcome.reason)

    def _done(self, parcel: Parcel) -> None:
        self._parcels.popleft()
        self._n_bytes -= len(parcel.body)
        self._n_failures = 0

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
            logger.warning("daskscope: " + text, why)


def _once(message: wire.Message) -> Counter[str]:
    told = {
        "exceptions": sum(family.count for family in message.exceptions),
        "events": len(message.events),
        "deaths": len(message.deaths),
        "log-lines": len(message.logs.no),
        "tasks": len(message.tasks.worker) * message.tasks.weight,
        "profiles": len(message.profiles),
    }
    return Counter({kind: n for kind, n in told.items() if n})

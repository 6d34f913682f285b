"""Log records as lines, bounded in rate, length and number; whatever is left out is counted with the next line."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable

from daskscope.agent import OURS
from daskscope.agent.texts import clean, shared_text
from daskscope.agent.withheld import stays_here

BURST = 200
RATE_PER_S = 20.0
"""So many lines a process may send at once, and so many each second from then on."""
PRICE_CHARACTERS = 1_000
"""A longer line counts as several: one for so many characters."""
MAX_NAME = 200
MAX_LINES, MAX_CHARACTERS = 1_000, 2 << 20
"""Held while nobody takes them; beyond either the oldest give way."""
TAKE_LINES, TAKE_CHARACTERS = 200, 64_000
"""Most that is taken at once."""

Line = tuple[int, int, str, str, int]
"""Epoch milliseconds, level, logger, text, lines dropped before this one."""


class Lines:
    """Filled from any thread, emptied by one."""

    def __init__(
        self,
        wake: Callable[[bool], None],
        *,
        max_lines: int = MAX_LINES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wake(urgent)` is called when there is something to take, in the thread that logged."""
        self._wake, self._max_lines, self._monotonic = wake, max_lines, monotonic
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._thread = threading.local()
        self._waiting: deque[Line] = deque()
        self._n_characters = 0
        self._n_dropped = 0
        self._tokens = float(BURST)
        self._refilled_at = monotonic()

    def hear(self, record: logging.LogRecord) -> None:
        """Never raises and never waits for more than a few of its own instructions; in a forked child does nothing."""
        if os.getpid() != self._pid:
            return
        # Formatting may log, and so may any finalizer that runs while we hold the lock: this thread is then here twice.
        if getattr(self._thread, "busy", False):
            self._n_dropped += not getattr(self._thread, "quiet", False)
            return
        with self._busy():
            try:
                if _stays_here(record):
                    return
                added = self._add(record)
            except Exception:  # noqa: BLE001  # whoever logs must not hear of us, and to log it would come back here
                self._n_dropped += 1
                return
            with contextlib.suppress(Exception):  # an event loop that is closed: it waits for whoever takes it
                self._wake(added and record.levelno >= logging.WARNING)

    def hear_earlier(self, records: Iterable[logging.LogRecord], level: int, until_s: float) -> None:
        """Those from `level` on that were made before `until_s`."""
        for record in records:
            if record.levelno >= level and record.created < until_s:
                self.hear(record)

    @contextlib.contextmanager
    def quiet(self) -> Generator[None]:
        """What this thread logs meanwhile is about sending lines: it becomes none, and is not counted."""
        self._thread.quiet = True
        try:
            with self._busy():
                yield
        finally:
            self._thread.quiet = False

    @contextlib.contextmanager
    def _busy(self) -> Generator[None]:
        self._thread.busy = True
        try:
            yield
        finally:
            self._thread.busy = False

    def take(self) -> tuple[list[Line], int]:
        """The oldest lines, as many as fit, and how many were dropped after them (0 if more are waiting)."""
        lines: list[Line] = []
        characters = 0
        with self._busy(), self._lock:
            while self._waiting and len(lines) < TAKE_LINES and characters < TAKE_CHARACTERS:
                lines.append(self._waiting.popleft())
                characters += len(lines[-1][3])
            self._n_characters -= characters
            dropped = 0
            if not self._waiting:
                dropped, self._n_dropped = self._n_dropped, 0
        return lines, dropped

    def lose(self, n: int) -> None:
        """Lines that were taken and could not be sent."""
        with self._busy(), self._lock:
            self._n_dropped += n

    def _add(self, record: logging.LogRecord) -> bool:
        with self._lock:
            admitted = self._admit()
        if admitted:
            text, name = shared_text(record), clean(str(record.name)[:MAX_NAME])
            at_ms, level = round(record.created * 1e3), int(record.levelno)
            with self._lock:
                self._tokens -= len(text) // PRICE_CHARACTERS
                dropped, self._n_dropped = self._n_dropped, 0
                self._waiting.append((at_ms, level, name, text, dropped))
                self._n_characters += len(text)
                while len(self._waiting) > self._max_lines or self._n_characters > MAX_CHARACTERS:
                    self._forget_oldest()
        return admitted

    def _admit(self) -> bool:
        now_s = self._monotonic()
        self._tokens = min(float(BURST), self._tokens + (now_s - self._refilled_at) * RATE_PER_S)
        self._refilled_at = now_s
        if self._tokens < 1:
            self._n_dropped += 1
            return False
        self._tokens -= 1
        return True

    def _forget_oldest(self) -> None:
        *_, text, dropped = self._waiting.popleft()
        self._n_characters -= len(text)
        at_ms, level, name, text, before = self._waiting[0]
        self._waiting[0] = (at_ms, level, name, text, before + dropped + 1)


def _stays_here(record: logging.LogRecord) -> bool:
    """What is of our loggers, or of what our threads call (an HTTP client tells of each message); or not fit to go."""
    if str(record.name).startswith(OURS) or str(record.threadName).startswith("daskscope-"):
        return True
    return stays_here(record)

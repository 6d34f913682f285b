"""Log lines: those of the scheduler's own process, and those that agents sent from workers and nannies."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from daskscope import wire
from daskscope.agent.lines import MAX_NAME, Line, Lines
from daskscope.agent.logs import Route, earlier_records, listeners
from daskscope.agent.tap import Tap
from daskscope.agent.texts import MAX_TEXT

if TYPE_CHECKING:
    from distributed import Scheduler

MAX_LINES, MAX_CHARACTERS = 1_000, 256_000
"""Most that goes into one message; `behind` tells of more."""
MAX_WAITING, MAX_WAITING_CHARACTERS = 10_000, 16 << 20
"""Held until they go into a message; beyond either the oldest give way."""
MAX_PROCESSES = 10_000
"""So many are remembered with how many of their lines were dropped since their last one that went."""
LINE_S = 5e-6
"""CPU time that is charged for a line of the scheduler's own process: as measured once."""
MAX_NUMBER = 1 << 31
"""Of a level or of dropped lines."""

Process = tuple[str, str | None]
"""Role and the worker's address."""


class LogReader:
    """Reads what was logged since it last looked. With level None it hears and takes nothing."""

    def __init__(self, scheduler: Scheduler, level: int | None) -> None:
        self._scheduler, self._level = scheduler, level
        self.pid = os.getpid()
        self._own = Lines(lambda _: None, max_lines=MAX_WAITING)
        self._tap = None if level is None else Tap(level, self._own.hear)
        self._waiting: deque[tuple[Process, Line]] = deque()
        self._n_characters = 0
        self._is_read = True
        self._unsaid: Counter[Process] = Counter()
        """Lines that were dropped, to be told with the process's next one."""
        self._delays_ms: dict[str, int] = {}
        """Of workers, kept for what a nanny tells of their end."""
        self.n_lines = self._n_own = 0
        self.lost: Counter[str] = Counter()

    @property
    def waiting(self) -> Counter[str]:
        """What the last read left for the next: `log-lines`."""
        return Counter({"log-lines": len(self._waiting)})

    @property
    def behind(self) -> bool:
        """Whether the last read left lines for the next."""
        return bool(self._waiting)

    @property
    def charged_s(self) -> float:
        """CPU time in logging, a running total: an estimate."""
        return LINE_S * self._n_own

    def start(self) -> None:
        """Hear this process. Agents in it, of workers or nannies, then leave its lines to us."""
        if self._tap is not None and self._level is not None:
            listeners()[self._scheduler.id] = self
            now_s = time.time()
            self._tap.attach()
            self.hear_earlier(now_s)

    def hear_earlier(self, until_s: float) -> None:
        """What Dask keeps of the scheduler's own lines from before that time."""
        if self._level is not None:
            self._own.hear_earlier(earlier_records(self._scheduler), self._level, until_s)

    def close(self) -> None:
        if self._tap is not None:
            self._tap.detach()
            if listeners().get(self._scheduler.id) is self:
                del listeners()[self._scheduler.id]

    def let_go(self) -> None:
        """Hear nothing and hold nothing any more: nobody will read it. All counts as lost, also what agents send."""
        self.close()
        self._is_read = False
        self.lost += self.waiting
        self._waiting.clear()
        self._n_characters = 0
        lines, dropped = self._own.take()
        while lines or dropped:
            self.lost["log-lines"] += len(lines) + dropped + sum(line[4] for line in lines)
            lines, dropped = self._own.take()

    def join(self, route: Route) -> None:
        """An agent in this process: it has nothing to send."""

    def leave(self, route: Route) -> None:
        """An agent in this process that closes."""

    def flush(self) -> None:
        """What an agent in this process asks for when it closes; the next `read` does it."""

    def lose(self, payload: dict[str, Any]) -> None:
        """Never called: agents in this process send nothing."""

    def take(self, worker: str, payload: Mapping[str, Any]) -> None:
        """Lines of a worker or its nanny; those that are none are left out and counted.

        Raises if it is no payload of log lines at all.
        """
        if self._level is None:
            return
        role: object = payload["from"]
        if role not in ("worker", "nanny"):
            raise ValueError(role)
        process: Process = (str(role), worker[:MAX_NAME] or None)
        delay_ms = self._delay_ms(worker) if role == "nanny" else 0
        for given in payload["lines"]:
            line = _line(given, delay_ms)
            if not self._is_read:
                self.lost["log-lines"] += 1 + (line[4] if line else 0)
            elif line is None:
                self._lose(process, "unreadable-log-lines", 1)
            else:
                self._add(process, line)
        dropped: object = payload.get("dropped", 0)
        if _is_count(dropped):
            self._lose(process, "log-lines", dropped)

    def read(self, least: int = 0) -> wire.Logs:
        """Lines that came since the last call, as many as fit; `behind` tells of more. Those below a level of `least`
        are only counted."""
        self._take_own()
        logs = wire.Logs()
        n_characters = 0
        while self._waiting and len(logs.no) < MAX_LINES and n_characters < MAX_CHARACTERS:
            process, (at_ms, level, logger, text, dropped) = self._waiting.popleft()
            self._n_characters -= len(text)
            if level < least:
                self._unsay(process, dropped)  # counted as lost when it came
                self._lose(process, "log-lines", 1)
                continue
            role, worker = process
            logs.no.append(self.n_lines)
            logs.at_ms.append(at_ms)
            logs.level.append(level)
            logs.logger.append(logger)
            logs.role.append(role)
            logs.worker.append(worker)
            logs.text.append(text)
            logs.dropped.append(dropped + self._unsaid.pop(process, 0))
            self.n_lines += 1
            n_characters += len(text)
        return logs

    def _delay_ms(self, worker: str) -> int:
        """From a nanny's clock, which is its worker's, to the scheduler's; workers date their lines by it themselves.

        0 if its worker was never seen.
        """
        state = self._scheduler.workers.get(worker)
        if state is not None and (worker in self._delays_ms or len(self._delays_ms) < MAX_PROCESSES):
            self._delays_ms[worker] = round(state.time_delay * 1e3)
        return self._delays_ms.get(worker, 0)

    def _take_own(self) -> None:
        lines, dropped = self._own.take()
        while lines or dropped:
            for line in lines:
                self._add(("scheduler", None), line)
            self._n_own += len(lines) + dropped
            self._lose(("scheduler", None), "log-lines", dropped)
            lines, dropped = self._own.take()

    def _add(self, process: Process, line: Line) -> None:
        if line[4]:
            self.lost["log-lines"] += line[4]
        self._waiting.append((process, line))
        self._n_characters += len(line[3])
        while len(self._waiting) > MAX_WAITING or self._n_characters > MAX_WAITING_CHARACTERS:
            theirs, (_, _, _, text, dropped) = self._waiting.popleft()
            self._n_characters -= len(text)
            self._unsay(theirs, dropped)  # counted as lost when it came
            self._lose(theirs, "log-lines", 1)

    def _lose(self, process: Process, reason: str, n: int) -> None:
        if n:
            self.lost[reason] += n
            self._unsay(process, n)

    def _unsay(self, process: Process, n: int) -> None:
        if n and (process in self._unsaid or len(self._unsaid) < MAX_PROCESSES):
            self._unsaid[process] += n


def _line(given: Any, delay_ms: int) -> Line | None:
    """What an agent sent as a line, if it is one, so much later."""
    if not isinstance(given, (list, tuple)) or len(given) != 5:
        return None
    at_ms, level, logger, text, dropped = given
    if _is_count(at_ms, wire.LATEST_MS):
        at_ms = min(max(at_ms + delay_ms, 0), wire.LATEST_MS - 1)
    if not (_is_count(at_ms, wire.LATEST_MS) and _is_count(level) and _is_count(dropped)):
        return None
    if not (isinstance(logger, str) and isinstance(text, str)):
        return None
    return at_ms, level, logger[:MAX_NAME], text[: 2 * MAX_TEXT], dropped


def _is_count(value: object, below: int = MAX_NUMBER) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below

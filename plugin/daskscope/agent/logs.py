"""Sends a process's log lines to the scheduler, once per process and cluster.

Several agents may share a process: nannies of one `dask worker`, workers of a LocalCluster without processes. They
meet in a table that hangs on our own logger, because their classes, pickled by value, share no module.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from daskscope.agent import OURS
from daskscope.agent.lines import Lines
from daskscope.agent.tap import Tap

BATCH_S = 0.5
"""Lines below WARNING wait so long for others; from WARNING on a line goes at once, for it may be the last."""
PAUSE_S, MAX_PAUSE_S = 0.25, 1.0
"""From one payload to the next, also of warnings: each costs the scheduler's loop 0.4 ms, whatever is in it. Doubled
with each payload while lines are dropped."""


@dataclass(eq=False)
class Route:
    """One agent's way to the scheduler."""

    role: str
    worker: Callable[[], str]
    """Address of the worker, empty if not known."""
    post: Callable[[dict[str, Any]], None]
    """Called on `loop`; raises if the payload is lost."""
    loop: asyncio.AbstractEventLoop
    is_free: Callable[[], bool] = lambda: True
    """Whether `post` may be called now. If not, the agent calls `LogSender.flush` once it may."""
    delay_s: Callable[[], float] = lambda: 0.0
    """From this process's clock to the scheduler's, by which lines are dated."""


class Listener(Protocol):
    """Who hears the lines of this process for one cluster."""

    pid: int

    def join(self, route: Route) -> None: ...

    def leave(self, route: Route) -> None: ...

    def flush(self) -> None: ...

    def lose(self, payload: dict[str, Any]) -> None: ...


def listeners() -> dict[str, Listener]:
    """Cluster id to listener, those of this process; entries of another pid came along with a fork."""
    found: dict[str, Listener] = vars(logging.getLogger(OURS)).setdefault("listeners", {})
    return found


def earlier_records(server: object) -> list[logging.LogRecord]:
    """What Dask keeps of a scheduler's, worker's or nanny's own logger, oldest first."""
    return list(getattr(getattr(server, "_deque_handler", None), "deque", ()))


def join(cluster: str, level: int, route: Route, earlier: Iterable[logging.LogRecord]) -> Listener:
    """Let this process's lines go by `route`, unless somebody hears them already: the scheduler, or another agent.

    `earlier`: what Dask kept of the time before.
    """
    known = listeners().get(cluster)
    if known is not None and known.pid == os.getpid():
        known.join(route)
        return known
    sender = LogSender(cluster, level)
    sender.start(route, earlier)
    return sender


class LogSender:
    """Brings lines by the first of its routes."""

    def __init__(self, cluster: str, level: int) -> None:
        self.pid = os.getpid()
        self._cluster, self._level = cluster, level
        self._routes: list[Route] = []
        self._lines = Lines(self._wake)
        self._tap = Tap(level, self._lines.hear)
        self._asked = 0
        """What the event loop was asked for and has not done: 2 to send, 1 to send in a while."""
        self._pause_s, self._rests_until_s = PAUSE_S, 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self, route: Route, earlier: Iterable[logging.LogRecord]) -> None:
        self._routes.append(route)
        listeners()[self._cluster] = self
        now_s = time.time()
        self._tap.attach()
        self._lines.hear_earlier(earlier, self._level, now_s)

    def join(self, route: Route) -> None:
        self._routes.append(route)

    def leave(self, route: Route) -> None:
        """Send what is left; with the last route it is over."""
        self.flush()
        if route in self._routes:
            self._routes.remove(route)
        if not self._routes:
            self._tap.detach()
            if listeners().get(self._cluster) is self:
                del listeners()[self._cluster]

    def flush(self) -> None:
        """On the event loop of the first route. Never raises."""
        with contextlib.suppress(Exception):  # the event loop would log it, and that would come back here
            self._send_all()

    def _send_all(self) -> None:
        self._asked = 0
        if self._timer is not None:
            self._timer.cancel()
        while self._routes and self._routes[0].is_free():
            lines, dropped = self._lines.take()
            if not lines and not dropped:
                return
            route = self._routes[0]
            n_dropped = dropped + sum(line[4] for line in lines)
            self._pause_s = min(self._pause_s * 2, MAX_PAUSE_S) if n_dropped else PAUSE_S
            self._rests_until_s = route.loop.time() + self._pause_s
            payload: dict[str, Any] = {"kind": "logs", "from": route.role, "dropped": dropped}
            payload["lines"] = [list(line) for line in lines]
            try:
                delay_ms = round(route.delay_s() * 1e3)
                payload["lines"] = [[max(at_ms + delay_ms, 0), *rest] for at_ms, *rest in lines]
                with self._lines.quiet():
                    # Nannies of one process cannot be told apart by what they log.
                    route.post({**payload, "worker": route.worker() if len(self._routes) == 1 else ""})
            except Exception:  # noqa: BLE001  # a closed connection
                self.lose(payload)
                return

    def lose(self, payload: dict[str, Any]) -> None:
        """This one did not arrive: its lines are counted with the next that does."""
        lines: list[list[Any]] = payload["lines"]
        self._lines.lose(len(lines) + sum(line[4] for line in lines) + payload["dropped"])

    def _wake(self, urgent: bool) -> None:
        """In the thread that logs."""
        wanted = 2 if urgent else 1
        if self._asked >= wanted or not self._routes:
            return
        self._asked = wanted
        self._routes[0].loop.call_soon_threadsafe(self._plan, urgent)

    def _plan(self, urgent: bool) -> None:
        """On the event loop: send now, or when it is time."""
        with contextlib.suppress(Exception):  # as above
            self._plan_to_send(urgent)

    def _plan_to_send(self, urgent: bool) -> None:
        if not self._routes or not self._asked:  # sent meanwhile
            return
        loop = self._routes[0].loop
        if self._timer is not None:
            self._timer.cancel()
        wait_s = max(self._rests_until_s - loop.time(), 0.0 if urgent else BATCH_S)
        if wait_s > 0:
            self._timer = loop.call_later(wait_s, self.flush)
        else:
            self.flush()

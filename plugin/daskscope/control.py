"""Closing the cluster: when it has been idle for as long as the settings say, or else the account's policy, or when the
server asks for it.

Idleness is Dask's own business (`Scheduler.idle_timeout`, looked at four times a second): it is told the timeout, and
does the closing. What is added is a warning in the notebooks of those connected, and the reason for the last message.
Nothing here raises outwards.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dask.utils import format_bytes, format_time
from tornado.ioloop import PeriodicCallback

from daskscope import wire
from daskscope.agent.texts import told
from daskscope.attempts import QUIET_S, warn
from daskscope.collect.clients import connected_clients
from daskscope.settings import Settings

if TYPE_CHECKING:
    from distributed import Scheduler

IDLE = "idle-timeout-exceeded"
"""In Dask's word."""
ASKED = "close-requested"
FAILED = "failure-to-start-"
"""So begins Dask's."""
CLOSING = ("Closing scheduler. Reason: %s", "Scheduler closing due to %s")
"""So begins the line that names the reason, in Dask of today and of 2024."""
LAST_LINES, MAX_REASON = 20, 200

WARN_S = 60.0
"""How long before an idle close its warning comes; half the timeout if that is shorter."""
FAREWELL_S = 1.0
"""Between the warning of a close that was asked for and the close: so long it may take to reach the notebooks."""
MIN_TICK_S, MAX_TICK_S = 0.25, 15.0
"""Between two looks at the idle time. Dask itself looks every quarter of a second."""

logger = logging.getLogger("distributed.daskscope")


class Closer:
    """Closes a scheduler as the settings allow; all but `heed` belongs to its event loop."""

    def __init__(self, scheduler: Scheduler, settings: Settings, now: Callable[[], float]) -> None:
        """`now` gives epoch seconds."""
        self._scheduler, self._settings, self._now = scheduler, settings, now
        self._loop = scheduler.loop
        self._page = ""
        self._quiet_until = 0.0
        self._asked = self._closing = False
        self._policy_s: float | None = None
        """The account's, as the server said last."""
        self._followed_s: float | None = None
        """The one that was looked at here."""
        self._timeout_s = settings.idle_timeout_s
        """After how long idleness this cluster is to close: the settings' word, or else the account's policy."""
        self._told_s: float | None = None
        """What Dask has been told from here: as long as it has that, nobody else has said otherwise."""
        self._warned_of: float | None = None
        """The stretch of idleness that was warned of, by its start."""
        self._tick_s = _tick_s(settings.idle_timeout_s or 0.0)
        self._timer = PeriodicCallback(self._look_now, self._tick_s * 1e3)

    def start(self) -> None:
        """Tell Dask the timeout of the settings, unless it has one of its own."""
        timeout_s = self._settings.idle_timeout_s
        if timeout_s is None:
            return
        try:
            self._keep_to(timeout_s, self._now())
        except Exception as error:  # noqa: BLE001  # host first
            warn("daskscope cannot close this cluster when idle: %s", told(error))

    def close(self) -> None:
        """No more looks. The timeout stays: with it the cluster was started."""
        self._timer.stop()

    @property
    def reason(self) -> str | None:
        """Why the scheduler closes, if that was our doing, its idle timeout's or because it failed; else None."""
        if self._closing:
            return ASKED
        # Dask does not pass the reason on; an idle timeout can be told from the clock.
        since_s, timeout_s = self._scheduler.idle_since, self._scheduler.idle_timeout
        return IDLE if since_s and timeout_s and self._now() - since_s >= timeout_s else self._failure()

    def _failure(self) -> str | None:
        """Dask's word for a failure that closes a scheduler. It stands in the log alone, among the last lines."""
        lines: Any = getattr(getattr(self._scheduler, "_deque_handler", None), "deque", ())
        said = [line for line in list(lines)[-LAST_LINES:] if str(line.msg).startswith(CLOSING) and line.args]
        reason = str(said[-1].args[0]) if said and isinstance(said[-1].args, tuple) else ""
        return reason[:MAX_REASON] if reason.startswith(FAILED) else None

    def heed(self, reply: wire.Reply) -> None:
        """Runs in the sender's thread: leaves a note, and wakes the loop to read it."""
        if not self._settings.remote_close:
            return
        is_new = reply.idle_timeout_s != self._policy_s
        self._policy_s = reply.idle_timeout_s
        if "close" in reply.wish and not self._asked:
            self._page, self._asked, is_new = reply.url, True, True
        if is_new:
            self._loop.add_callback(self._look_now)

    def look(self, now_s: float) -> None:
        """Close if that was asked for; warn of an idle close that is near. Comes again at any pace."""
        if self._asked:
            self._close_as_asked()
            return
        self._follow(now_s)
        if self._timeout_s is not None:
            self._mind_idleness(self._timeout_s, now_s)

    def _look_now(self) -> None:
        try:
            self.look(self._now())
        except Exception as error:  # noqa: BLE001  # host first
            if self._loop.time() >= self._quiet_until:
                self._quiet_until = self._loop.time() + QUIET_S
                warn("daskscope could not look after closing: %s", told(error))

    def _follow(self, now_s: float) -> None:
        """The account's policy, and what became of it, where nobody here has said how long this cluster may idle."""
        if self._policy_s == self._followed_s:
            return
        self._followed_s = self._policy_s
        if self._settings.idle_timeout_s is None and self._is_ours():
            self._keep_to(self._followed_s, now_s)

    def _is_ours(self) -> bool:
        """Whether Dask has what it was told from here, or nothing: a timeout of its own, or the user's word, stays."""
        return (self._scheduler.idle_timeout or None) == self._told_s

    def _keep_to(self, timeout_s: float | None, now_s: float) -> None:
        """From now on, however long it idles already. Dask would at once close who has been idle for long: then the
        warning comes first, and has its time."""
        self._timer.stop()
        self._timeout_s, self._warned_of = timeout_s, None
        if timeout_s is None:
            self._tell(None)
            return
        ahead_s, self._tick_s = _ahead_s(timeout_s), _tick_s(timeout_s)
        self._timer.callback_time = self._tick_s * 1e3
        if self._is_ours():
            since_s = self._idle_since_s()
            if since_s and now_s - since_s > timeout_s - ahead_s:
                self._tell(now_s - since_s + ahead_s)
                self._warn(since_s, timeout_s, now_s + ahead_s, now_s)
            else:
                self._tell(timeout_s)
        self._timer.start()

    def _tell(self, timeout_s: float | None) -> None:
        self._scheduler.idle_timeout = self._told_s = timeout_s

    def _mind_idleness(self, timeout_s: float, now_s: float) -> None:
        since_s = self._idle_since_s()
        if self._told_s is not None and since_s != self._warned_of and self._is_ours():
            self._tell(timeout_s)  # what it was told for the sake of a warning was of that stretch alone
        in_force_s = self._scheduler.idle_timeout  # Dask's own, or changed by the user since
        if not (since_s and in_force_s) or since_s == self._warned_of:
            return
        closes_at = since_s + in_force_s
        if closes_at - now_s <= _ahead_s(in_force_s) + self._tick_s:
            self._warn(since_s, in_force_s, closes_at, now_s)

    def _idle_since_s(self) -> float | None:
        # Asked anew: `idle_since` knows nothing of what came since Dask looked last.
        return self._scheduler.check_idle()

    def _warn(self, since_s: float, timeout_s: float, closes_at: float, now_s: float) -> None:
        """Once for each stretch of idleness."""
        self._warned_of = since_s
        scheduler = self._scheduler
        n_clients = len(connected_clients(scheduler))
        n_held = sum(prefix.states.get("memory", 0) for prefix in scheduler.task_prefixes.values())
        n_bytes = sum(state.nbytes for state in scheduler.workers.values())
        loss = f" Results held, which will be lost: {n_held} ({format_bytes(n_bytes)})." if n_held else ""
        self._say(
            f"This cluster has had nothing to do for {format_time(max(now_s - since_s, 0.0))} and closes itself in "
            f"{format_time(max(closes_at - now_s, 0.0))}, at {datetime.fromtimestamp(closes_at, UTC):%H:%M:%S} UTC "
            f"({self._whose()}: {format_time(timeout_s)}; clients connected: {n_clients}).{loss} Any task keeps it: "
            "client.submit(int). To let it idle, say client.run_on_scheduler(lambda dask_scheduler: "
            f"setattr(dask_scheduler, 'idle_timeout', None)), or start it with {self._otherwise()}."
        )

    def _whose(self) -> str:
        return "idle timeout, by the account's policy" if self._is_policy() else "idle timeout"

    def _otherwise(self) -> str:
        own = "daskscope.analytics.idle.timeout"
        return f"a {own} of its own, like 12h" if self._is_policy() else f"{own}: null"

    def _is_policy(self) -> bool:
        """Whether the timeout in force is the account's."""
        return self._settings.idle_timeout_s is None and self._is_ours()

    def _close_as_asked(self) -> None:
        if self._closing or self._scheduler.status.name in ("closing", "closed"):
            return
        self._closing = True
        # Before the warning, which may fail: nobody asks twice.
        self._loop.call_later(FAREWELL_S, self._end)
        where = f"{self._settings.server}/{self._page}" if self._settings.server else self._page
        self._say(f"This cluster closes now: somebody asked for it on the server. Who and why is on {where}.")

    async def _end(self) -> None:
        try:
            await self._scheduler.close(reason=ASKED)
        except Exception as error:  # noqa: BLE001  # host first
            warn("daskscope was asked to close this cluster and failed: %s", told(error))

    def _say(self, text: str) -> None:
        """A warning in the log, and by Dask's own topic for it in every client's process."""
        logger.warning("daskscope: %s", text)
        # As `distributed.worker.warn` does.
        self._scheduler.log_event("warn", {"message": pickle.dumps(text), "category": pickle.dumps(UserWarning)})


def _tick_s(timeout_s: float) -> float:
    """Between two looks, so that the warning comes in time."""
    return min(max(_ahead_s(timeout_s) / 4, MIN_TICK_S), MAX_TICK_S)


def _ahead_s(timeout_s: float) -> float:
    """How long before an idle close its warning comes."""
    return min(WARN_S, timeout_s / 2)

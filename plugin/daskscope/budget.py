"""What the plugin allows itself: above its limit it reports less often, then in less detail.

CPU time of its threads is added up over a window and judged at its end, so one slow moment is not a trend: the first
step needs two windows over the limit in a row. Steps lengthen the interval until it is six times the configured one,
or 60 s if that is longer; each one after that leaves out a level of detail. Windows well below the limit take the steps
back one by one, and wait the longer for it the oftener that has failed.
"""

from __future__ import annotations

import contextlib
import logging
import math

WINDOW_S, LEAST_VISITS = 60.0, 3
"""A window lasts so long, and so many visits: what is done once when a cluster starts does not matter in it."""
SLICE_S, SLICE_WEIGHT = 0.010, 4
"""What a visit takes of the event loop beyond so much counts so many times: the scheduler answers nobody meanwhile."""
LONGEST_S, LONGEST_FACTOR = 60.0, 6.0
"""The interval grows to the longer of so many seconds, and so many times the configured one."""
CALM = 0.4
"""A window that took less than this part of the limit could have had twice the visits."""
PATIENCE, MAX_PATIENCE = 3, 60
"""So many calm windows in a row take a step back. Doubled whenever that proves too early, up to the second."""
QUIET_S = 600.0
HELD_BACK = (
    "daskscope took %.2g %% of a core, its budget is %g %%: until it takes less it reports less often, and in less "
    "detail if that does not do."
)
BACK = "daskscope is within its budget of %g %% of a core again, and reports as usual."

logger = logging.getLogger("distributed.daskscope")


class Budget:
    """How far the plugin holds back. Pure: it is told what time it is, and what was spent.

    `limit_pct`: of one core, None for no limit; `n_levels`: levels of detail that there are to leave out.
    """

    def __init__(self, limit_pct: float | None, interval_s: float, n_levels: int) -> None:
        self._limit_pct, self._interval_s, self._n_levels = limit_pct, interval_s, n_levels
        self._longest_s = max(LONGEST_S, LONGEST_FACTOR * interval_s)
        self._n_doublings = math.ceil(math.log2(self._longest_s / interval_s))
        self._step = 0
        """Doublings of the interval, then levels of detail."""
        self._began_s: float | None = None
        self._n_visits = 0
        self._spent_s = self._besides_before_s = 0.0
        self._n_over = self._n_calm = 0
        self._patience, self._n_since_back = PATIENCE, MAX_PATIENCE
        self._quiet_until, self._has_told = -math.inf, False

    @property
    def detail(self) -> int:
        """Levels of detail to leave out, 0 to `n_levels`."""
        return max(self._step - self._n_doublings, 0)

    def pace_s(self, asked_s: float) -> float:
        """Seconds to the next message, where `asked_s` were asked for: never sooner."""
        if not self._step:
            return asked_s
        return max(asked_s, min(self._interval_s * 2.0 ** min(self._step, self._n_doublings), self._longest_s))

    def add(self, now_s: float, loop_s: float, besides_s: float) -> None:
        """One visit to the event loop: when it began (any clock that only goes forward), its CPU time, and what
        is spent besides, as a running total: the sender's thread, and what is charged between visits."""
        if self._limit_pct is None:
            return
        if self._began_s is None:
            self._begin(now_s, besides_s)
        elif now_s - self._began_s >= WINDOW_S and self._n_visits >= LEAST_VISITS:
            spent_s = self._spent_s + max(besides_s - self._besides_before_s, 0.0)
            before = self._step
            self._judge(100 * spent_s / (now_s - self._began_s), self._limit_pct, now_s)
            if self._step != before:  # this visit was of the old pace
                self._began_s = None
                return
            self._begin(now_s, besides_s)
        self._n_visits += 1
        self._spent_s += loop_s + (SLICE_WEIGHT - 1) * max(loop_s - SLICE_S, 0.0)

    def _begin(self, now_s: float, besides_s: float) -> None:
        self._began_s, self._besides_before_s = now_s, besides_s
        self._n_visits, self._spent_s = 0, 0.0

    def _judge(self, spent_pct: float, limit_pct: float, now_s: float) -> None:
        ratio, before = spent_pct / limit_pct, self._step
        self._n_since_back = min(self._n_since_back + 1, MAX_PATIENCE)
        self._n_over = self._n_over + 1 if ratio > 1 else 0
        self._n_calm = self._n_calm + 1 if ratio < CALM else 0
        if self._n_over >= (1 if self._step else 2):
            self._hold_back(ratio)
        elif self._n_calm >= self._patience and self._step:
            self._step -= 1
            self._n_calm = self._n_since_back = 0
        elif self._n_calm >= MAX_PATIENCE:
            self._patience = PATIENCE
        if bool(self._step) != bool(before):
            self._tell(spent_pct, limit_pct, now_s)

    def _hold_back(self, ratio: float) -> None:
        if self._n_since_back <= self._patience:
            self._patience, self._n_since_back = min(2 * self._patience, MAX_PATIENCE), MAX_PATIENCE
        if self._step < self._n_doublings:  # half as often, half the cost: as many doublings as it takes
            self._step = min(self._step + math.ceil(math.log2(ratio)), self._n_doublings)
        else:
            self._step = min(self._step + 1, self._n_doublings + self._n_levels)

    def _tell(self, spent_pct: float, limit_pct: float, now_s: float) -> None:
        """Now and then: a cluster at the edge may go there and back all day."""
        with contextlib.suppress(Exception):  # a log handler of the user's may raise
            if self._step and now_s >= self._quiet_until:
                self._quiet_until, self._has_told = now_s + QUIET_S, True
                logger.warning(HELD_BACK, spent_pct, limit_pct)
            elif not self._step and self._has_told:
                self._has_told = False
                logger.info(BACK, limit_pct)

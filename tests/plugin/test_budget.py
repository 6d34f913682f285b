"""The plugin's own budget: when it holds back, in which order, and when it stops to."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.budget import (
    CALM,
    LEAST_VISITS,
    LONGEST_FACTOR,
    LONGEST_S,
    MAX_PATIENCE,
    PATIENCE,
    QUIET_S,
    SLICE_S,
    SLICE_WEIGHT,
    WINDOW_S,
    Budget,
)

N_LEVELS = 6
TWO_WINDOWS = 13
"""Visits at 10 s, with the one that begins the third."""


@dataclass
class Host:
    """A scheduler with a clock of its own, whose plugin visits it at the pace that its budget says."""

    limit_pct: float | None = 1.0
    interval_s: float = 10.0
    cost_s: Callable[[int], float] = lambda detail: 0.0
    """Of one visit, at a level of detail: in the sender, but for a slice on the loop that is not too long."""
    now_s: float = 1e5
    sender_s: float = 3.0
    asked_s: float | None = None
    seen: list[tuple[float, float, int, float]] = field(default_factory=list)
    """Of each visit: when, the pace told, the level, what it cost."""

    def __post_init__(self) -> None:
        self.budget = Budget(self.limit_pct, self.interval_s, N_LEVELS)

    def visit(self) -> tuple[float, int]:
        pace_s, detail = self.budget.pace_s(self.asked_s or self.interval_s), self.budget.detail
        cost_s = self.cost_s(detail)
        loop_s = min(cost_s / 2, SLICE_S)
        self.sender_s += cost_s - loop_s
        self.budget.add(self.now_s, loop_s, self.sender_s)
        self.seen.append((self.now_s, pace_s, detail, cost_s))
        self.now_s += pace_s
        return pace_s, detail

    def run(self, for_s: float) -> list[tuple[float, int]]:
        """All pairs of pace and level that it went through, in turn."""
        until_s = self.now_s + for_s
        went: list[tuple[float, int]] = []
        while self.now_s < until_s:
            state = self.visit()
            if not went or went[-1] != state:
                went.append(state)
        return went

    def spent_pct(self, last_s: float) -> float:
        """Over so much time up to now."""
        since_s = self.now_s - last_s
        return 100 * sum(cost_s for at_s, _, _, cost_s in self.seen if at_s >= since_s) / last_s


def constant(cost_s: float) -> Callable[[int], float]:
    return lambda detail: cost_s


def test_a_cluster_within_its_budget_reports_as_configured() -> None:
    assert Host(cost_s=constant(0.05)).run(86_400) == [(10.0, 0)]


def test_what_a_start_takes_does_not_matter() -> None:
    host = Host(cost_s=constant(0.001), interval_s=0.1)
    host.budget.add(host.now_s, 0.1, host.sender_s + 0.1)  # who it is, the first connection
    assert host.run(3600) == [(0.1, 0)]


def test_one_slow_minute_does_not_matter() -> None:
    host = Host(cost_s=constant(0.002))
    host.run(600)
    for cost_s in (4.0, 0.3):
        host.cost_s = constant(cost_s)
        host.visit()
        host.cost_s = constant(0.002)
        assert host.run(600) == [(10.0, 0)]


def test_above_it_the_interval_doubles_as_often_as_it_takes() -> None:
    assert Host(cost_s=constant(0.15)).run(3600) == [(10.0, 0), (20.0, 0)]
    assert Host(cost_s=constant(0.35)).run(3600) == [(10.0, 0), (40.0, 0)]
    assert Host(cost_s=constant(0.55)).run(3600) == [(10.0, 0), (60.0, 0)]
    assert Host(cost_s=constant(0.006), interval_s=0.1).run(3600) == [(0.1, 0), (0.8, 0)]


def test_then_detail_goes_level_by_level_and_no_further() -> None:
    went = Host(cost_s=constant(0.9)).run(7200)
    assert went == [(10.0, 0), (60.0, 0), *((60.0, level) for level in range(1, N_LEVELS + 1))]


def test_detail_goes_no_further_than_it_takes() -> None:
    host = Host(cost_s=lambda detail: 0.9 if detail < 3 else 0.5)
    assert host.run(7200)[-1] == (60.0, 3)


@pytest.mark.parametrize("interval_s", [0.1, 1.0, 7.0, 10.0, 45.0, 60.0, 600.0, 3600.0])
def test_the_interval_grows_to_a_minute_or_six_times(interval_s: float) -> None:
    host = Host(interval_s=interval_s, cost_s=constant(2 * max(60.0, 6 * interval_s)))
    paces = [pace_s for pace_s, _ in host.run(80 * max(60.0, 6 * interval_s))]
    assert max(paces) == max(LONGEST_S, LONGEST_FACTOR * interval_s)
    assert paces == sorted(paces)


def test_it_comes_back_step_by_step() -> None:
    host = Host(cost_s=constant(3.0))
    host.run(7200)
    host.cost_s = constant(0.01)
    went = host.run(24 * 3600)
    assert went == [*((60.0, level) for level in range(N_LEVELS, -1, -1)), (40.0, 0), (20.0, 0), (10.0, 0)]


def test_not_far_below_it_stays_where_it_is() -> None:
    host = Host(cost_s=constant(0.15))
    host.run(600)
    host.cost_s = constant(20.0 / 100 * CALM * 1.01)
    assert host.run(86_400) == [(20.0, 0)]


def test_a_step_back_that_proves_too_early_waits_longer_the_next_time() -> None:
    """Cheap without two levels, dear with either: it must try, now and then."""
    host = Host(cost_s=lambda detail: 0.9 if detail < 2 else 0.001)
    host.run(12 * 3600)
    before = len(host.seen)
    host.run(86_400)
    levels = [detail for _, _, detail, _ in host.seen[before:]]
    n_changes = sum(a != b for a, b in pairwise(levels))
    assert set(levels) == {1, 2}
    window_s = max(WINDOW_S, LEAST_VISITS * 60)
    assert 2 <= n_changes <= 2 * math.ceil(86_400 / (MAX_PATIENCE * window_s))


def test_after_a_long_calm_it_is_as_patient_as_at_first() -> None:
    host = Host(cost_s=lambda detail: 0.9 if detail < 2 else 0.001)
    host.run(12 * 3600)
    host.cost_s = constant(0.001)
    host.run(7 * 86_400)
    host.cost_s = constant(0.15)
    host.run(600)
    host.cost_s = constant(0.001)
    began_s = host.now_s
    while host.visit() != (10.0, 0):
        assert host.now_s - began_s < (PATIENCE + 2) * WINDOW_S


def test_a_long_visit_to_the_loop_counts_for_more() -> None:
    def after(loop_s: float) -> float:
        budget = Budget(1.0, 10.0, N_LEVELS)
        for n in range(TWO_WINDOWS):
            budget.add(10.0 * n, loop_s, 0.0)
        return budget.pace_s(10.0)

    just_over_s = (0.1 + (SLICE_WEIGHT - 1) * SLICE_S) / SLICE_WEIGHT
    assert just_over_s < 0.1, "as a part of the time it would be within the budget"
    assert (after(just_over_s - 1e-4), after(just_over_s + 1e-4)) == (10.0, 20.0)
    assert after(SLICE_S) == 10.0


def test_what_the_sender_takes_counts() -> None:
    budget = Budget(1.0, 10.0, N_LEVELS)
    for n in range(TWO_WINDOWS):
        budget.add(10.0 * n, 0.0, 5.0 + 0.15 * n)
    assert budget.pace_s(10.0) == 20.0


def test_without_a_limit_nothing_changes() -> None:
    assert Host(limit_pct=None, cost_s=constant(9.0)).run(86_400) == [(10.0, 0)]


def test_the_slower_of_its_own_and_the_server_s_pace_holds() -> None:
    host = Host(cost_s=constant(0.15), asked_s=1.0)
    assert host.run(30)[-1] == (1.0, 0), "as asked, while it is within its budget"
    assert host.run(3600)[-1] == (20.0, 0)
    host.asked_s = 45.0
    assert host.visit() == (45.0, 0)


def test_it_says_when_it_begins_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "distributed.daskscope")
    host = Host(cost_s=constant(3.0))
    host.run(7200)
    host.cost_s = constant(0.01)
    host.run(24 * 3600)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "daskscope took 30 % of a core, its budget is 1 %: until it takes less it reports less often, and "
                    "in less detail if that does not do."),
        ("INFO", "daskscope is within its budget of 1 % of a core again, and reports as usual."),
    ]  # fmt: skip


def test_it_says_so_now_and_then_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "distributed.daskscope")
    host = Host()
    day_s, n_begun, before = 86_400.0, 0, 10.0
    end_s = host.now_s + day_s
    while host.now_s < end_s:  # dear at its usual pace, and free at any other: it goes to and fro
        host.cost_s = constant(0.2 if host.budget.pace_s(10.0) == 10.0 else 0.0)
        pace_s, _ = host.visit()
        n_begun, before = n_begun + (before == 10.0 < pace_s), pace_s
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert 2 <= len(warnings) <= min(n_begun, day_s / QUIET_S)
    assert len(caplog.records) - len(warnings) in (len(warnings) - 1, len(warnings)), "each has its end"


def test_a_log_handler_that_raises_stops_nothing() -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("a handler of the user's")

    handler, theirs = Broken(), logging.getLogger("distributed.daskscope")
    theirs.addHandler(handler)
    try:
        assert Host(cost_s=constant(0.15)).run(3600)[-1] == (20.0, 0)
    finally:
        theirs.removeHandler(handler)


intervals = st.floats(0.1, 3600)
usual_intervals = st.floats(1, 60)
limits = st.floats(0.01, 100)
costs = st.floats(0.0, 1e3, allow_subnormal=False)


@given(intervals, limits, st.lists(st.tuples(costs, st.integers(0, 12)), max_size=30), st.none() | st.floats(1, 3600))
def test_whatever_it_costs_pace_and_level_stay_within_their_bounds(
    interval_s: float, limit_pct: float, phases: list[tuple[float, int]], asked_s: float | None
) -> None:
    host = Host(limit_pct, interval_s, asked_s=asked_s)
    told_s, longest_s = asked_s or interval_s, max(LONGEST_S, LONGEST_FACTOR * interval_s)
    for cost_s, n_windows in phases:
        host.cost_s = constant(cost_s)
        for _ in range(n_windows * LEAST_VISITS):
            pace_s, detail = host.visit()
            assert told_s <= pace_s <= max(told_s, longest_s)
            assert 0 <= detail <= N_LEVELS
            assert not detail or pace_s >= longest_s, "detail goes only where the interval is as long as it gets"


@given(usual_intervals, limits, st.floats(0.0, 1.0), st.integers(0, N_LEVELS))
def test_where_rarer_or_briefer_messages_can_do_it_is_within_its_budget_before_long(
    interval_s: float, limit_pct: float, part: float, enough: int
) -> None:
    """`part`: of what it may cost at the longest interval, once `enough` levels are left out; before, it is dearer."""
    longest_s = max(LONGEST_S, LONGEST_FACTOR * interval_s)
    fits_s = limit_pct / 100 * longest_s
    host = Host(limit_pct, interval_s, lambda detail: part * fits_s if detail >= enough else 4 * fits_s)
    window_s = max(WINDOW_S, LEAST_VISITS * longest_s)
    host.run((6 + N_LEVELS) * 2 * window_s)
    settled = len(host.seen)
    host.run(2 * MAX_PATIENCE * window_s)
    over = 0
    for before, now in pairwise(host.seen[settled:]):
        assert now[2] >= enough - 1, "it tries one level more, and only one"
        over += now[2] == enough - 1 < before[2]
    assert over <= 2 + math.log2(MAX_PATIENCE), "and that ever more seldom"
    if not over:
        spent_s = host.spent_pct(2 * MAX_PATIENCE * window_s)
        assert spent_s <= limit_pct * (1 + 1 / MAX_PATIENCE), "but for where windows begin and end"


@given(usual_intervals, limits, costs, costs)
def test_what_costs_more_is_never_told_oftener_or_in_more_detail(
    interval_s: float, limit_pct: float, one_s: float, other_s: float
) -> None:
    window_s = max(WINDOW_S, LEAST_VISITS * max(LONGEST_S, LONGEST_FACTOR * interval_s))
    cheap, dear = (
        Host(limit_pct, interval_s, constant(cost_s)).run((6 + N_LEVELS) * 2 * window_s)[-1]
        for cost_s in sorted((one_s, other_s))
    )
    assert cheap <= dear


@given(usual_intervals, limits, costs)
def test_a_steady_cost_leads_to_a_steady_pace(interval_s: float, limit_pct: float, cost_s: float) -> None:
    host = Host(limit_pct, interval_s, constant(cost_s))
    window_s = max(WINDOW_S, LEAST_VISITS * max(LONGEST_S, LONGEST_FACTOR * interval_s))
    went = host.run((6 + N_LEVELS) * 2 * window_s)
    assert went == sorted(went), "it never steps back in vain"
    assert len(host.run(100 * window_s)) == 1

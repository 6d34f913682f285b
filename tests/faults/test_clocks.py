"""What is told of times and durations is true, whatever the scheduler's clock shows."""

import pytest

from tests.faults.clocks import CLOCKS, LIFE_S, RIGHT_S, run


@pytest.mark.parametrize(
    ("n", "interval_s"), [(1, 300.0), pytest.param(20, 60.0, marks=[pytest.mark.long, pytest.mark.timeout(3600)])]
)
def test_no_clock_makes_a_duration_negative_or_a_time_wrong(n: int, interval_s: float) -> None:
    found = run(n, interval_s=interval_s)
    assert (found["negative_durations"], found["out_of_order"], found["states"]) == (0, 0, 1)
    assert found["worst_error_s"] <= RIGHT_S
    assert found["messages"] == len(CLOCKS) * (LIFE_S / interval_s + 1)

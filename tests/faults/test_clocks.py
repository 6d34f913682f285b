"""What is told of times and durations is true, whatever the scheduler's clock shows."""

import pytest

from tests.faults.clocks import CLOCKS, N_MESSAGES, RIGHT_S, run


@pytest.mark.parametrize("n", [1, pytest.param(50, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_no_clock_makes_a_duration_negative_or_a_time_wrong(n: int) -> None:
    found = run(n)
    assert (found["negative_durations"], found["out_of_order"], found["states"]) == (0, 0, 1)
    assert found["worst_error_s"] <= RIGHT_S
    assert found["messages"] == len(CLOCKS) * (N_MESSAGES + 1)

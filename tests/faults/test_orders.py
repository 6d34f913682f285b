"""One final state of a cluster, whatever came first."""

import pytest

from tests.faults.orders import run, story


@pytest.mark.parametrize("n", [3, pytest.param(1000, marks=[pytest.mark.long, pytest.mark.timeout(7200)])])
def test_any_order_gives_one_state(n: int) -> None:
    found = run(n)
    assert (found["orders"], found["states"], found["lost"], found["doubled"]) == (n, 1, 0, 0)
    assert found["messages"] == len(story())
    assert found["posts"] > n * found["messages"]

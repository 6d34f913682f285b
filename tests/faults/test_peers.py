"""Others in the same proxy: what they send is counted, so what is missing is theirs."""

from __future__ import annotations

import pytest

from tests.faults.peers import PEERS, beside
from tests.faults.rows.b1_refused import N_MISSED


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, object]]:
    return {name: dict(figures) for name, figures in beside("B1", short=True).items()}


@pytest.mark.parametrize("name", PEERS)
def test_events_sent_while_the_server_listens_arrive_once(told: dict[str, dict[str, object]], name: str) -> None:
    found = told[name]
    if found["version"] == "not installed":
        pytest.skip(f"{name} is not installed: make faults installs it")
    assert found["tried"] == 2 * N_MISSED
    assert isinstance(found["lost"], int)
    assert 0 <= found["lost"] <= N_MISSED
    assert found["came_again"] == 0

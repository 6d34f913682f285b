import pytest

from daskscope_lambdas.ports import Policies
from daskscope_lambdas.wiring import Adapters


@pytest.fixture
def policies(world: Adapters) -> Policies:
    return world.policies


def test_at_first_all_is_kept_for_ever(policies: Policies) -> None:
    assert policies.retention("acme") == {}
    assert list(policies.accounts()) == []


def test_what_is_set_takes_the_place_of_what_was(policies: Policies) -> None:
    policies.set_retention("acme", {"logs": 30, "tasks": 7})
    policies.set_retention("acme", {"logs": 90})
    policies.set_retention("globex", {"events": 1})
    assert policies.retention("acme") == {"logs": 90}
    assert policies.retention("globex") == {"events": 1}
    assert list(policies.accounts()) == ["acme", "globex"]


def test_an_account_that_wants_nothing_more_is_not_told(policies: Policies) -> None:
    policies.set_retention("acme", {"logs": 30})
    policies.set_retention("acme", {})
    policies.set_retention("nobody", {})
    assert policies.retention("acme") == {}
    assert list(policies.accounts()) == []


@pytest.mark.parametrize("days", [0, -1])
def test_less_than_a_day_is_refused(policies: Policies, days: int) -> None:
    policies.set_retention("acme", {"logs": 30})
    with pytest.raises(ValueError, match="1 day or more"):
        policies.set_retention("acme", {"tasks": 5, "logs": days})
    assert policies.retention("acme") == {"logs": 30}

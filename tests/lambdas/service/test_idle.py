from typing import Any

import pytest

from daskscope_lambdas.ports import StoreError, Subject
from daskscope_lambdas.service.idle import IdlePolicy
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({}, None),
        ({"timeout_s": 3600}, 3600),
        ({"timeout_s": None}, None),
        ({"timeout_s": 3600, "users": {"ann": 600.5}}, 600.5),
        ({"timeout_s": 3600, "users": {"ann": None}}, None),
        ({"timeout_s": 3600, "users": {"bob": 600}, "clusters": {"8": 60, "70": 61}}, 3600),
        ({"timeout_s": 3600, "users": {"ann": 600}, "clusters": {"7": 60}}, 60),
        ({"timeout_s": 3600, "users": {"ann": 600}, "clusters": {"7": None}}, None),
        ({"users": {"ann": 600}, "clusters": {}}, 600),
        ({"clusters": {"7": 60}}, 60),
    ],
)
def test_the_cluster_goes_before_its_user_and_that_before_all(
    adapters: LocalAdapters, wish: dict[str, Any], told: float | None
) -> None:
    adapters.policies.set_wish("acme", "idle", wish)
    policy = IdlePolicy(adapters.policies, adapters.clock)
    assert policy.timeout_s("acme", 7, "ann") == told
    assert policy.timeout_s("globex", 7, "ann") is None


def test_of_a_cluster_that_is_nobodys_yet_what_is_said_of_all_counts(adapters: LocalAdapters) -> None:
    adapters.policies.set_wish("acme", "idle", {"timeout_s": 3600, "users": {"None": 60}})
    assert IdlePolicy(adapters.policies, adapters.clock).timeout_s("acme", 7, None) == 3600


def test_a_change_is_known_within_a_minute(adapters: LocalAdapters, clock: FakeClock) -> None:
    policy = IdlePolicy(adapters.policies, clock)
    assert policy.timeout_s("acme", 7, "ann") is None
    adapters.policies.set_wish("acme", "idle", {"timeout_s": 60})
    clock.advance(59.5)
    assert policy.timeout_s("acme", 7, "ann") is None
    clock.advance(0.5)
    assert policy.timeout_s("acme", 7, "ann") == 60
    adapters.policies.set_wish("acme", "idle", {})
    clock.advance(60)
    assert policy.timeout_s("acme", 7, "ann") is None


def test_a_store_that_fails_changes_nothing(
    adapters: LocalAdapters, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def throttled(account: str, subject: Subject) -> dict[str, Any]:
        raise StoreError("throttled")

    adapters.policies.set_wish("acme", "idle", {"timeout_s": 60})
    policy = IdlePolicy(adapters.policies, clock)
    assert policy.timeout_s("acme", 7, None) == 60
    monkeypatch.setattr(adapters.policies, "wish", throttled)
    clock.advance(86_400)
    assert policy.timeout_s("acme", 7, None) == 60
    assert policy.timeout_s("globex", 7, None) is None
    assert "throttled" in caplog.text

from collections.abc import Callable
from typing import get_args

import pytest

from daskscope_lambdas.ports import Policies, Subject
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters


@pytest.fixture
def policies(world: Adapters) -> Policies:
    return world.policies


@pytest.mark.parametrize("subject", get_args(Subject))
def test_at_first_nobody_wants_anything(policies: Policies, subject: Subject) -> None:
    assert policies.wish("acme", subject) == {}
    assert list(policies.accounts()) == []


def test_what_is_set_takes_the_place_of_what_was(policies: Policies) -> None:
    policies.set_wish("acme", "retention", {"logs": 30, "tasks": 7})
    policies.set_wish("acme", "retention", {"logs": 90})
    policies.set_wish("globex", "retention", {"events": 1})
    assert policies.wish("acme", "retention") == {"logs": 90}
    assert policies.wish("globex", "retention") == {"events": 1}
    assert list(policies.accounts()) == ["acme", "globex"]


def test_each_subject_is_by_itself(policies: Policies) -> None:
    told = {"timeout_s": 1800.5, "users": {"añn@x.org": None}, "clusters": {"12": 60}}
    policies.set_wish("acme", "idle", told)
    policies.set_wish("acme", "reports", {"public": "deny", "keep_days": None})
    policies.set_wish("acme", "retention", {"logs": 30})
    policies.set_wish("acme", "retention", {})
    assert policies.wish("acme", "idle") == told
    assert policies.wish("acme", "reports") == {"public": "deny", "keep_days": None}
    assert policies.wish("acme", "retention") == {}
    assert list(policies.accounts()) == ["acme"]


def test_an_account_that_wants_nothing_more_is_not_told(policies: Policies) -> None:
    policies.set_wish("acme", "retention", {"logs": 30})
    policies.set_wish("acme", "idle", {"timeout_s": 60})
    for subject in get_args(Subject):
        policies.set_wish("acme", subject, {})
        policies.set_wish("nobody", subject, {})
    assert [policies.wish("acme", subject) for subject in get_args(Subject)] == [{}, {}, {}]
    assert list(policies.accounts()) == []


def test_who_sets_one_subject_undoes_no_other(connect_again: Callable[[], Adapters]) -> None:
    """Not even at the same time."""
    subjects: tuple[Subject, ...] = get_args(Subject)
    every = [connect_again().policies for _ in subjects]

    def set_all(told: dict[str, int]) -> list[dict[str, int]]:
        assert race(len(subjects), lambda n: every[n].set_wish("acme", subjects[n], told)) == [None] * len(subjects)
        return [every[0].wish("acme", subject) for subject in subjects]

    for told in ({"one": 1}, {}, {"two": 2}):
        assert set_all(told) == [told] * len(subjects)
        assert list(every[0].accounts()) == (["acme"] if told else [])

from collections.abc import Callable
from dataclasses import replace

import pytest

from daskscope_lambdas.ports import Membership, Missing, Taken, Users
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters

ANN = Membership(account="acme", user="ann", role="member", added_at=100.5, added_by="bob@x.org")


@pytest.fixture
def users(world: Adapters) -> Users:
    return world.users


def test_a_name_is_claimed_once(users: Users) -> None:
    assert not users.is_claimed("ann")
    users.claim("ann", 100.5)
    with pytest.raises(Taken):
        users.claim("ann", 200.0)
    assert users.is_claimed("ann")
    assert not users.is_claimed("Ann")


def test_one_of_many_who_want_a_name_gets_it(connect_again: Callable[[], Adapters]) -> None:
    every = [connect_again().users for _ in range(16)]
    outcomes = race(16, lambda n: every[n].claim("ann", float(n)))
    assert outcomes.count(None) == 1
    assert sum(isinstance(outcome, Taken) for outcome in outcomes) == 15


def test_who_was_put_is_found_and_may_become_something_else(users: Users) -> None:
    users.put(ANN)
    assert users.find("acme", "ann") == ANN
    admin = replace(ANN, role="admin", added_at=200.25, added_by="ann")
    users.put(admin)
    assert users.find("acme", "ann") == admin
    assert list(users.list("acme")) == list(users.of("ann")) == [admin]


@pytest.mark.parametrize(("account", "user"), [("acme", "bob"), ("globex", "ann"), ("acme", "Ann"), ("", "")])
def test_nobody_else_is_found(users: Users, account: str, user: str) -> None:
    users.put(ANN)
    with pytest.raises(Missing):
        users.find(account, user)


def test_an_account_lists_its_people_and_a_person_their_accounts(users: Users) -> None:
    for account, user in [("acme", "cy"), ("globex", "ann"), ("acme", "Zoe"), ("acme", "ann"), ("acme-2", "ann")]:
        users.put(replace(ANN, account=account, user=user))
    assert [each.user for each in users.list("acme")] == ["Zoe", "ann", "cy"]
    assert [each.account for each in users.of("ann")] == ["acme", "acme-2", "globex"]
    assert list(users.list("nobody")) == list(users.of("nobody")) == []


def test_accounts_that_have_people_are_listed(users: Users) -> None:
    assert list(users.accounts()) == []
    for account, user in [("globex", "ann"), ("acme", "ann"), ("acme", "cy")]:
        users.put(replace(ANN, account=account, user=user))
    assert list(users.accounts()) == ["acme", "globex"]
    users.forget("globex", ANN.added_at - 1)
    assert list(users.accounts()) == ["acme", "globex"]
    users.forget("globex", ANN.added_at)
    assert list(users.accounts()) == ["acme"]


def test_who_is_removed_is_in_that_account_no_more(users: Users) -> None:
    other = replace(ANN, account="globex")
    users.put(ANN)
    users.put(other)
    users.remove("acme", "ann")
    users.remove("acme", "ann")
    users.remove("acme", "nobody")
    with pytest.raises(Missing):
        users.find("acme", "ann")
    assert list(users.list("acme")) == []
    assert list(users.of("ann")) == [other]
    users.put(ANN)
    assert list(users.of("ann")) == [ANN, other]


def test_both_lists_agree_whoever_puts_and_removes_at_once(connect_again: Callable[[], Adapters]) -> None:
    every = [connect_again().users for _ in range(8)]
    for _ in range(3):
        outcomes = race(8, lambda n: every[n].remove("acme", "ann") if n % 2 else every[n].put(ANN))
        assert outcomes == [None] * 8
        assert list(every[0].list("acme")) == list(every[0].of("ann"))
    every[0].put(ANN)
    assert list(every[0].of("ann")) == [ANN]


def test_a_forgotten_account_has_nobody_but_who_came_after(users: Users) -> None:
    users.claim("ann", 1.0)
    late, other = replace(ANN, user="late", added_at=200.25), replace(ANN, account="globex")
    for each in (ANN, late, other):
        users.put(each)
    users.forget("acme", 200.0)
    users.forget("acme", 200.0)
    assert list(users.list("acme")) == [late]
    assert list(users.of("ann")) == [other]
    assert users.is_claimed("ann")


def test_all_of_many_are_listed(users: Users) -> None:
    every = [replace(ANN, user=f"u{n:03}") for n in range(120)]
    for each in reversed(every):
        users.put(each)
    assert list(users.list("acme")) == every

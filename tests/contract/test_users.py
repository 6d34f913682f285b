from collections.abc import Callable
from dataclasses import replace

import pytest

from daskscope_lambdas.ports import Conflict, Membership, Missing, Taken, Users
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters

ANN = Membership(account="acme", user="ann", role="member", added_at=100.5, added_by="bob@x.org")


@pytest.fixture
def users(world: Adapters) -> Users:
    return world.users


def test_a_name_is_claimed_once(users: Users) -> None:
    assert users.claimed("ann") is None
    users.claim("ann", 100.5)
    with pytest.raises(Taken):
        users.claim("ann", 200.0)
    assert users.claimed("ann") == "ann"
    assert users.claimed("an") is None


def test_names_that_differ_by_case_alone_are_one(users: Users) -> None:
    users.claim("Ann@X.org", 100.5)
    for name in ("ann@x.org", "ANN@X.ORG", "Ann@X.org"):
        with pytest.raises(Taken):
            users.claim(name, 200.0)
        assert users.claimed(name) == "Ann@X.org"


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


def test_a_role_is_of_who_is_there(users: Users) -> None:
    users.put(ANN)
    users.set_role("acme", "ann", "viewer")
    assert list(users.list("acme")) == list(users.of("ann")) == [replace(ANN, role="viewer")]
    users.remove("acme", "ann")
    with pytest.raises(Missing):
        users.set_role("acme", "ann", "admin")
    assert list(users.list("acme")) == list(users.of("ann")) == []


def test_the_last_admin_stays_one_but_where_that_is_meant(users: Users) -> None:
    ada = replace(ANN, user="ada", role="admin")
    users.put(ANN)
    users.put(ada)
    users.put(replace(ada, account="globex"))
    for way in (lambda: users.set_role("acme", "ada", "viewer"), lambda: users.remove("acme", "ada")):
        with pytest.raises(Conflict):
            way()
    users.set_role("acme", "ada", "admin")
    assert users.find("acme", "ada") == ada
    users.set_role("acme", "ann", "admin")
    users.set_role("acme", "ada", "viewer")
    users.set_role("acme", "ann", "member", last_too=True)
    users.remove("globex", "ada", last_too=True)
    assert [(each.user, each.role) for each in users.list("acme")] == [("ada", "viewer"), ("ann", "member")]
    assert list(users.list("globex")) == []


def test_of_admins_who_take_it_from_each_other_at_once_one_stays(connect_again: Callable[[], Adapters]) -> None:
    every = [connect_again().users for _ in range(4)]
    for _ in range(4):
        for n in range(4):
            every[0].put(replace(ANN, user=f"u{n}", role="admin"))

        def take(n: int) -> None:
            if n % 2:
                every[n].remove("acme", f"u{n}")
            else:
                every[n].set_role("acme", f"u{n}", "member")

        race(4, take)
        assert any(each.role == "admin" for each in every[0].list("acme"))


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
    assert users.claimed("ann") == "ann"


def test_all_of_many_are_listed(users: Users) -> None:
    every = [replace(ANN, user=f"u{n:03}") for n in range(120)]
    for each in reversed(every):
        users.put(each)
    assert list(users.list("acme")) == every

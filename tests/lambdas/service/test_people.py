import pytest

from daskscope.errors import Conflict, NotFound, PermissionDenied
from daskscope_lambdas.service.people import People, checked_user
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters


@pytest.fixture
def people(adapters: LocalAdapters, clock: FakeClock) -> People:
    return People(adapters.users, clock)


@pytest.mark.parametrize("user", ["a", "Ann", "ann.b_c@example.org", "1-2+3", "x" * 64])
def test_what_may_be_a_name(user: str) -> None:
    assert checked_user(user) == user


@pytest.mark.parametrize("user", ["", ".ann", "@ann", "a b", "añn", "a/b", "ann\n", "x" * 65, "<b>"])
def test_what_is_none(user: str, people: People) -> None:
    with pytest.raises(ValueError, match="1 to 64 of A-Z"):
        checked_user(user)
    with pytest.raises(ValueError, match="1 to 64 of A-Z"):
        people.claim(user)
    with pytest.raises(ValueError, match="1 to 64 of A-Z"):
        people.put("acme", user, "member", "root")
    with pytest.raises(NotFound):
        people.find("acme", user)


def test_a_name_is_one_persons_whatever_becomes_of_them(people: People) -> None:
    people.claim("ann")
    people.join("acme", "ann", "member", "ada")
    people.remove("acme", "ann")
    with pytest.raises(Conflict, match="The name ann is taken"):
        people.claim("ann")


def test_nobody_takes_a_name_that_looks_like_another_s(people: People) -> None:
    people.claim("Ann")
    for name in ("ann", "ANN"):
        with pytest.raises(Conflict, match=f"The name {name} is taken"):
            people.claim(name)
    assert people.put("acme", "ann", "member", "root").user == people.spelled("aNN") == "Ann"
    assert people.find("acme", "Ann").role == "member"
    assert people.spelled("Bob") == "Bob"


def test_who_is_put_into_an_account_has_their_name(people: People) -> None:
    people.put("acme", "ann", "member", "root")
    people.put("globex", "ann", "viewer", "root")
    with pytest.raises(Conflict):
        people.claim("ann")
    assert [(each.account, each.role) for each in people.accounts("ann")] == [("acme", "member"), ("globex", "viewer")]


def test_who_is_in_an_account_is_not_made_another_by_an_invitation(people: People) -> None:
    people.put("acme", "ada", "admin", "root")
    with pytest.raises(Conflict, match="ada is in account acme already, as admin"):
        people.join("acme", "ada", "viewer", "bob")
    assert people.find("acme", "ada").role == "admin"


def test_an_invitation_of_who_is_no_admin_any_more_is_good_no_more(people: People) -> None:
    people.put("acme", "ada", "admin", "root")
    people.put("acme", "bob", "admin", "root")
    people.check_inviter("acme", "ada")
    people.check_inviter("acme", "token ci")
    people.check_inviter("acme", "operator root")
    people.change("acme", "ada", "member")
    with pytest.raises(PermissionDenied, match="ada, who sent the invitation, is no admin of acme any more"):
        people.check_inviter("acme", "ada")
    with pytest.raises(PermissionDenied):
        people.check_inviter("globex", "bob")


def test_an_account_keeps_an_admin_unless_the_operator_means_it(people: People) -> None:
    people.put("acme", "ada", "admin", "root")
    people.put("acme", "ann", "member", "root")
    people.put("globex", "bob", "admin", "root")
    for way in (lambda: people.remove("acme", "ada"), lambda: people.change("acme", "ada", "viewer")):
        with pytest.raises(Conflict, match="ada is the last admin of account acme"):
            way()
    assert people.remove("acme", "ann").role == "member"
    assert people.change("acme", "ada", "viewer", last_too=True).role == "viewer"
    assert people.remove("globex", "bob", last_too=True).role == "admin"


def test_when_somebody_came_stands_whatever_they_become(people: People, clock: FakeClock) -> None:
    came = people.put("acme", "ann", "member", "root")
    clock.advance(60)
    assert people.change("acme", "ann", "admin").added_at == came.added_at

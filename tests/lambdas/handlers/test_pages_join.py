"""Coming into an account by an invitation."""

import re
from typing import NoReturn

import pytest

from daskscope_lambdas.handlers import house
from daskscope_lambdas.ports import Role, StoreError
from daskscope_lambdas.service.people import People
from daskscope_lambdas.service.tickets import invitation
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.browsers import Browser, link, person


def invited(world: LocalAdapters, role: Role = "member", user: str | None = None, by: str = "operator root") -> str:
    return "/" + invitation(world.tickets, world.clock, "acme", role, by, user=user).url


def csrf(browser: Browser) -> str:
    """Of the page that it is on."""
    (found,) = set(re.findall('name="csrf" value="([^"]*)"', browser.body))
    return found


def roles(world: LocalAdapters, account: str = "acme") -> dict[str, str]:
    return {each.user: each.role for each in world.users.list(account)}


def test_somebody_new_takes_a_name_and_is_signed_in(world: LocalAdapters) -> None:
    browser = Browser()
    assert browser.get(invited(world))["statusCode"] == 200
    assert "<strong>operator root</strong> invites you as <strong>member</strong>" in browser.body
    answer = browser.fill("/join", user=" ann ")
    assert (answer["statusCode"], answer["headers"]["Location"]) == (303, "acme/analytics")
    assert roles(world) == {"ann": "member"}
    assert world.users.claimed("ann") == "ann"
    assert "member of acme" in browser.get("/acme/analytics")["body"]
    assert len(list(world.objects.list("open/audit/"))) == 1


def test_to_look_at_an_invitation_is_not_to_take_it(world: LocalAdapters) -> None:
    address = invited(world)
    for _ in range(3):
        assert Browser().get(address)["statusCode"] == 200
    browser = Browser()
    browser.get(address)
    assert browser.fill("/join", user="ann")["statusCode"] == 303
    late = Browser().post("/join", {"code": address.partition("=")[2], "user": "bob"})
    assert (late["statusCode"], roles(world)) == (404, {"ann": "member"})
    assert "was used, or has expired" in Browser().get(address)["body"]


def test_somebody_who_is_here_joins_as_who_they_are(world: LocalAdapters) -> None:
    bob = person(world, "bob", beta="viewer")
    session = dict(bob.cookies)
    bob.get(invited(world, "admin"))
    assert "Join as bob" in bob.body
    assert bob.fill("/join")["statusCode"] == 303
    assert (roles(world), bob.cookies) == ({"bob": "admin"}, session)
    assert "admin of acme" in bob.get("/acme/analytics")["body"]


def test_an_invitation_of_somebody_waits_until_they_are_signed_in(world: LocalAdapters) -> None:
    People(world.users, world.clock).put("beta", "bob", "member", "test")
    address, browser = invited(world, user="bob"), Browser()
    browser.get(address)
    assert "sign in as bob" in browser.body
    unsent = browser.post("/join", {"code": address.partition("=")[2]})
    assert unsent["statusCode"] == 401, "the name is somebody's: a link does not make one them"
    browser.get(f"/login?next={address[1:].replace('?', '%3F').replace('=', '%3D')}")
    code = link(world.tickets, world.clock, "beta", "bob").partition("=")[2]
    answer = browser.post("/login", {"code": code, "next": address[1:]})
    assert answer["headers"]["Location"] == address[1:]
    browser.get(address)
    assert browser.fill("/join")["statusCode"] == 303
    assert roles(world) == {"bob": "member"}


def test_an_invitation_of_somebody_new_gives_them_that_name(world: LocalAdapters) -> None:
    browser = Browser()
    browser.get(invited(world, user="ann"))
    assert browser.fill("/join", user="eve")["statusCode"] == 303
    assert roles(world) == {"ann": "member"}


def test_nobody_joins_on_another_s_invitation(world: LocalAdapters) -> None:
    eve = person(world, "eve", beta="member")
    address = invited(world, user="ann")
    eve.get(address)
    assert "It is for ann, and you are signed in as eve: sign out" in eve.body
    assert "Join as" not in eve.body
    answer = eve.post("/join", {"code": address.partition("=")[2], "csrf": csrf(eve)})
    assert (answer["statusCode"], roles(world)) == (403, {})
    assert "is ann&#39;s, and you are signed in as eve" in answer["body"]


@pytest.mark.parametrize(
    ("typed", "status", "says"),
    [
        ("", 422, "no user name"),
        ("-ann", 422, "no user name"),
        ("ann smith", 422, "no user name"),
        ("<b>", 422, "&lt;b&gt;"),
        ("a" * 65, 422, "1 to 64"),
        ("bob", 409, "The name bob is taken"),
    ],
)
def test_after_a_name_that_cannot_be_had_the_invitation_is_good(
    world: LocalAdapters, typed: str, status: int, says: str
) -> None:
    People(world.users, world.clock).put("beta", "bob", "member", "test")
    browser = Browser()
    browser.get(invited(world))
    answer = browser.fill("/join", user=typed)
    assert (answer["statusCode"], answer["cookies"]) == (status, [])
    assert says in answer["body"]
    assert browser.fill("/join", user="ann")["statusCode"] == 303
    assert roles(world) == {"ann": "member"}


def test_who_is_in_the_account_stays_what_they_are(world: LocalAdapters) -> None:
    ann = person(world, "ann", acme="admin")
    ann.get(invited(world, "viewer"))
    answer = ann.fill("/join")
    assert (answer["statusCode"], roles(world)) == (409, {"ann": "admin"})
    assert "in account acme already, as admin" in answer["body"]


def test_an_invitation_falls_with_who_sent_it(world: LocalAdapters) -> None:
    person(world, "ann", acme="admin")
    address, browser = invited(world, by="ann"), Browser()
    world.users.remove("acme", "ann", last_too=True)
    browser.get(address)
    assert browser.fill("/join", user="bob")["statusCode"] == 403
    assert roles(world) == {}


def test_a_site_s_token_is_nobody_who_could_join(world: LocalAdapters) -> None:
    browser = Browser()
    browser.get(link(world.tickets, world.clock, "beta"))
    browser.fill("/login")
    address = invited(world)
    browser.get(address)
    assert "It is for a person, and you are signed in as" in browser.body
    assert "Join as" not in browser.body
    assert browser.post("/join", {"code": address.partition("=")[2], "csrf": csrf(browser)})["statusCode"] == 403
    assert roles(world) == {}


def test_it_ends_after_a_week(world: LocalAdapters, clock: FakeClock) -> None:
    address = invited(world)
    clock.advance(7 * 86_400 - 1)
    house.gate.cache_clear()
    assert Browser().get(address)["statusCode"] == 200
    clock.advance(1)
    assert Browser().get(address)["statusCode"] == 404


def fails(*_: object, **__: object) -> NoReturn:
    raise StoreError("The disk is full.")


def test_what_cannot_be_written_down_is_not_begun(world: LocalAdapters, monkeypatch: pytest.MonkeyPatch) -> None:
    browser, address = Browser(), invited(world)
    browser.get(address)
    with monkeypatch.context() as patched:
        patched.setattr(type(world.objects), "put_new", fails)
        assert browser.fill("/join", user="ann")["statusCode"] == 500
    assert (world.users.claimed("ann"), world.tokens.list("acme")) == (None, [])
    browser.get(address)
    assert browser.fill("/join", user="ann")["statusCode"] == 303
    assert roles(world) == {"ann": "member"}


@pytest.mark.parametrize("step", ["users", "tokens"])
def test_a_failure_on_the_way_leaves_the_invitation_and_its_name_to_who_has_it(
    world: LocalAdapters, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    browser, other, address = Browser(), Browser(), invited(world)
    browser.get(address)
    other.get(invited(world))
    with monkeypatch.context() as patched:
        patched.setattr(type(getattr(world, step)), "put" if step == "users" else "add", fails)
        assert browser.fill("/join", user="ann")["statusCode"] == 500
    assert world.users.claimed("ann") == "ann"
    assert world.tokens.list("acme") == []
    assert other.fill("/join", user="ann")["statusCode"] == 409, "another invitation does not make one them"
    browser.get(address)
    assert browser.fill("/join", user="ann")["statusCode"] == 303
    assert roles(world) == {"ann": "member"}
    assert "member of acme" in browser.get("/acme/analytics")["body"]


def test_an_invitation_falls_with_the_token_that_made_it(world: LocalAdapters, clock: FakeClock) -> None:
    _, parent = mint(world.tokens, clock, "acme", ["admin"], "laptop")
    _, row = mint(world.tokens, clock, "acme", ["admin"], "login", parent=parent.key_id)
    made = invitation(world.tickets, clock, "acme", "admin", "token login", made_with=row.key_id)
    browser = Browser()
    assert browser.get("/" + made.url)["statusCode"] == 200
    world.tokens.revoke(parent.key_id, clock.at)
    house.gate.cache_clear()
    assert browser.get("/" + made.url)["statusCode"] == 403
    answer = browser.fill("/join", user="mal")
    assert (answer["statusCode"], roles(world), world.users.claimed("mal")) == (403, {}, None)
    assert "is good no more, and nor is the invitation" in answer["body"]

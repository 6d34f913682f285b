import json
from collections.abc import Callable
from typing import Any

import pytest

from daskscope_lambdas.handlers import api
from daskscope_lambdas.ports import Role
from daskscope_lambdas.service import tickets
from daskscope_lambdas.service.people import People
from daskscope_lambdas.service.tokens import OF_ROLES, mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.conftest import event

Ask = Callable[..., tuple[int, dict[str, Any]]]
Person = Callable[[str, Role], str]
PATH = "/api/v1/acme/users"


@pytest.fixture
def ask(world: LocalAdapters) -> Ask:
    """Method, path and query, bearer, and what is posted."""

    def call(method: str, target: str, bearer: str, posted: Any = None) -> tuple[int, Any]:
        path, _, query = target.partition("?")
        body = b"" if posted is None else json.dumps(posted).encode()
        found = api.handler(event(method, path, {"authorization": bearer}, body, query), None)
        return found["statusCode"], json.loads(found["body"])

    return call


@pytest.fixture
def person(world: LocalAdapters, clock: FakeClock) -> Person:
    """Somebody in acme, with a token of theirs as an Authorization header."""

    def make(user: str, role: Role) -> str:
        People(world.users, clock).put("acme", user, role, "test")
        return "Bearer " + mint(world.tokens, clock, "acme", OF_ROLES["admin"], "laptop", user=user)[0]

    return make


def acts(ask: Ask, admin: str) -> list[tuple[str, str, str]]:
    """What was written down, oldest first."""
    items = ask("GET", "/api/v1/acme/audit", admin)[1]["items"]
    return [(each["actor"], each["action"], each["target"]) for each in reversed(items)]


def test_everybody_in_an_account_sees_who_is_in_it(ask: Ask, person: Person) -> None:
    person("ada", "admin")
    status, found = ask("GET", f"{PATH}?limit=1", person("vic", "viewer"))
    ada = {"account": "acme", "user": "ada", "role": "admin", "added": "2026-11-21T08:00:00.000Z", "added_by": "test"}
    assert (status, found) == (200, {"items": [ada], "cursor": "1"})
    (vic,) = ask("GET", f"{PATH}?limit=1&cursor=1", person("ann", "member"))[1]["items"][:1]
    assert vic["user"] == "ann", "by name"


def test_an_invitation_is_good_once_for_a_week(
    ask: Ask, person: Person, world: LocalAdapters, clock: FakeClock
) -> None:
    ada = person("ada", "admin")
    status, made = ask("POST", PATH, ada, {"role": "member", "user": "bob"})
    code = made.pop("url").removeprefix("join?code=")
    told = {"account": "acme", "role": "member", "user": "bob", "expires": "2026-11-28T08:00:00.000Z"}
    assert (status, made) == (201, told)
    ticket = tickets.take(world.tickets, world.clock, "invitation", code)
    made_with = ticket.told["made_with"]
    assert ticket.told == {"account": "acme", "role": "member", "user": "bob", "by": "ada", "made_with": made_with}
    assert [row.key_id for row in world.tokens.list("acme")] == [made_with]
    clock.advance(1)
    assert ask("POST", PATH, ada, {"role": "viewer"})[1]["user"] is None
    assert acts(ask, ada) == [("ada", "user.invite", "bob"), ("ada", "user.invite", "")]


def test_who_invites_by_a_sites_token_is_no_person(ask: Ask, world: LocalAdapters) -> None:
    bearer = "Bearer " + mint(world.tokens, world.clock, "acme", ["admin"], "ann")[0]
    code = ask("POST", PATH, bearer, {"role": "admin"})[1]["url"].removeprefix("join?code=")
    assert tickets.take(world.tickets, world.clock, "invitation", code).told["by"] == "token ann"


@pytest.mark.parametrize(
    ("posted", "status", "says"),
    [
        ({}, 422, "required field `role`"),
        ({"role": "root"}, 422, "Invalid enum value 'root'"),
        ({"role": "member", "user": "a b"}, 422, "1 to 64 of A-Z"),
        ({"role": "member", "user": "-ann"}, 422, "the first is a letter or digit"),
        ({"role": "member", "user": "x" * 65}, 422, "1 to 64 of A-Z"),
        ({"role": "member", "name": "ann"}, 422, "unknown field `name`"),
        ({"role": "admin", "user": "ada"}, 409, "ada is in account acme already"),
    ],
)
def test_what_cannot_be_invites_nobody(ask: Ask, person: Person, posted: Any, status: int, says: str) -> None:
    ada = person("ada", "admin")
    found, refused = ask("POST", PATH, ada, posted)
    assert (found, says in refused["error"]["message"]) == (status, True), refused
    assert acts(ask, ada) == []


def test_a_role_changes_what_tokens_may_within_a_minute(ask: Ask, person: Person, clock: FakeClock) -> None:
    ada, bob = person("ada", "admin"), person("bob", "member")
    assert ask("GET", "/api/v1/whoami", bob)[1]["role"] == "member"
    clock.advance(5)
    status, changed = ask("PUT", f"{PATH}/bob", ada, {"role": "viewer"})
    assert (status, changed["role"], changed["added"]) == (200, "viewer", "2026-11-21T08:00:00.000Z")
    clock.advance(60)
    assert ask("GET", "/api/v1/whoami", bob)[1]["scopes"] == ["read"]
    assert acts(ask, ada) == [("ada", "user.role", "bob")]


def test_the_last_admin_stays_one(ask: Ask, person: Person) -> None:
    ada, _ = person("ada", "admin"), person("bob", "member")
    for method, posted in (("PUT", {"role": "member"}), ("DELETE", None)):
        status, refused = ask(method, f"{PATH}/ada", ada, posted)
        assert (status, refused["error"]["code"]) == (409, "conflict")
        assert "ada is the last admin of account acme" in refused["error"]["message"]
    assert ask("PUT", f"{PATH}/ada", ada, {"role": "admin"})[0] == 200
    assert ask("PUT", f"{PATH}/bob", ada, {"role": "admin"})[0] == 200
    assert ask("DELETE", f"{PATH}/ada", ada)[0] == 200


def test_who_is_removed_gets_in_no_more(ask: Ask, person: Person, clock: FakeClock) -> None:
    ada, bob = person("ada", "admin"), person("bob", "member")
    assert ask("GET", PATH, bob)[0] == 200
    status, gone = ask("DELETE", f"{PATH}/bob", ada)
    assert (status, gone["role"]) == (200, "member")
    clock.advance(61)
    status, refused = ask("GET", PATH, bob)
    assert (status, refused["error"]["message"]) == (401, "bob is not in account acme any more: ask one of its admins.")
    assert ask("DELETE", f"{PATH}/bob", ada)[0] == 404


def test_everybody_may_leave_and_nobody_else_decides(ask: Ask, person: Person) -> None:
    ada, vic, bob = person("ada", "admin"), person("vic", "viewer"), person("bob", "member")
    assert ask("DELETE", f"{PATH}/vic", bob)[0] == 403
    assert ask("DELETE", f"{PATH}/vic", vic)[0] == 200
    assert acts(ask, ada) == [("vic", "user.remove", "vic")]


@pytest.mark.parametrize("way", ["remove", "demote", "leave"])
def test_an_admin_who_goes_leaves_no_token_of_the_site_behind(
    ask: Ask, person: Person, clock: FakeClock, way: str
) -> None:
    ada, mal = person("ada", "admin"), person("mal", "admin")

    def make(by: str, name: str, *scopes: str) -> tuple[str, str]:
        clock.advance(1)
        made = ask("POST", "/api/v1/acme/tokens", by, {"name": name, "scopes": scopes, "user": None})[1]
        assert made["made_by"] == ("ada" if by is ada else "mal")
        return made["key_id"], f"Bearer {made['token']}"

    key_id, site = make(mal, "site", "admin", "read")
    below, heir = make(site, "heir", "read")
    _, kept = make(ada, "kept", "read")
    _, sends = make(mal, "sends", "ingest")
    clock.advance(1)
    if way == "demote":
        status, said = ask("PUT", f"{PATH}/mal", ada, {"role": "member"})
    else:
        status, said = ask("DELETE", f"{PATH}/mal", ada if way == "remove" else mal)
    named = f"What they had made for the site is revoked: 'site' ({key_id}), 'heir' ({below})."
    assert (status, named in said["sentence"]) == (200, True), said
    act = ask("GET", "/api/v1/acme/audit?limit=1", ada)[1]["items"][0]
    assert act["detail"]["revoked"] == [key_id, below]
    # While mal passes for the last time.
    _, late = make(mal, "late", "admin") if way == "demote" else (None, heir)
    clock.advance(61)
    answers = [ask("GET", "/api/v1/whoami", bearer)[0] for bearer in (site, heir, late, kept, sends)]
    assert answers == [401, 401, 401, 200, 200]


def test_who_makes_a_token_anew_is_its_maker(ask: Ask, person: Person, world: LocalAdapters, clock: FakeClock) -> None:
    mal = person("mal", "admin")
    _, row = mint(world.tokens, clock, "acme", ["read"], "ci")
    made = ask("POST", f"/api/v1/acme/tokens/{row.key_id}/rotate", mal)[1]
    assert (made["made_by"], made["replaces"]["made_by"]) == ("mal", None)


def test_a_token_that_only_reads_takes_nobody_out(ask: Ask, person: Person, world: LocalAdapters) -> None:
    member = person("bob", "member")
    reads = "Bearer " + mint(world.tokens, world.clock, "acme", ["read"], "stolen", user="bob")[0]
    other = member.removeprefix("Bearer dks_")[:12]
    for path in (f"{PATH}/bob", f"/api/v1/acme/tokens/{other}"):
        status, refused = ask("DELETE", path, reads)
        assert (status, "may not control, report, as bob may" in refused["error"]["message"]) == (403, True), path
    assert ask("DELETE", f"/api/v1/acme/tokens/{reads.removeprefix('Bearer dks_')[:12]}", reads)[0] == 200
    assert ask("DELETE", f"{PATH}/bob", member)[0] == 200


def test_names_that_differ_by_case_alone_are_one_person(ask: Ask, person: Person) -> None:
    ada = person("ada", "admin")
    status, refused = ask("POST", PATH, ada, {"role": "viewer", "user": "Ada"})
    assert (status, "ada is in account acme already" in refused["error"]["message"]) == (409, True)


@pytest.mark.parametrize("user", ["nobody", "a b", "x" * 3000])
def test_nobody_of_that_name_is_not_found(ask: Ask, person: Person, user: str) -> None:
    ada = person("ada", "admin")
    for method, posted in (("PUT", {"role": "admin"}), ("DELETE", None)):
        status, refused = ask(method, f"{PATH}/{user}", ada, posted)
        assert (status, refused["error"]["message"]) == (404, f"Account acme has no user {user}.")

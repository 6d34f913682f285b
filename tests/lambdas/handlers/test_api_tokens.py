import json
from collections.abc import Callable
from typing import Any

import pytest

import daskscope
from daskscope.api_version import API
from daskscope.testing import message
from daskscope_lambdas.handlers import api
from daskscope_lambdas.ports import Role
from daskscope_lambdas.service.people import People
from daskscope_lambdas.service.tokens import OF_ROLES, mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.conftest import event

Token = Callable[..., str]
Ask = Callable[..., tuple[int, dict[str, Any]]]
PATH = "/api/v1/acme/tokens"


Person = Callable[..., str]


@pytest.fixture
def person(world: LocalAdapters, clock: FakeClock) -> Person:
    """Somebody with a role in each of these accounts, and a token of theirs, made in the first, as a header."""

    def make(user: str, scopes: Any = OF_ROLES["admin"], expires_at: float | None = None, **roles: Role) -> str:
        for account, role in roles.items():
            People(world.users, clock).put(account, user, role, "test")
        home = next(iter(roles))
        return "Bearer " + mint(world.tokens, clock, home, scopes, "laptop", expires_at, user=user)[0]

    return make


@pytest.fixture
def ask(world: LocalAdapters) -> Ask:
    """Method, path and query, bearer, and what is posted."""

    def call(method: str, target: str, bearer: str | None, posted: Any = None, **headers: str) -> tuple[int, Any]:
        path, _, query = target.partition("?")
        sent = {**headers, **({"authorization": bearer} if bearer else {})}
        body = posted if isinstance(posted, bytes) else b"" if posted is None else json.dumps(posted).encode()
        found = api.handler(event(method, path, sent, body, query), None)
        assert found["headers"]["Cache-Control"] == "no-store"
        return found["statusCode"], json.loads(found["body"])

    return call


def test_a_token_is_made_shown_once_and_good_until_it_is_revoked(
    ask: Ask, token: Token, clock: FakeClock, post: Callable[..., dict[str, Any]]
) -> None:
    keeper = token("admin", "read", "ingest")
    status, made = ask("POST", PATH, keeper, {"name": "ann", "scopes": ["read", "ingest"], "expires_in_s": 3600})
    assert status == 201
    text = made.pop("token")
    assert made == {
        "key_id": text[4:16], "name": "ann", "account": "acme", "scopes": ["ingest", "read"],
        "created": "2026-11-21T08:00:00.000Z", "expires": "2026-11-21T09:00:00.000Z", "revoked": None,
        "user": None, "kind": "token", "last_used": None, "made_by": None,
    }  # fmt: skip
    assert post(message(), f"Bearer {text}")["statusCode"] == 200
    assert ask("GET", "/api/v1/acme/clusters", f"Bearer {text}")[0] == 200
    listed = ask("GET", PATH, keeper)[1]["items"]
    assert {**made, "last_used": "2026-11-21"} in listed
    assert text not in json.dumps(listed)
    assert not any("secret" in row or "token" in row for row in listed)

    clock.advance(1)
    status, revoked = ask("DELETE", f"{PATH}/{made['key_id']}", keeper)
    assert (status, revoked["revoked"]) == (200, "2026-11-21T08:00:01.000Z")
    assert "it may pass for 60 s more" in revoked["sentence"]
    clock.advance(60)
    assert ask("GET", "/api/v1/acme/clusters", f"Bearer {text}")[0] == 401
    again = ask("DELETE", f"{PATH}/{made['key_id']}", keeper)
    assert (again[0], again[1]["revoked"]) == (200, revoked["revoked"]), "the first time stands"


def test_nobody_gives_more_than_they_have(ask: Ask, token: Token, world: LocalAdapters) -> None:
    keeper = token("admin", "read")
    before = [row.key_id for row in world.tokens.list("acme")]
    status, refused = ask("POST", PATH, keeper, {"name": "bob", "scopes": ["read", "control", "report", "ingest"]})
    assert (status, refused["error"]["code"]) == (403, "permission-denied")
    assert "may not control, report itself" in refused["error"]["message"]
    assert [row.key_id for row in world.tokens.list("acme")] == before
    assert ask("POST", PATH, keeper, {"name": "bob", "scopes": ["admin", "read"]})[0] == 201


@pytest.mark.parametrize(
    ("expires_in_s", "expires"),
    [(None, "2026-11-21T09:00:00.000Z"), (7200, "2026-11-21T09:00:00.000Z"), (60, "2026-11-21T08:11:00.000Z")],
)
def test_no_token_outlives_the_one_that_asked_for_it(
    ask: Ask, world: LocalAdapters, clock: FakeClock, expires_in_s: float | None, expires: str
) -> None:
    keeper = "Bearer " + mint(world.tokens, clock, "acme", ["admin"], "keeper", clock.now() + 3600)[0]
    clock.advance(600)
    _, made = ask("POST", PATH, keeper, {"name": "heir", "scopes": ["admin"], "expires_in_s": expires_in_s})
    assert made["expires"] == expires
    heir = f"Bearer {made['token']}"
    _, made = ask("POST", PATH, heir, {"name": "heir's heir", "scopes": ["admin"]})
    assert made["expires"] == expires
    clock.advance(3000)
    for bearer in (keeper, heir, f"Bearer {made['token']}"):
        assert ask("GET", PATH, bearer)[0] == 401


def test_what_a_token_made_stays_when_it_is_revoked(ask: Ask, token: Token, clock: FakeClock) -> None:
    keeper = token("admin")
    _, made = ask("POST", PATH, keeper, {"name": "ann", "scopes": ["admin"]})
    ask("DELETE", f"{PATH}/{keeper.removeprefix('Bearer ')[4:16]}", keeper)
    clock.advance(61)
    assert ask("GET", PATH, keeper)[0] == 401
    assert ask("GET", PATH, f"Bearer {made['token']}")[0] == 200


def test_tokens_of_an_account_page(ask: Ask, token: Token, clock: FakeClock) -> None:
    keeper = token("admin")
    for name in ("a", "b", "c", "d"):
        clock.advance(1)
        ask("POST", PATH, keeper, {"name": name, "scopes": ["admin"]})
    seen, cursor = list[str](), ""
    while cursor is not None:
        page = ask("GET", f"{PATH}?limit=2{cursor and '&cursor='}{cursor}", keeper)[1]
        seen += [row["name"] for row in page["items"]]
        cursor = page["cursor"]
    assert seen == ["test", "a", "b", "c", "d"]


@pytest.mark.parametrize(("method", "path"), [("GET", PATH), ("POST", PATH), ("DELETE", f"{PATH}/x")])
def test_a_bearer_of_scope_admin_alone_looks_after_tokens(ask: Ask, token: Token, method: str, path: str) -> None:
    posted = {"name": "x", "scopes": ["read"]} if method == "POST" else None
    cases = (
        (None, 401),
        (token("read", "control", "ingest"), 403),
        (token("admin", "read", account="other"), 404),
    )
    for bearer, status in cases:
        assert ask(method, path, bearer, posted)[0] == status
    cookie = token("admin", "read").removeprefix("Bearer ")
    found = api.handler(event(method, path, body=json.dumps(posted).encode(), cookies=(f"daskscope={cookie}",)), None)
    assert found["statusCode"] == 401, "another site's page can send a cookie"


def test_a_token_of_another_account_is_not_there(ask: Ask, token: Token, world: LocalAdapters) -> None:
    theirs = token("read", account="other").removeprefix("Bearer ")[4:16]
    for key_id in (theirs, "nonsense"):
        status, found = ask("DELETE", f"{PATH}/{key_id}", token("admin"))
        assert (status, found["error"]["message"]) == (404, f"Account acme has no token with key id {key_id}.")
    assert world.tokens.find(theirs).revoked_at is None


@pytest.mark.parametrize(
    ("posted", "status", "says"),
    [
        (b"no json", 422, '{"name": "ann", "scopes": ["read"]'),
        (b"", 422, "required field `name`"),
        ({"name": "x"}, 422, "required field `scopes`"),
        ({"name": "x", "scopes": []}, 422, "one or more of ingest, read, control, report, admin"),
        ({"name": "x", "scopes": ["root"]}, 422, "'root'"),
        ({"name": "", "scopes": ["admin"]}, 422, "1 to 200 printable"),
        ({"name": "x" * 201, "scopes": ["admin"]}, 422, "1 to 200 printable"),
        ({"name": "a\x1b[31m", "scopes": ["admin"]}, 422, "1 to 200 printable"),
        ({"name": "x", "scopes": ["admin"], "expires_in_s": 0}, 422, "until it is revoked"),
        ({"name": "x", "scopes": ["admin"], "expires_in_s": 1e300}, 422, "until it is revoked"),
        ({"name": "x", "scopes": ["admin"], "expires_in": 60}, 422, "unknown field `expires_in`"),
        (b"{", 422, "not JSON"),
        (b"[" * 100_000, 422, "Expected `object`"),
        (b"x" * 800_000, 413, "send less"),
    ],
)
def test_what_cannot_be_makes_no_token(
    ask: Ask, token: Token, world: LocalAdapters, posted: Any, status: int, says: str
) -> None:
    keeper = token("admin")
    found, told = ask("POST", PATH, keeper, posted)
    assert (found, says in told["error"]["message"]) == (status, True), told
    assert len(world.tokens.list("acme")) == 1


def test_whose_a_token_is_and_which_release_answers(ask: Ask, token: Token) -> None:
    assert ask("GET", "/api/v1/whoami", token("ingest")) == (
        200,
        {
            "account": "acme", "name": "test", "scopes": ["ingest"], "user": None, "role": None,
            "accounts": [{"account": "acme", "role": None}], "version": daskscope.__version__, "api": API,
        },
    )  # fmt: skip


def test_a_person_is_told_who_they_are_in_the_account_they_ask_about(ask: Ask, person: Person) -> None:
    bearer = person("ann", acme="viewer", globex="admin")
    accounts = [{"account": "acme", "role": "viewer"}, {"account": "globex", "role": "admin"}]
    _, told = ask("GET", "/api/v1/whoami", bearer)
    assert (told["account"], told["user"], told["role"], told["accounts"]) == ("acme", "ann", "viewer", accounts)
    assert told["scopes"] == ["read"], "what the token may, within what she is there"
    _, told = ask("GET", "/api/v1/whoami", bearer, **{"daskscope-account": "globex"})
    assert (told["account"], told["role"], len(told["scopes"])) == ("globex", "admin", 5)
    for nowhere in ("initech", "Not/One", "x" * 5000):
        status, refused = ask("GET", "/api/v1/whoami", bearer, **{"daskscope-account": nowhere})
        said = f"No account {nowhere} for this token: ann is in acme, globex."
        assert (status, refused["error"]["message"]) == (404, said)


def test_the_list_tells_what_a_token_may_there_as_what_its_user_is_now(
    ask: Ask, person: Person, world: LocalAdapters, clock: FakeClock
) -> None:
    ann, vic = person("ann", acme="admin"), person("vic", acme="viewer")
    of_vic = {row["user"]: row["scopes"] for row in ask("GET", PATH, vic)[1]["items"]}
    assert of_vic == {"vic": ["read"]}
    person("gil", acme="member")
    People(world.users, clock).remove("acme", "gil")
    may = {row["user"]: row["scopes"] for row in ask("GET", PATH, ann)[1]["items"]}
    assert may == {"ann": ["admin", "control", "ingest", "read", "report"], "vic": ["read"], "gil": []}


def test_who_left_the_account_of_their_token_is_told_where_they_are(
    ask: Ask, person: Person, world: LocalAdapters, clock: FakeClock
) -> None:
    bearer = person("ann", acme="viewer", globex="admin")
    world.users.remove("acme", "ann")
    status, refused = ask("GET", "/api/v1/whoami", bearer)
    said = "ann is not in account acme any more: name another one (globex)."
    assert (status, refused["error"]["message"]) == (401, said)
    status, told = ask("GET", "/api/v1/whoami?account=globex", bearer)
    assert (status, told["account"], told["role"]) == (200, "globex", "admin")
    assert told["accounts"] == [{"account": "globex", "role": "admin"}]


def test_who_is_no_admin_looks_after_their_own_tokens_and_sees_no_others(
    ask: Ask, person: Person, token: Token
) -> None:
    ann, bob, site = person("ann", acme="member"), person("bob", acme="member"), token("read")
    status, made = ask("POST", PATH, ann, {"name": "ci", "scopes": ["read", "ingest"]})
    assert (status, made["user"], made["scopes"]) == (201, "ann", ["ingest", "read"])
    assert {row["user"] for row in ask("GET", PATH, ann)[1]["items"]} == {"ann"}
    assert [row["user"] for row in ask("GET", PATH, bob)[1]["items"]] == ["bob"]
    for method, path in (("DELETE", made["key_id"]), ("POST", f"{made['key_id']}/rotate")):
        status, refused = ask(method, f"{PATH}/{path}", bob)
        assert (status, refused["error"]["message"]) == (
            404,
            f"Account acme has no token with key id {made['key_id']}.",
        )
    for wanted in ({"user": None}, {"user": "bob"}, {"scopes": ["read", "admin"]}):
        assert ask("POST", PATH, ann, {"name": "x", "scopes": ["read"], **wanted})[0] == 403
    assert ask("DELETE", f"{PATH}/{made['key_id']}", ann)[0] == 200
    assert ask("GET", PATH, site)[0] == 403


def test_an_admin_gives_a_site_what_sends_alone_and_nobody_what_is_anothers(
    ask: Ask, person: Person, world: LocalAdapters, clock: FakeClock
) -> None:
    ada = person("ada", scopes=("read", "admin"), expires_at=clock.now() + 3600, acme="admin")
    person("ann", acme="member")
    _, lasting = ask("POST", PATH, ada, {"name": "nightly", "scopes": ["ingest"]})
    assert (lasting["user"], lasting["expires"]) == (None, None), "it leads to no data, and may outlive who gave it"
    assert ask("POST", PATH, ada, {"name": "x", "scopes": ["read"]})[1]["expires"] == "2026-11-21T09:00:00.000Z"
    status, refused = ask("POST", PATH, ada, {"name": "x", "scopes": ["read"], "user": "ann"})
    assert (status, "Nobody makes a token for somebody else" in refused["error"]["message"]) == (403, True)
    assert ask("POST", PATH, ada, {"name": "mine", "scopes": ["read"], "user": "ada"})[1]["user"] == "ada"
    (hers,) = (row for row in world.tokens.list("acme") if row.user == "ann")
    status, refused = ask("POST", f"{PATH}/{hers.key_id}/rotate", ada)
    assert (status, "Nobody makes a token for somebody else" in refused["error"]["message"]) == (403, True)
    assert ask("DELETE", f"{PATH}/{hers.key_id}", ada)[0] == 200


def test_a_rotated_token_is_good_for_the_overlap_and_the_new_one_for_as_long_as_it_was(
    ask: Ask, token: Token, clock: FakeClock
) -> None:
    keeper = token("admin", "read")
    _, old = ask("POST", PATH, keeper, {"name": "ci", "scopes": ["read"], "expires_in_s": 864_000})
    clock.advance(800_000)
    status, new = ask("POST", f"{PATH}/{old['key_id']}/rotate", keeper, {"overlap_s": 3600})
    assert (status, new["name"], new["scopes"], new["user"]) == (201, "ci", ["read"], None)
    assert new["expires"] == "2026-12-10T14:13:20.000Z", "ten days from now"
    assert new["replaces"]["expires"] == "2026-11-30T15:13:20.000Z"
    assert f"key id {old['key_id']} is good until 2026-11-30T15:13:20.000Z" in new["sentence"]
    bearers = [f"Bearer {each['token']}" for each in (old, new)]
    clock.advance(3599)
    assert [ask("GET", "/api/v1/acme/clusters", bearer)[0] for bearer in bearers] == [200, 200]
    clock.advance(61)
    assert [ask("GET", "/api/v1/acme/clusters", bearer)[0] for bearer in bearers] == [401, 200]
    status, refused = ask("POST", f"{PATH}/{old['key_id']}/rotate", keeper)
    assert (status, "is good no more" in refused["error"]["message"]) == (409, True)


@pytest.mark.parametrize("overlap_s", [-1, 2_592_001, "x"])
def test_an_overlap_is_of_thirty_days_at_most(ask: Ask, token: Token, world: LocalAdapters, overlap_s: Any) -> None:
    keeper = token("admin", "read")
    (row,) = world.tokens.list("acme")
    assert ask("POST", f"{PATH}/{row.key_id}/rotate", keeper, {"overlap_s": overlap_s})[0] == 422
    assert len(world.tokens.list("acme")) == 1


def test_rotating_says_how_many_tokens_end_with_the_old_one(ask: Ask, person: Person, world: LocalAdapters) -> None:
    ann = person("ann", acme="member")
    own = ann.removeprefix("Bearer ")[4:16]
    mint(world.tokens, world.clock, "acme", ["ingest"], "its clusters", user="ann", parent=own)
    assert "So are 1 that came of it" in ask("POST", f"{PATH}/{own}/rotate", ann)[1]["sentence"]
    (session,) = (row for row in world.tokens.list("acme") if row.parent == own)
    assert ask("DELETE", f"{PATH}/{session.key_id}", ann)[0] == 200


def test_a_session_is_revoked_and_not_rotated(ask: Ask, person: Person, world: LocalAdapters) -> None:
    ann = person("ann", acme="member")
    _, row = mint(world.tokens, world.clock, "acme", ["read"], "sign-in", user="ann", kind="session")
    assert ask("POST", f"{PATH}/{row.key_id}/rotate", ann)[0] == 409
    assert ask("DELETE", f"{PATH}/{row.key_id}", ann)[1]["kind"] == "session"


def test_every_token_may_give_itself_back(ask: Ask, token: Token, clock: FakeClock) -> None:
    stolen = token("ingest")
    assert ask("DELETE", f"{PATH}/{stolen.removeprefix('Bearer ')[4:16]}", stolen)[0] == 200
    clock.advance(61)
    assert ask("GET", "/api/v1/whoami", stolen)[0] == 401


def test_one_s_own_are_revoked_wherever_they_were_made(
    ask: Ask, person: Person, world: LocalAdapters, clock: FakeClock
) -> None:
    lost = person("eve", acme="member", beta="member")
    kept = "Bearer " + mint(world.tokens, clock, "beta", OF_ROLES["member"], "other", user="eve")[0]
    world.users.remove("acme", "eve")
    key_id = lost.removeprefix("Bearer dks_")[:12]
    stranger = person("bob", beta="member")
    assert ask("DELETE", f"/api/v1/beta/tokens/{key_id}", stranger)[0] == 404
    status, revoked = ask("DELETE", f"/api/v1/beta/tokens/{key_id}", kept)
    assert (status, revoked["revoked"]) == (200, "2026-11-21T08:00:00.000Z")


def test_a_token_revokes_itself_though_its_user_is_in_its_account_no_more(
    ask: Ask, person: Person, world: LocalAdapters
) -> None:
    eve = person("eve", acme="member", beta="member")
    world.users.remove("acme", "eve")
    key_id = eve.removeprefix("Bearer dks_")[:12]
    assert ask("GET", PATH, eve)[0] == 401
    assert ask("DELETE", f"{PATH}/{key_id}", eve)[0] == 200


def test_a_session_opens_no_json_route_as_a_bearer(ask: Ask, world: LocalAdapters, clock: FakeClock) -> None:
    text, _ = mint(world.tokens, clock, "acme", OF_ROLES["admin"], "sign-in", kind="session")
    status, told = ask("GET", "/api/v1/acme/clusters", f"Bearer {text}")
    assert (status, "good in its cookie alone" in told["error"]["message"]) == (401, True)

"""From `daskscope login` in a terminal over a browser to its tokens, and back by `logout`."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from daskscope_lambdas.handlers import api, house
from daskscope_lambdas.service.people import People
from daskscope_lambdas.service.tokens import OF_ROLES, mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.browsers import Browser, link, person
from tests.lambdas.handlers.conftest import event

Get = Callable[..., dict[str, Any]]
DAY_S = 86_400


def post(path: str, body: Any, authorization: str | None = None) -> dict[str, Any]:
    headers = {"authorization": authorization} if authorization else {}
    return api.handler(event("POST", path, headers, json.dumps(body).encode()), None)


def told(answer: dict[str, Any], status: int = 200) -> Any:
    assert answer["statusCode"] == status, answer["body"]
    return json.loads(answer["body"])


def asked() -> dict[str, Any]:
    return told(post("/api/v1/login", {"client": "daskscope on ann's laptop"}))


def fetch(device_code: str) -> dict[str, Any]:
    return post("/api/v1/login/token", {"device_code": device_code})


def whoami(get: Get, token: str) -> dict[str, Any]:
    return told(get("/api/v1/whoami", f"Bearer {token}"))


def approve(browser: Browser, asking: dict[str, Any], account: str = "acme", **fields: str) -> dict[str, Any]:
    browser.get("/" + asking["url"])
    return browser.fill("/login/approve", account=account, **({"decision": "approve"} | fields))


def test_from_the_terminal_and_back(world: LocalAdapters, get: Get, clock: FakeClock) -> None:
    ann = person(world, "ann", acme="admin", beta="viewer")
    asking = asked()
    assert asking["url"] == f"login/approve?code={asking['user_code']}"
    assert (asking["interval_s"], asking["expires_in_s"]) == (2, 600)
    assert told(fetch(asking["device_code"]), 202) == {"status": "pending"}
    ann.get("/" + asking["url"])
    assert "daskscope on ann&#39;s laptop" in ann.body
    assert asking["user_code"] in ann.body
    answer = approve(ann, asking)
    assert (answer["statusCode"], "Approved" in answer["body"]) == (200, True)
    assert [row.kind for row in world.tokens.list("acme")] == ["session"], "no token is made before it is fetched"
    found = told(fetch(asking["device_code"]))
    assert (found["user"], found["account"]) == ("ann", "acme")
    assert found["accounts"] == [{"account": "acme", "role": "admin"}, {"account": "beta", "role": "viewer"}]
    assert found["expires"] == "2027-02-19T08:00:00.000Z"
    assert whoami(get, found["token"])["scopes"] == ["admin", "control", "read", "report"]
    assert whoami(get, found["ingest_token"])["scopes"] == ["ingest"]
    assert fetch(found["token"])["statusCode"] == 404
    assert fetch(asking["device_code"])["statusCode"] == 404, "once"
    gone = told(post("/api/v1/logout", {}, f"Bearer {found['token']}"))
    assert len(gone["revoked"]) == 2
    clock.advance(61)
    for token in (found["token"], found["ingest_token"]):
        assert get("/api/v1/whoami", f"Bearer {token}")["statusCode"] == 401
    assert ann.get("/acme/analytics")["statusCode"] == 200


def test_the_account_that_was_chosen_decides_what_it_may(world: LocalAdapters, get: Get) -> None:
    ann = person(world, "ann", acme="admin", beta="viewer")
    asking = asked()
    approve(ann, asking, "beta")
    found = told(fetch(asking["device_code"]))
    assert (found["account"], found["ingest_token"]) == ("beta", None)
    assert whoami(get, found["token"])["scopes"] == ["read"]


def test_a_refusal_is_told(world: LocalAdapters) -> None:
    ann = person(world, "ann", acme="admin")
    asking = asked()
    assert "Refused" in approve(ann, asking, decision="refuse")["body"]
    answer = fetch(asking["device_code"])
    assert (answer["statusCode"], "said no" in answer["body"]) == (403, True)
    assert fetch(asking["device_code"])["statusCode"] == 404


def test_who_is_not_signed_in_is_asked_to_and_comes_back(world: LocalAdapters) -> None:
    asking, browser = asked(), Browser()
    answer = browser.get("/" + asking["url"])
    assert answer["statusCode"] == 401
    assert f'name="next" value="{asking["url"]}"' in answer["body"]
    assert browser.post("/login/approve", {"code": asking["user_code"], "decision": "approve"})["statusCode"] == 401
    assert told(fetch(asking["device_code"]), 202)


def test_another_s_account_cannot_be_chosen(world: LocalAdapters) -> None:
    person(world, "bob", beta="admin")
    ann = person(world, "ann", acme="admin")
    asking = asked()
    answer = approve(ann, asking, "beta")
    assert (answer["statusCode"], "No account beta" in answer["body"]) == (404, True)
    assert told(fetch(asking["device_code"]), 202)
    assert approve(ann, asking)["statusCode"] == 200, "and may choose again"


def test_a_site_s_token_is_nobody_s_to_lend(world: LocalAdapters) -> None:
    browser, asking = Browser(), asked()
    browser.get(link(world.tickets, world.clock))
    browser.fill("/login")
    answer = approve(browser, asking)
    assert (answer["statusCode"], "nobody&#39;s own" in answer["body"]) == (403, True)
    assert told(fetch(asking["device_code"]), 202)


@pytest.mark.parametrize("typed", ["{}", " {} ", "lower", "bare"])
def test_a_code_may_be_typed(world: LocalAdapters, typed: str) -> None:
    ann, code = person(world, "ann", acme="member"), asked()["user_code"]
    written = {"lower": code.lower(), "bare": code.replace("-", "")}.get(typed, typed.format(code)).replace(" ", "%20")
    answer = ann.get(f"/login/approve?code={written}")
    assert (answer["statusCode"], code in answer["body"]) == (200, True)


@pytest.mark.parametrize("typed", ["XXXX-XXXX", "x", "%00", "B" * 500, "\u00e9"])
def test_a_code_that_nobody_showed(world: LocalAdapters, typed: str) -> None:
    ann = person(world, "ann", acme="member")
    assert ann.get(f"/login/approve?code={typed}")["statusCode"] == 404
    assert 'method="get"' in ann.body, "another may be typed"


def test_nobody_waits_for_ever(world: LocalAdapters, clock: FakeClock) -> None:
    ann = person(world, "ann", acme="member")
    first, second = asked(), asked()
    clock.advance(599)
    assert approve(ann, first)["statusCode"] == 200
    clock.advance(1)
    assert fetch(first["device_code"])["statusCode"] == 404
    assert ann.get("/" + second["url"])["statusCode"] == 404


def test_what_a_short_token_let_in_lets_in_no_longer_one(world: LocalAdapters, clock: FakeClock) -> None:
    person(world, "ann", acme="member")
    text, _ = mint(world.tokens, clock, "acme", ["read"], "short", clock.at + DAY_S, user="ann")
    browser = Browser()
    browser.get("/login")
    browser.fill("/login", token=text)
    asking = asked()
    approve(browser, asking)
    found = told(fetch(asking["device_code"]))
    assert (found["expires"], found["ingest_token"]) == ("2026-11-22T08:00:00.000Z", None)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/login", {}),
        ("/api/v1/login", {"client": ""}),
        ("/api/v1/login", {"client": "x" * 101}),
        ("/api/v1/login", {"client": "a\x1b[31m"}),
        ("/api/v1/login", {"client": "x", "user": "root"}),
        ("/api/v1/login", ["x"]),
        ("/api/v1/login/token", {}),
        ("/api/v1/login/token", {"device_code": 5}),
    ],
)
def test_what_is_not_taken(world: LocalAdapters, path: str, body: Any) -> None:
    assert told(post(path, body), 422)["error"]["code"] == "bad-message"


@pytest.mark.parametrize("code", ["", "x", "\x00", "x" * 1000, "\u00e9"])
def test_a_device_that_nobody_knows(world: LocalAdapters, code: str) -> None:
    assert told(fetch(code), 404)["error"]["code"] == "not-found"


def test_any_token_gives_itself_back_and_no_other(world: LocalAdapters, get: Get) -> None:
    ann = person(world, "ann", acme="member")
    asking = asked()
    approve(ann, asking)
    found = told(fetch(asking["device_code"]))
    assert len(told(post("/api/v1/logout", {}, f"Bearer {found['ingest_token']}"))["revoked"]) == 1
    house.gate.cache_clear()
    assert whoami(get, found["token"])["user"] == "ann", "who stole a scheduler's token ends no more than that"
    assert post("/api/v1/logout", {})["statusCode"] == 401
    assert post("/api/v1/logout", {}, f"Bearer {found['ingest_token']}")["statusCode"] == 401


def test_who_has_a_token_signs_a_browser_in_that_may_as_much_as_long_as_the_token_is_good(
    world: LocalAdapters, get: Get, clock: FakeClock
) -> None:
    People(world.users, clock).put("acme", "ann", "admin", "test")
    People(world.users, clock).put("beta", "ann", "viewer", "test")
    token, row = mint(world.tokens, clock, "acme", {"read", "control"}, "laptop", user="ann")
    made = told(post("/api/v1/sign-in-link", None, f"Bearer {token}"), 201)
    assert made["expires"] == "2026-11-21T09:00:00.000Z"
    keeper = "Bearer " + mint(world.tokens, clock, "acme", {"admin"}, "keeper")[0]
    (act,) = told(get("/api/v1/acme/audit", keeper))["items"]
    assert (act["action"], act["actor"], act["target"], act["key_id"]) == ("login.link", "ann", "ann", row.key_id)
    assert made["url"].partition("code=")[2] not in json.dumps(act)
    browser = Browser()
    browser.get(f"/{made['url']}&next=beta%2Fanalytics")
    assert browser.fill("/login")["headers"]["Location"] == "beta/analytics"
    session = next(each for each in world.tokens.list("acme") if each.kind == "session")
    assert (session.user, session.parent, session.scopes) == ("ann", row.key_id, {"read", "control"})
    assert browser.get("/acme/analytics")["statusCode"] == 200
    world.tokens.revoke(row.key_id, clock.now())
    clock.advance(61)
    assert browser.get("/acme/analytics")["statusCode"] == 401
    assert post("/api/v1/sign-in-link", None, f"Bearer {token}")["statusCode"] == 401


def test_a_login_falls_with_the_token_that_signed_in_who_approved_it(world: LocalAdapters, get: Get) -> None:
    person(world, "ann", acme="member")
    text, row = mint(world.tokens, world.clock, "acme", OF_ROLES["member"], "laptop", user="ann")
    browser, asking = Browser(), asked()
    browser.get("/login")
    browser.fill("/login", token=text)
    approve(browser, asking)
    found = told(fetch(asking["device_code"]))
    assert whoami(get, found["token"])["user"] == "ann"
    world.tokens.revoke(row.key_id, world.clock.now())
    house.gate.cache_clear()
    for token in (found["token"], found["ingest_token"]):
        assert get("/api/v1/whoami", f"Bearer {token}")["statusCode"] == 401


def test_who_is_taken_out_of_the_account_may_log_out_still(world: LocalAdapters, get: Get) -> None:
    eve = person(world, "eve", acme="member", beta="member")
    asking = asked()
    approve(eve, asking)
    found = told(fetch(asking["device_code"]))
    world.users.remove("acme", "eve")
    house.gate.cache_clear()
    assert get("/api/v1/whoami", f"Bearer {found['token']}")["statusCode"] == 401
    assert get("/api/v1/beta/clusters", f"Bearer {found['token']}")["statusCode"] == 200
    assert len(told(post("/api/v1/logout", {}, f"Bearer {found['token']}"))["revoked"]) == 2
    house.gate.cache_clear()
    assert get("/api/v1/beta/clusters", f"Bearer {found['token']}")["statusCode"] == 401


def test_who_asks_too_often_waits(world: LocalAdapters, clock: FakeClock) -> None:
    for _ in range(10):
        asked()
    answer = post("/api/v1/login", {"client": "x"})
    assert told(answer, 429)["error"] == {
        "code": "too-many-requests", "message": "Too many ask to log in from 127.0.0.1: try again in 1 min.",
    }  # fmt: skip
    assert answer["headers"]["Retry-After"] == "60"
    clock.advance(60)
    asked()

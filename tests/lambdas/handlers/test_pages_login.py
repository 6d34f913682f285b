"""Signing in by a link or a token, and out."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from daskscope.testing import CLUSTER, message
from daskscope_lambdas.env import AwsEnv, LocalEnv
from daskscope_lambdas.handlers import house
from daskscope_lambdas.handlers.pages import checked_after
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.browsers import HOST, Browser, link, person

Token = Callable[..., str]
Post = Callable[..., dict[str, Any]]


def into(world: LocalAdapters, monkeypatch: pytest.MonkeyPatch, env: LocalEnv | AwsEnv) -> None:
    monkeypatch.setattr(house, "read", lambda: env)
    house.env.cache_clear()


def text(bearer: str) -> str:
    return bearer.removeprefix("Bearer ")


def test_a_link_signs_in_once_and_no_preview_of_it_takes_it(world: LocalAdapters) -> None:
    address, browser = link(world.tickets, world.clock), Browser()
    for _ in range(3):
        seen = browser.get(address)
        assert (seen["statusCode"], seen["cookies"]) == (200, [])
        assert "in account <strong>acme</strong>" in seen["body"]
    answer = browser.fill("/login")
    assert (answer["statusCode"], answer["headers"]["Location"]) == (303, "acme/analytics")
    assert browser.get("/acme/analytics")["statusCode"] == 200
    again = Browser()
    assert again.get(address)["statusCode"] == 404
    assert "was used, or has expired" in again.body
    used = again.post("/login", {"code": address.partition("=")[2]})
    assert (used["statusCode"], used["cookies"]) == (404, [])


@pytest.mark.parametrize(("good_s", "status"), [(3600.0, 200), (3599.0, 404)])
def test_a_link_ends(world: LocalAdapters, clock: FakeClock, good_s: float, status: int) -> None:
    address = link(world.tickets, world.clock, good_s=good_s)
    clock.advance(3599)
    assert Browser().get(address)["statusCode"] == status


@pytest.mark.parametrize("code", ["x", "%00", "x" * 100, "%F0%9F%98%80", "../../etc"])
def test_what_is_no_code_is_told_so(world: LocalAdapters, code: str) -> None:
    answer = Browser().get(f"/login?code={code}")
    assert answer["statusCode"] == 404
    assert "sign-in link" in answer["body"]


def test_the_cookie_is_a_session_of_30_days_and_not_the_token(world: LocalAdapters, token: Token) -> None:
    bearer, browser = token("read", "control"), Browser()
    browser.get("/login")
    answer = browser.fill("/login", token=text(bearer) + "\n")
    (cookie,) = answer["cookies"]
    pair, *how = cookie.split("; ")
    assert how == ["Path=/", "Max-Age=2592000", "HttpOnly", "SameSite=Lax"]
    name, _, session = pair.partition("=")
    assert name == "daskscope"
    assert session != text(bearer)
    (row, parent) = sorted(world.tokens.list("acme"), key=lambda row: row.kind)
    assert (row.kind, row.parent, row.scopes) == ("session", parent.key_id, {"read", "control"})


@pytest.mark.parametrize("env_", [
    AwsEnv(bucket="b", table="t", queue_url="q", keys="/k"), LocalEnv(data="d", address="https://scope.example"),
])  # fmt: skip
def test_over_https_the_cookie_is_of_this_host_alone(
    world: LocalAdapters, monkeypatch: pytest.MonkeyPatch, env_: AwsEnv | LocalEnv
) -> None:
    into(world, monkeypatch, env_)
    browser = Browser(f"https://{HOST}")
    browser.get(link(world.tickets, world.clock))
    (cookie,) = browser.fill("/login")["cookies"]
    pair, *how = cookie.split("; ")
    assert pair.startswith("__Host-daskscope=")
    assert how == ["Path=/", "Max-Age=2592000", "HttpOnly", "Secure", "SameSite=Lax"]
    assert browser.get("/acme/analytics")["statusCode"] == 200
    browser.cookies = {"daskscope": browser.cookies["__Host-daskscope"]}
    assert browser.get("/acme/analytics")["statusCode"] == 401, "one that another host could have set"


def test_a_session_ends_with_its_token(world: LocalAdapters, clock: FakeClock) -> None:
    bearer, row = mint(world.tokens, clock, "acme", ["read"], "short", clock.at + 600)
    browser = Browser()
    browser.get("/login")
    (cookie,) = browser.fill("/login", token=bearer)["cookies"]
    assert "Max-Age=600" in cookie
    world.tokens.revoke(row.key_id, clock.now())
    clock.advance(61)
    seen = browser.get("/acme/analytics")
    assert seen["statusCode"] == 401
    assert "was revoked" in seen["body"]


@pytest.mark.parametrize(
    ("sent", "status", "says"),
    [
        ("", 422, "Nothing was sent"),
        ("hunter2", 401, "This is no daskscope token"),
        ("dks_" + "0" * 12 + "_" + "0" * 49, 401, "The token is damaged"),
    ],
)
def test_what_is_no_token_is_told_so(world: LocalAdapters, sent: str, status: int, says: str) -> None:
    browser = Browser()
    browser.get("/login?next=acme/analytics")
    answer = browser.fill("/login", token=sent)
    assert (answer["statusCode"], answer["cookies"]) == (status, [])
    assert says in answer["body"]
    assert 'name="next" value="acme/analytics"' in answer["body"], "and may try again"


def test_a_token_that_may_not_read_sees_nothing(world: LocalAdapters, token: Token) -> None:
    browser = Browser()
    browser.get("/login")
    answer = browser.fill("/login", token=text(token("ingest")))
    assert (answer["statusCode"], answer["cookies"]) == (403, [])
    assert "may ingest" in answer["body"]


def test_a_link_of_somebody_who_left_opens_nothing_and_leaves_nothing(world: LocalAdapters) -> None:
    browser = Browser()
    browser.get(link(world.tickets, world.clock, "acme", "ann"))
    answer = browser.fill("/login")
    assert (answer["statusCode"], answer["cookies"]) == (401, [])
    assert "ann is not in account acme any more" in answer["body"]
    assert [row.revoked_at for row in world.tokens.list("acme")] == [world.clock.now()]


def test_out_again(world: LocalAdapters) -> None:
    ann = person(world, "ann", acme="member")
    kept = dict(ann.cookies)
    ann.get("/acme/analytics")
    answer = ann.fill("/logout")
    assert (answer["statusCode"], answer["headers"]["Location"]) == (303, "login")
    assert ann.cookies == {}
    (row,) = world.tokens.list("acme")
    assert row.revoked_at == world.clock.now()
    thief = Browser()
    thief.cookies = kept
    house.gate.cache_clear()
    assert thief.get("/acme/analytics")["statusCode"] == 401


def test_to_sign_in_as_another_ends_the_session_before(world: LocalAdapters) -> None:
    ann = person(world, "ann", acme="member")
    ann.get(link(world.tickets, world.clock))
    assert "You are signed in as ann now" in ann.body
    assert ann.fill("/login")["statusCode"] == 303
    assert [row.revoked_at is None for row in world.tokens.list("acme") if row.user] == [False]


def test_who_is_sent_to_sign_in_comes_back(world: LocalAdapters, token: Token) -> None:
    browser = Browser()
    asked = browser.get("/acme/analytics?status=running&user=ann")
    assert asked["statusCode"] == 401
    answer = browser.fill("/login", token=text(token("read")))
    assert answer["headers"]["Location"] == "acme/analytics?status=running&user=ann"


@pytest.mark.parametrize(
    "target",
    ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "acme//evil.example", "../x",
     "acme/../../x", "x:y", "acme?next=//x\n", "a" * 501, "\u00e9", ""],
)  # fmt: skip
def test_nobody_is_sent_elsewhere(target: str) -> None:
    assert checked_after(target) == ""


@pytest.mark.parametrize("target", ["join?code=0aZ", "login/approve?code=BCDF-GHJK", "acme/analytics/clusters/7"])
def test_pages_of_ours_are_come_back_to(target: str) -> None:
    assert checked_after(target) == target


def test_accounts_stand_in_the_menu_and_others_do_not_exist(world: LocalAdapters) -> None:
    ann = person(world, "ann", acme="member", beta="admin")
    for account, role in (("acme", "member"), ("beta", "admin")):
        seen = ann.get(f"/{account}/analytics")
        assert seen["statusCode"] == 200
        assert f"{role} of {account}" in seen["body"]
        assert re.findall(r'<li><a href="\.\./(\w+)/analytics"', seen["body"]) == [
            account,
            *{"acme", "beta"} - {account},
        ]
    missing = ann.get("/other/analytics")
    assert missing["statusCode"] == 404
    assert "No account other for this token: ann is in acme, beta." in missing["body"]


def test_who_left_the_account_they_came_by_is_at_home_in_another(world: LocalAdapters) -> None:
    ann = person(world, "ann", acme="member", beta="member")
    world.users.remove("acme", "ann")
    house.gate.cache_clear()
    assert ann.get("/")["headers"]["Location"] == "beta/analytics"
    assert ann.get("/acme/analytics")["statusCode"] == 401
    assert "ann is not in account acme any more: name another one (beta)." in ann.body
    token = mint(world.tokens, world.clock, "acme", {"read"}, "laptop", user="ann")[0]
    again = Browser()
    again.get("/login")
    assert again.fill("/login", token=token)["headers"]["Location"] == "beta/analytics"
    world.users.remove("beta", "ann")
    house.gate.cache_clear()
    assert ann.get("/")["statusCode"] == 401


def test_a_link_by_scheduler_finds_it_in_whichever_account_of_theirs(world: LocalAdapters, post: Post) -> None:
    post(message(), account="beta")
    post(message(cluster="f" * 32), account="other")
    ann = person(world, "ann", acme="member", beta="viewer")
    assert ann.get(f"/c/{CLUSTER}")["headers"]["Location"] == "../beta/analytics/clusters/1"
    assert ann.get("/c/" + "f" * 32)["statusCode"] == 404


def test_on_loopback_pages_are_open_and_who_signs_in_is_known(
    world: LocalAdapters, env: LocalEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    into(world, monkeypatch, replace(env, pages="open"))
    anybody = Browser()
    assert 'href="../login?next=local/analytics">Sign in' in anybody.get("/local/analytics")["body"]
    assert anybody.get("/acme/analytics")["statusCode"] == 404
    anybody.cookies = {"daskscope": "dks_stale"}
    assert anybody.get("/local/analytics")["statusCode"] == 200
    ann = person(world, "ann", local="admin", acme="viewer")
    assert "admin of local" in ann.get("/local/analytics")["body"]
    assert "viewer of acme" in ann.get("/acme/analytics")["body"]


def test_a_session_s_text_is_no_token_to_sign_in_with(world: LocalAdapters) -> None:
    ann, browser = person(world, "ann", acme="member"), Browser()
    browser.get("/login")
    answer = browser.fill("/login", token=ann.cookies["daskscope"])
    assert (answer["statusCode"], answer["cookies"]) == (401, [])
    assert len(world.tokens.list("acme")) == 1

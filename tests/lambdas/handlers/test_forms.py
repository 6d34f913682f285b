"""Forms of pages: nothing that another site's page sends changes anything, on any route there is."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from daskscope.testing import message
from daskscope_lambdas.env import AwsEnv, LocalEnv, Pages
from daskscope_lambdas.handlers import api, house
from daskscope_lambdas.service.tickets import invitation
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.browsers import HOST, Browser, link, person
from tests.lambdas.handlers.conftest import event

Post = Callable[..., dict[str, Any]]
CHANGING = ("POST", "PUT", "PATCH", "DELETE")
FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://[broken"},
    {"origin": f"http://{HOST}.evil.example"},
    {"origin": f"http://{HOST}:81"},
    {"origin": f"ftp://{HOST}"},
    {"origin": "", "sec_fetch_site": "cross-site"},
    {"origin": "", "sec_fetch_site": "same-site"},
]
# What may be posted without a token or session: it asks for something, and changes nothing of anybody's.
ASKING = {"/api/v1/login", "/api/v1/login/token"}


def routes() -> Iterator[tuple[str, str]]:
    """Method and path of every route that changes something."""
    for route in [*api.app._static_routes, *api.app._dynamic_routes]:
        methods = route.method if isinstance(route.method, (list, tuple)) else [route.method]
        for method in {each.upper() for each in methods} & set(CHANGING):
            yield method, route.path


def spelled(path: str, account: str = "acme") -> str:
    return re.sub(r"<\w+>", "1", path.replace("<account>", account))


def rows(env: LocalEnv) -> dict[str, Any]:
    """All that a request could have changed."""
    with closing(sqlite3.connect(Path(env.data) / "registry.sqlite")) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert {"tokens", "tickets", "users", "memberships", "reports", "clusters"} <= set(names)
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}


PAGES = sorted(path for _, path in routes() if not path.startswith("/api/"))
JSON = sorted((method, path) for method, path in routes() if path.startswith("/api/") and path not in ASKING)


def test_all_routes_are_seen() -> None:
    assert {"/login", "/logout", "/join", "/login/approve"} <= set(PAGES)
    assert ("POST", "/api/v1/<account>/clusters/<cluster>/close") in JSON


@pytest.fixture
def admin(world: LocalAdapters, post: Post) -> Browser:
    """Signed in, and may do all, in an account with a cluster."""
    post(message())
    browser = person(world, "ann", acme="admin")
    browser.get("/acme/analytics")
    return browser


def test_another_site_s_page_posts_nothing(admin: Browser, world: LocalAdapters, env: LocalEnv) -> None:
    """Though it may know the word of the form, and has the cookies."""
    word = csrf(admin)
    code = link(world.tickets, world.clock).partition("=")[2]
    joining = invitation(world.tickets, world.clock, "beta", "member", "operator").url.partition("=")[2]
    before = rows(env)
    for path, code_, headers in product(PAGES, (code, joining), FOREIGN):
        answer = admin.post(spelled(path), {"csrf": word, "code": code_, "private": "true"}, **headers)
        assert (answer["statusCode"], "page of another site" in answer["body"]) == (403, True), (path, headers)
        assert not answer["cookies"]
    assert rows(env) == before


def test_a_form_without_the_page_s_word_changes_nothing(admin: Browser, env: LocalEnv) -> None:
    before = rows(env)
    for path, word in product(PAGES, (None, "", "x", "0" * 43, "\u00e9")):
        answer = admin.post(spelled(path), {} if word is None else {"csrf": word})
        assert (answer["statusCode"], "earlier sign-in" in answer["body"]) == (403, True), (path, word)
    assert rows(env) == before


@pytest.mark.parametrize("pages", ["open", "login"])
def test_json_is_changed_by_a_token_alone(
    world: LocalAdapters, env: LocalEnv, monkeypatch: pytest.MonkeyPatch, pages: Pages
) -> None:
    """No cookie, no loopback: a page of another site can send both."""
    ann = person(world, "ann", local="admin")
    monkeypatch.setattr(house, "read", lambda: replace(env, pages=pages))
    house.env.cache_clear()
    before = rows(env)
    cookies = tuple(f"{name}={value}" for name, value in ann.cookies.items())
    for (method, path), kind in product(JSON, ("text/plain", "application/json", "")):
        headers = {"content-type": kind} if kind else {}
        answer = api.handler(event(method, spelled(path, "local"), headers, b"{}", cookies=cookies), None)
        assert (answer["statusCode"], code(answer)) == (401, "not-logged-in"), (method, path)
    assert rows(env) == before


def test_our_own_page_is_known_by_its_host(admin: Browser, world: LocalAdapters) -> None:
    admin.get("/acme/analytics/clusters/1")
    for told in ({}, {"origin": f"https://{HOST}"}, {"origin": f"HTTP://{HOST.upper()}"}, {"origin": ""},
                 {"origin": "", "sec_fetch_site": ""}, {"sec_fetch_site": "none"}):  # fmt: skip
        answer = admin.post("/login", {"csrf": csrf(admin), "token": "x"}, **told)
        assert answer["statusCode"] == 401, told


def test_behind_a_proxy_our_own_page_is_known_by_the_address(
    world: LocalAdapters, env: LocalEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house, "read", lambda: replace(env, address="https://Scope.Acme.example/dask"))
    house.env.cache_clear()
    browser = Browser("https://scope.acme.example")
    assert browser.post("/login", {"token": "x"})["statusCode"] == 401
    assert browser.post("/login", {"token": "x"}, origin="http://scope.acme.example")["statusCode"] == 403


def test_in_aws_our_own_page_came_by_https(world: LocalAdapters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house, "read", lambda: AwsEnv(bucket="b", table="t", queue_url="q", keys="/k"))
    house.env.cache_clear()
    assert Browser(f"https://{HOST}").post("/login", {"token": "x"})["statusCode"] == 401
    assert Browser(f"http://{HOST}").post("/login", {"token": "x"})["statusCode"] == 403


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"token=x", {"content-type": "text/plain"}, 415),
        (b"token=x", {"content-type": "multipart/form-data; boundary=x"}, 415),
        (b"token=x", {}, 415),
        (b"token=" + b"x" * 65_531, {}, 413),
        (b"token=x&token=y", {}, 422),
        (b"token=%FF", {}, 422),
        (b"\xff\xfe", {}, 422),
        (b"&".join(b"f%d=" % i for i in range(101)), {}, 422),
    ],
)
def test_what_is_no_form_of_ours(world: LocalAdapters, body: bytes, headers: dict[str, str], status: int) -> None:
    sent = {"content-type": "application/x-www-form-urlencoded"} if status != 415 else {}
    answer = api.handler(event("POST", "/login", {"host": HOST, **sent, **headers}, body), None)
    assert answer["statusCode"] == status
    assert not answer.get("cookies")


def test_the_largest_form_is_read(world: LocalAdapters) -> None:
    body = b"token=" + b"x" * 65_530
    headers = {"host": HOST, "content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    assert api.handler(event("POST", "/login", headers, body), None)["statusCode"] == 401


def test_a_gateway_may_hand_a_form_over_as_text(world: LocalAdapters) -> None:
    headers = {"host": HOST, "content-type": "application/x-www-form-urlencoded"}
    code = link(world.tickets, world.clock).partition("=")[2]
    asked = event("POST", "/login", headers) | {"body": urlencode({"code": code}), "isBase64Encoded": False}
    assert api.handler(asked, None)["statusCode"] == 303


def csrf(browser: Browser) -> str:
    return re.findall(r'name="csrf" value="(\w+)"', browser.body)[0]


def code(answer: dict[str, Any]) -> str:
    return json.loads(answer["body"])["error"]["code"]

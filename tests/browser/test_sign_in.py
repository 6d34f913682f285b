"""Signing in, joining, letting a terminal in and stopping a cluster, in a real browser, most of it without a script."""

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.service.people import People
from daskscope_lambdas.service.tickets import invitation, sign_in_link
from daskscope_lambdas.service.tokens import OF_ROLES
from daskscope_lambdas.wiring import LocalAdapters, connect
from tests.browser.chromium import VIEWS
from tests.browser.elsewhere import Elsewhere
from tests.browser.fleet import Fleet
from tests.lambdas.serving import Serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """With two clusters that run."""
    with Serving(tmp_path_factory.mktemp("sign-in"), "--reports-port", "0") as running:
        fleet = Fleet(running.url, running.ingest_token, int(time.time() * 1000))
        fleet.busy()
        fleet.idle()
        fleet.close()
        yield running


@pytest.fixture(scope="module")
def world(server: Serving) -> Iterator[LocalAdapters]:
    """What the server keeps, and ann, who is in two accounts."""
    found = connect(LocalEnv(data=str(server.data)))
    people = People(found.users, found.clock)
    people.put("local", "ann", "admin", "test")
    people.put("climate", "ann", "viewer", "test")
    yield found
    found.close()


@pytest.fixture
def context(browser: Browser, server: Serving, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    found = browser.new_context(base_url=server.url, **getattr(request, "param", {}))
    yield found
    found.close()


def link(world: LocalAdapters) -> str:
    return "/" + sign_in_link(world.tickets, world.clock, "local", OF_ROLES["admin"], user="ann").url


def sign_in(context: BrowserContext, world: LocalAdapters) -> Page:
    page = context.new_page()
    page.goto(link(world))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/local/analytics")
    return page


WITHOUT_SCRIPT = [{"java_script_enabled": False}]


@pytest.mark.parametrize("context", WITHOUT_SCRIPT, indirect=True)
def test_in_and_out_by_keyboard_without_a_script(context: BrowserContext, world: LocalAdapters) -> None:
    page = context.new_page()
    page.goto(link(world))
    button = page.get_by_role("button", name="Sign in")
    for _ in range(5):
        page.keyboard.press("Tab")
        if button.evaluate("button => button === document.activeElement"):
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/local/analytics")
    (cookie,) = context.cookies()
    assert (cookie.get("name"), cookie.get("httpOnly"), cookie.get("sameSite")) == ("daskscope", True, "Lax")
    menu = page.locator("header summary")
    menu.focus()
    page.keyboard.press("Enter")
    assert page.get_by_text("admin of local").is_visible()
    page.get_by_role("link", name="climate").click()
    page.wait_for_url("**/climate/analytics")
    page.locator("header summary").press("Enter")
    assert page.get_by_text("viewer of climate").is_visible()
    page.get_by_role("button", name="Sign out").press("Enter")
    page.wait_for_url("**/login")
    assert context.cookies() == []


@pytest.mark.parametrize("context", WITHOUT_SCRIPT, indirect=True)
def test_a_terminal_is_let_in(context: BrowserContext, world: LocalAdapters, server: Serving) -> None:
    asked = server.http.post("/api/v1/login", json={"client": "daskscope on laptop"}).json()
    page = context.new_page()
    page.goto("/" + asked["url"])
    assert page.get_by_role("heading", level=1).inner_text() == "Sign in", "first of all"
    page.get_by_label("Token").fill(server.token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/" + asked["url"])
    # The server's own token is of whoever started it.
    assert page.locator("p.code").inner_text() == asked["user_code"]
    page.get_by_label("For its clusters, the account").select_option("local")
    page.get_by_role("button", name="Approve").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Approved"
    found = server.http.post("/api/v1/login/token", json={"device_code": asked["device_code"]}).json()
    told = server.http.get("/api/v1/whoami", headers={"Authorization": f"Bearer {found['token']}"}).json()
    assert (told["account"], told["user"]) == ("local", found["user"])


@pytest.mark.parametrize("context", WITHOUT_SCRIPT, indirect=True)
def test_somebody_joins(context: BrowserContext, world: LocalAdapters) -> None:
    page = context.new_page()
    page.goto("/" + invitation(world.tickets, world.clock, "climate", "member", "ann", user=None).url)
    assert page.get_by_role("heading", level=1).inner_text() == "Join account climate"
    page.get_by_label("Your name here").fill("b o b")
    page.get_by_role("button", name="Join").click()
    assert "/join" in page.url, "the browser itself knows what no name is"
    page.get_by_label("Your name here").fill("bob")
    page.get_by_role("button", name="Join").click()
    assert "ann, who sent the invitation, is no admin of climate" in page.get_by_role("alert").inner_text()
    page.goto("/" + invitation(world.tickets, world.clock, "climate", "member", "operator root").url)
    page.get_by_label("Your name here").fill("bob")
    page.get_by_role("button", name="Join").click()
    page.wait_for_url("**/climate/analytics")
    assert "bob in climate" in page.locator("header summary").inner_text()


@pytest.mark.parametrize("context", WITHOUT_SCRIPT, indirect=True)
def test_a_cluster_is_stopped(context: BrowserContext, world: LocalAdapters, server: Serving) -> None:
    page = sign_in(context, world)
    page.get_by_role("link", name="idle-etl").click()
    page.get_by_text("Stop this cluster").click()
    page.get_by_role("button", name="Stop cluster 2").click()
    page.wait_for_url("**/clusters/2")
    assert "by ann" in page.locator("dl.strip").inner_text()
    assert page.get_by_text("Stop this cluster").count() == 0
    assert world.clusters.get("local", 2).close_asked_by == "ann"


def test_a_page_of_another_site_changes_nothing(context: BrowserContext, world: LocalAdapters, server: Serving) -> None:
    """With a word that it cannot have, even: the browser itself says where a form is from."""
    ann = sign_in(context, world)
    word = ann.locator('input[name="csrf"]').first.get_attribute("value")
    before = [(row.key_id, row.revoked_at) for row in world.tokens.list("local")]
    with Elsewhere() as site:
        # Another port of this host gets the cookie along, another host does not.
        for host, path, status in (
            ("127.0.0.1", "/local/analytics/clusters/1/close", 403),
            ("127.0.0.1", "/logout", 403),
            ("localhost", "/local/analytics/clusters/1/close", 401),
            ("localhost", "/login", 403),
        ):
            site.pages["/form"] = (
                f'<form method="post" action="{server.url}{path}"><input name="csrf" value="{word}"></form>'
                "<script>document.forms[0].submit()</script>"
            )
            page = context.new_page()
            with page.expect_response(server.url + path) as answered:
                page.goto(f"{site.url.replace('127.0.0.1', host)}/form")
            assert (answered.value.status, page.url) == (status, server.url + path)
            page.close()
    row = world.clusters.find("local", world.clusters.get("local", 1).uuid)
    assert row.close_asked_at is None
    assert [(row.key_id, row.revoked_at) for row in world.tokens.list("local")] == before
    ann.reload()
    assert "ann in local" in ann.locator("header summary").inner_text()


def test_no_script_reads_the_session(context: BrowserContext, world: LocalAdapters) -> None:
    assert sign_in(context, world).evaluate("document.cookie") == ""


@pytest.mark.parametrize("context", VIEWS[::3], indirect=True)
def test_the_doors_fit_their_window(context: BrowserContext, world: LocalAdapters, server: Serving) -> None:
    asked = server.http.post("/api/v1/login", json={"client": "x" * 100}).json()
    invited = invitation(world.tickets, world.clock, "climate", "viewer", "operator " + "y" * 60).url
    signed_in = sign_in(context, world)
    signed_in.locator("header summary").click()
    page = context.new_page()
    targets = ["/login", link(world), "/login?code=nonsense", "/" + invited, "/" + asked["url"], "/login/approve"]
    for target in targets:
        page.goto(target)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), target
        assert page.locator("script, style, [style]").count() == 0
        unnamed = page.evaluate(
            "[...document.querySelectorAll('input:not([type=hidden]), select')].filter(field => !field.labels.length)"
            ".length"
        )
        assert unnamed == 0, target
    assert signed_in.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    menu = signed_in.locator("header .drop").bounding_box()
    assert menu
    assert menu["x"] >= 0
    assert menu["x"] + menu["width"] <= signed_in.evaluate("window.innerWidth")


def test_serve_prints_a_link_that_signs_in(server: Serving, context: BrowserContext) -> None:
    assert server.process.stdout
    line = server.process.stdout.readline().decode()
    found = re.fullmatch(r"sign in at +(http\S+/login\?code=\w{22})\n", line)
    assert found, line
    page = context.new_page()
    page.goto(found[1])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/local/analytics")

import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route

from tests.browser.chromium import VIEWS
from tests.browser.fleet import HOSTILE, Fleet
from tests.lambdas.serving import Serving, until

PREFIX = "/user/ada/proxy/8790"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """With a fleet in it, depth included."""
    with Serving(tmp_path_factory.mktemp("pages")) as running:
        fleet = Fleet(running.url, running.ingest_token, int(time.time() * 1000))
        for post in (fleet.finished, fleet.lost, fleet.idle, fleet.busy, fleet.hostile):
            post()
        fleet.close()
        until(lambda: running.api("local/clusters/5/events")["items"])
        yield running


class Watched:
    """A page whose complaints are kept: console errors, exceptions, requests to anywhere but the server."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.page: Page = context.new_page()
        self.complaints = list[str]()
        self._url = url
        self.page.on("console", lambda line: self.complaints.append(line.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda request: self.complaints.append(request.url))
        context.route("**/*", self._guard)

    def _guard(self, route: Route) -> None:
        if route.request.url.startswith(self._url):
            route.continue_()
        else:
            self.complaints.append(f"outside: {route.request.url}")
            route.abort()


@pytest.fixture
def watched(browser: Browser, server: Serving, request: pytest.FixtureRequest) -> Iterator[Watched]:
    options: dict[str, Any] = getattr(request, "param", {})
    context = browser.new_context(base_url=server.url, **options)
    found = Watched(context, server.url)
    yield found
    context.close()
    assert found.complaints == []


@pytest.mark.parametrize("watched", VIEWS, indirect=True)
@pytest.mark.parametrize("path", ["/local/analytics", "/local/analytics/clusters/4", "/local/analytics/clusters/5"])
def test_a_page_fits_its_window(watched: Watched, path: str):
    watched.page.goto(path)
    assert watched.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    background = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
    dark = watched.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert background == ("rgb(18, 23, 30)" if dark else "rgb(255, 255, 255)"), "the style sheet was loaded"


@pytest.mark.parametrize("watched", [{"viewport": {"width": 1280, "height": 800}}], indirect=True)
def test_the_list_shows_all_its_columns_on_a_laptop(watched: Watched):
    watched.page.goto("/local/analytics")
    table = watched.page.locator(".scroll").first
    assert table.evaluate("box => box.scrollWidth - box.clientWidth") <= 0


def test_what_a_cluster_calls_itself_fills_no_screen(watched: Watched):
    page = watched.page
    page.goto("/local/analytics/clusters/5")
    page.locator("h1").evaluate("h1 => { h1.textContent = 'x '.repeat(5000) }")
    page.locator(".told").first.evaluate("told => { told.textContent = 'y'.repeat(5000) }")
    boxes = [page.locator(part).first.bounding_box() for part in ("h1", ".told")]
    assert [box is not None and box["height"] < 90 for box in boxes] == [True, True]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_list_shows_each_status_in_words(watched: Watched):
    watched.page.goto("/")
    rows = watched.page.locator("tbody tr")
    statuses = [text.split()[-1] for text in rows.locator("td:first-child").all_inner_texts()]
    assert statuses == ["running", "running", "idle", "lost", "stopped"]
    watched.page.get_by_label("User").fill("alice")
    watched.page.get_by_role("button", name="Filter").click()
    assert rows.count() == 1
    watched.page.get_by_role("link", name="idle-etl").click()
    assert watched.page.get_by_role("heading", level=1).inner_text() == "idle-etl"
    strip = watched.page.locator("dl.strip").inner_text()
    assert "1 client connected, 240 results (18 GiB) held; no idle timeout set." in strip


def test_the_cluster_page_shows_what_happened(watched: Watched):
    page = watched.page
    page.goto("/local/analytics/clusters/4")
    body = page.locator("main").inner_text().replace("\u00a0", " ")
    for expected in ("99 % of 1,600 tasks done", "KeyError", "out of memory", "shuffle-transfer-22", "5 erred",
                     "groupby(\"station\")", "12 (events over the cap)", "10.0.0.3:40003", "left"):  # fmt: skip
        assert expected in body, expected
    assert page.locator("figure svg path").count() >= 5
    page.get_by_text("Traceback").last.click()
    assert page.get_by_text('row["price"]').is_visible()
    assert page.locator("table").first.locator("th[scope=row]").count() == 41, "each chart has its numbers"


def test_hostile_names_are_text(watched: Watched):
    page = watched.page
    for path in ("/local/analytics", "/local/analytics/clusters/5"):
        page.goto(path)
        assert page.title() != "1"
        assert page.locator("img, script").count() == 0
        assert HOSTILE in page.locator("main").inner_text()
    assert page.locator("a[href^=javascript]").count() == 0


def test_the_keyboard_reaches_everything(watched: Watched):
    page = watched.page
    page.goto("/local/analytics")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "To the content"
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.locator(":focus").inner_text() == "nightly-etl":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/clusters/4")


def test_it_works_under_a_path_prefix(browser: Browser, server: Serving):
    """As behind jupyter-server-proxy: the prefix is gone when a request reaches the server."""
    context = browser.new_context(base_url=server.url)
    page, outside = context.new_page(), list[str]()

    def proxy(route: Route) -> None:
        path = route.request.url.removeprefix(server.url)
        if not path.startswith(PREFIX + "/"):
            outside.append(path)
            route.abort()
            return
        answer = route.fetch(url=server.url + path.removeprefix(PREFIX), max_redirects=0)
        route.fulfill(response=answer)

    context.route("**/*", proxy)
    page.goto(PREFIX + "/local/analytics")
    assert page.evaluate("getComputedStyle(document.body).margin") == "0px", "the style sheet was loaded"
    page.get_by_role("link", name="nightly-etl").click()
    assert page.url.endswith(PREFIX + "/local/analytics/clusters/4")
    page.get_by_role("link", name="local", exact=True).click()
    assert page.url.endswith(PREFIX + "/local/analytics")
    page.wait_for_load_state("networkidle")
    assert outside == []
    assert server.http.get("/").headers["location"] == "local/analytics"
    assert server.http.get("/c/" + "a" * 32).headers["location"] == "../local/analytics/clusters/4"
    context.close()


def test_without_a_server_that_knows_it_the_page_waits(watched: Watched):
    with watched.page.expect_console_message() as said:
        watched.page.goto("/c/" + "0" * 32)
    assert "404" in said.value.text, "chromium reports every 404 on its console"
    watched.complaints.remove(said.value.text)
    assert watched.page.get_by_role("heading", level=1).inner_text() == "Not heard of yet"

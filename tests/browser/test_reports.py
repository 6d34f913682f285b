"""Reports in a real browser: Dask's own draw all that they have, and a hostile one reaches nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import bokeh
import distributed
import httpx
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Dialog,
    Download,
    FrameLocator,
    Locator,
    Page,
    Request,
    Response,
    Route,
    StorageState,
)
from playwright.sync_api import Error as PlaywrightError

from daskscope_lambdas.isolation import HEADERS
from tests.browser.elsewhere import Elsewhere
from tests.lambdas.serving import Serving, until

Form = Literal["inline", "cdn"]
BOKEH_JS = Path(bokeh.__file__).parent / "server" / "static" / "js"
DRAWN = """all => all.filter(canvas => canvas.width && canvas.height && canvas.getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height).data.some(value => value)).length"""
PROBES = {"cookie", "storage", "database", "page", "api", "change", "beacon", "events", "script", "style", "frame",
          "worker", "window", "dialog", "download", "form", "base", "top"}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("reports"), "--reports-port", "0") as running:
        yield running


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    with Elsewhere() as site:
        yield site


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[Form, bytes]:
    """What Dask itself writes of a small computation, in both its forms."""
    folder = tmp_path_factory.mktemp("dask")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, host="127.0.0.1", protocol="tcp", dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
        distributed.performance_report(str(folder / "cdn.html"), mode="cdn"),
        distributed.performance_report(str(folder / "inline.html"), mode="inline"),
    ):
        client.gather(client.map(lambda x: sum(range(x % 7 * 10_000)), range(60)))
    return {form: (folder / f"{form}.html").read_bytes() for form in ("inline", "cdn")}


def keep(server: Serving, body: bytes, **told: Any) -> dict[str, Any]:
    """A report, all the way, as a client brings it."""
    path, announced = "/api/v1/local/reports", {"filename": "dask-report.html", "size_bytes": len(body), **told}
    made = server.http.post(path, headers=server.bearer, json=announced).raise_for_status().json()
    url = server.http.base_url.join("/" + made["upload"]["url"])
    server.http.put(url, content=body, headers={"Content-Type": "text/html"}).raise_for_status()
    kept = server.http.post(f"{path}/{made['id']}/uploaded", headers=server.bearer).raise_for_status().json()
    assert kept["status"] == "kept"
    return kept


@dataclass
class Seen:
    """What a page did that somebody could notice."""

    page: Page
    came: dict[str, bool] = field(default_factory=dict[str, bool])
    """What the hostile page says of its probes."""
    lines: list[str] = field(default_factory=list[str])
    requests: list[Request] = field(default_factory=list[Request])
    probes: set[str] = field(default_factory=set[str])
    """What the browser noticed itself, by the name of the probe: an answer, a window, a dialog, a download."""

    @classmethod
    def of(cls, context: BrowserContext, page: Page) -> Seen:
        seen = cls(page)
        context.on("response", seen.answered)
        context.on("request", lambda request: seen.requests.append(request))
        page.on("console", lambda line: seen.said(line.text))
        page.on("popup", lambda _popup: seen.probes.add("window"))
        page.on("dialog", seen.asked)
        page.on("download", seen.saved)
        return seen

    def answered(self, response: Response) -> None:
        self.probes |= set(parse_qs(urlsplit(response.url).query).get("probe", []))

    def said(self, line: str) -> None:
        self.lines.append(line)
        if line.startswith("told: "):
            self.came = json.loads(line.removeprefix("told: "))

    def asked(self, dialog: Dialog) -> None:
        self.probes.add("dialog")
        dialog.dismiss()

    def saved(self, _download: Download) -> None:
        self.probes.add("download")

    def told_cookies(self) -> set[str | None]:
        """Hosts that were asked with one."""
        return {urlsplit(each.url).hostname for each in self.requests if "cookie" in each.all_headers()}

    def after(self, url: str) -> set[str]:
        """The probes that came through, once the page there has tried all but the last."""
        with self.page.expect_console_message(lambda line: line.text.startswith("told: ")):
            self.page.goto(url)
        return self.probes | {name for name, came in self.came.items() if came}

    def lead(self) -> None:
        """The last one."""
        with suppress(PlaywrightError):  # as it is refused
            self.page.frames[1 if len(self.page.frames) > 1 else 0].evaluate("lead()")


def hostile(server: Serving, elsewhere: Elsewhere) -> str:
    text = Path(__file__).with_name("hostile.html").read_text()
    return text.replace("@app@", server.url).replace("@elsewhere@", elsewhere.url)


@pytest.fixture(scope="module")
def session(browser: Browser, server: Serving) -> StorageState:
    """Of a browser that is signed in."""
    context = browser.new_context(base_url=server.url)
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("Token").fill(server.token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/local/analytics")
    found = context.storage_state()
    context.close()
    return found


@pytest.fixture
def seen(browser: Browser, server: Serving, session: StorageState) -> Iterator[Seen]:
    """A page of somebody who is signed in, and gets Bokeh's own files where they are asked for."""
    context = browser.new_context(base_url=server.url, storage_state=session)
    context.route("https://cdn.bokeh.org/**", from_bokeh)
    yield Seen.of(context, context.new_page())
    context.close()


def from_bokeh(route: Route) -> None:
    name = route.request.url.rpartition("/")[2].replace(f"-{bokeh.__version__}", "")
    route.fulfill(path=BOKEH_JS / name)


def figures(page: Page, inside: Page | FrameLocator) -> dict[str, int]:
    """By tab of a report, how many canvases have something drawn on them."""
    found = dict[str, int]()
    tabs = inside.locator(".bk-tab")
    tabs.first.wait_for()
    for tab in tabs.all():
        tab.click()
        if name := tab.inner_text():
            found[name] = n_drawn(inside.locator("canvas:visible"))
    return found


def n_drawn(canvases: Locator) -> int:
    """How many of them have something drawn on them, once half of them do."""
    until(lambda: canvases.count() == 0 or canvases.evaluate_all(DRAWN) * 2 >= canvases.count())
    return canvases.evaluate_all(DRAWN)


@pytest.fixture(scope="module")
def drawn(browser: Browser, elsewhere: Elsewhere, reports: dict[Form, bytes]) -> dict[str, int]:
    """What there is to be seen of a report where nothing isolates it."""
    elsewhere.pages["/plain"] = reports["inline"].decode()
    page = browser.new_page()
    page.goto(f"{elsewhere.url}/plain")
    found = figures(page, page)
    page.close()
    assert found["Summary"] == 0, "text alone"
    assert [n for n in found.values() if n] != []
    return found


@pytest.mark.parametrize(("form", "private"), [("inline", False), pytest.param("cdn", True, marks=pytest.mark.long)])
def test_a_report_of_dask_draws_all_that_it_has(
    seen: Seen, server: Serving, reports: dict[Form, bytes], drawn: dict[str, int], form: Form, private: bool
):
    kept = keep(server, reports[form], title="Nightly", private=private)
    seen.page.goto(f"/{kept['url']}")
    frame = seen.page.frame_locator("iframe.report")
    frame.get_by_text("number of tasks: 60").wait_for()
    assert figures(seen.page, frame) == drawn
    refused = [line for line in seen.lines if "violates" in line]
    assert [line for line in refused if "favicon" not in line] == [], "an icon is all it has to do without"


def test_names_of_any_length_fit_a_narrow_window(seen: Seen, server: Serving):
    kept = keep(server, b"<html><p>figures", title="<b>" + "W" * 190, filename="x" * 195 + ".html")
    page = seen.page
    page.set_viewport_size({"width": 380, "height": 800})
    page.goto("/local/reports")
    box = page.get_by_text("anyone with the link").first.bounding_box()
    assert box
    assert box["x"] + box["width"] <= 380, "who may see it is seen"
    for path in ("/local/reports", f"/{kept['url']}"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
        assert page.locator("main b").count() == 0
    assert page.frame_locator("iframe.report").get_by_text("figures").is_visible()


def test_where_nothing_isolates_it_the_hostile_page_gets_through(seen: Seen, server: Serving, elsewhere: Elsewhere):
    """Else the next test would show nothing."""
    elsewhere.pages["/hostile"] = hostile(server, elsewhere)
    elsewhere.pages["/around"] = '<iframe src="/hostile"></iframe>'
    with seen.page.expect_download():
        came = seen.after(f"{elsewhere.url}/around")
    seen.lead()
    seen.page.wait_for_url("**/top?probe=top")
    assert came | seen.probes | elsewhere.probes == PROBES


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_a_hostile_report_reaches_nothing(
    seen: Seen, server: Serving, elsewhere: Elsewhere, private: bool, alone: bool
):
    elsewhere.probes.clear()
    kept = keep(server, hostile(server, elsewhere).encode(), private=private)
    url = f"{server.url}/{kept['url']}"
    if alone:
        seen.page.goto(url)
        url = seen.page.locator("iframe.report").get_attribute("src") or ""
        assert urlsplit(url).hostname == "localhost"
    came = seen.after(url)
    seen.lead()
    assert seen.came.keys() | {"top"} == PROBES, "all were tried"
    assert (came | seen.probes, elsewhere.probes, seen.page.url) == (set(), set(), url)
    assert server.api("local/clusters")["items"] == []
    assert seen.told_cookies() == {"127.0.0.1"}, "the reports' own origin is told none"


def test_its_address_is_dead_once_a_report_is_hidden_or_deleted(seen: Seen, server: Serving):
    kept = keep(server, b"<html><p>figures")
    page, api = seen.page, f"/api/v1/local/reports/{kept['id']}"

    def address() -> str:
        page.goto(f"/local/reports/{kept['id']}")
        return page.locator("iframe.report").get_attribute("src") or ""

    def status(url: str) -> int:
        return httpx.get(url, trust_env=False).status_code

    def press(name: str) -> None:
        page.get_by_role("button", name=name).click()
        page.wait_for_load_state()

    public = address()
    assert status(public) == 200
    press("Make it private")
    private = address()
    assert (status(public), status(private)) == (404, 200)
    assert status(private.replace("/private/", "/public/")) == 403
    assert status(private[:-1]) == status(private.partition("?")[0]) == 403
    page.get_by_text("Delete", exact=True).click()
    press("Delete it for good")
    assert (status(public), status(private)) == (404, 404)
    assert server.http.get(api, headers=server.bearer).status_code == 404
    assert httpx.get(private, trust_env=False).headers["content-security-policy"] == HEADERS["Content-Security-Policy"]

"""Reports in a real browser: Dask's own draw all that they have, and a hostile one reaches nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import bokeh
import distributed
import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Download, Page, Response, Route, sync_playwright

from daskscope_lambdas.isolation import HEADERS
from tests.browser.elsewhere import Elsewhere
from tests.browser.test_pages import CHROMIUM, FLAGS
from tests.lambdas.serving import Serving, until

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="needs /usr/bin/chromium (apt-get install chromium)")

Form = Literal["inline", "cdn"]
BOKEH_JS = Path(bokeh.__file__).parent / "server" / "static" / "js"
PROBES = {"cookie", "storage", "database", "page", "api", "change", "beacon", "events", "script", "style", "frame",
          "worker", "window", "dialog", "download", "form", "base", "top"}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("reports"), "--reports-port", "0") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    with Elsewhere() as site:
        yield site


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[Form, bytes]:
    """What Dask itself writes of a small computation, in both its forms."""
    folder = tmp_path_factory.mktemp("dask")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        distributed.performance_report(folder / "cdn.html", mode="cdn"),
        distributed.performance_report(folder / "inline.html", mode="inline"),
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
    probes: set[str] = field(default_factory=set[str])
    """What the browser noticed itself, by the name of the probe: an answer, a window, a dialog, a download."""

    @classmethod
    def of(cls, context: BrowserContext, page: Page) -> Seen:
        seen = cls(page)
        context.on("response", seen.answered)
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

    def after(self, url: str) -> set[str]:
        """The probes that came through, once the page there has tried all."""
        with self.page.expect_console_message(lambda line: line.text == "told all"):
            self.page.goto(url)
        return self.probes | {name for name, came in self.came.items() if came}


def hostile(server: Serving, elsewhere: Elsewhere) -> str:
    text = Path(__file__).with_name("hostile.html").read_text()
    return text.replace("@app@", server.url).replace("@elsewhere@", elsewhere.url)


@pytest.fixture
def seen(browser: Browser, server: Serving) -> Iterator[Seen]:
    """A page of a browser that is signed in."""
    context = browser.new_context(base_url=server.url)
    yield Seen.of(context, context.new_page())
    context.close()


def test_where_nothing_isolates_it_the_hostile_page_gets_through(seen: Seen, server: Serving, elsewhere: Elsewhere):
    """Else the tests below would show nothing."""
    elsewhere.pages["/hostile"] = hostile(server, elsewhere)
    elsewhere.pages["/around"] = '<iframe src="/hostile"></iframe>'
    came = seen.after(f"{elsewhere.url}/around") 
    until(lambda: "top" in elsewhere.probes)
    assert came | elsewhere.probes == PROBES


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_a_hostile_report_reaches_nothing(seen: Seen, server: Serving, elsewhere: Elsewhere, private: bool, alone: bool):
    elsewhere.probes.clear()
    kept = keep(server, hostile(server, elsewhere).encode(), private=private)
    url = f"{server.url}/{kept['url']}"
    if alone:
        seen.page.goto(url)
        url = seen.page.locator("iframe.report").get_attribute("src") or ""
    came = seen.after(url)
    assert seen.came.keys() | {"top"} == PROBES, "all were tried"
    assert came == set()
    assert elsewhere.probes == set()
    assert seen.page.url == url

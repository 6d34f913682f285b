"""A run's report as a file: opened from disk, without a network, with and without a script."""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from daskscope.testing import boot_at, tasks
from tests.browser.fleet import ADDRESSES, HOSTILE, Fleet
from tests.lambdas.serving import Serving, until

Open = Callable[..., Page]
N_TASKS = 400
INK = """() => {
  const canvas = document.querySelector("canvas"), pen = canvas.getContext("2d");
  const bytes = pen.getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Set();
  for (let i = 0; i < bytes.length; i += 4) if (bytes[i + 3]) seen.add(bytes.slice(i, i + 3).join());
  return seen.size;
}"""
"""How many colours were drawn."""


class Rows(Fleet):
    """With a row for each of many tasks."""

    def _happenings(self, start: int) -> dict[str, Any]:
        rows = tasks(
            N_TASKS, from_ms=start + 5_000, addresses=ADDRESSES[:2], group=[n // 150 for n in range(N_TASKS)],
            start_ms=[n // 2 * 100 for n in range(N_TASKS)], duration_us=[90_000] * N_TASKS,
            erred=[int(n == N_TASKS - 1) for n in range(N_TASKS)],
        )  # fmt: skip
        return {**super()._happenings(start), "tasks": rows}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports as a server made them, which is gone by now."""
    folder = tmp_path_factory.mktemp("report")
    with Serving(folder / "server") as running:
        now_ms = int(time.time() * 1000)
        fleet = Rows(running.url, running.token, now_ms)
        fleet.busy()
        fleet.hostile()
        fleet.close()
        until(lambda: running.api("local/clusters/2/events")["items"])
        found = dict[str, Path]()
        for name, target in {
            "cluster": "clusters/1/report?tasks=true",
            "computation": f"computations/{boot_at(now_ms - 400_000)}-1/report",
            "hostile": "clusters/2/report?tasks=true",
        }.items():
            answer = running.http.get(f"/api/v1/local/{target}", headers=running.bearer).raise_for_status()
            found[name] = folder / f"{name}.html"
            found[name].write_bytes(answer.content)
    return found


@pytest.fixture
def visit(browser: Browser, files: dict[str, Path]) -> Iterator[Open]:
    """Opens a file offline. At the end nothing may have been asked for but files, and nothing complained of."""
    complaints, contexts = list[str](), list[Any]()

    def opened(name: str, **options: Any) -> Page:
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda line: complaints.append(line.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: complaints.append(asked.url) if asked.url != files[name].as_uri() else None)
        page.goto(files[name].as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.mark.parametrize("width", [1300, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_its_window_in_its_colours(visit: Open, width: int, scheme: Any):
    page = visit("cluster", viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.wait_for_selector("canvas[data-rows]")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(18, 23, 30)" if scheme == "dark" else "rgb(255, 255, 255)")


def test_every_task_is_drawn_and_can_be_looked_at(visit: Open):
    page = visit("cluster", viewport={"width": 1300, "height": 900})
    canvas, said = page.locator("canvas[data-rows]"), page.locator("output")
    canvas.wait_for()
    assert canvas.get_attribute("data-rows") == str(N_TASKS)
    assert page.evaluate(INK) >= 4, "three kinds and a failed one"
    assert "read-parquet (150, 13.5 s)" in page.locator("#drawn .key").inner_text()
    canvas.hover(position={"x": 3, "y": 3})
    assert said.inner_text() == f"read-parquet: 90 ms from +5 s on, {ADDRESSES[0]}"
    box = canvas.bounding_box()
    assert box
    canvas.hover(position={"x": box["width"] - 3, "y": box["height"] - 3})
    assert said.inner_text().endswith(f"{ADDRESSES[1]}, failed")
    ends = page.locator("#drawn .axis span")
    assert ends.all_inner_texts() == ["+5 s", "+25 s"]
    canvas.focus()
    page.keyboard.press("+")
    assert ends.all_inner_texts() == ["+10 s", "+20 s"]
    page.get_by_role("button", name="All").click()
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 3 / 4, box["y"] + 5)
    page.mouse.up()
    assert ends.all_inner_texts() == ["+15 s", "+20 s"]


def test_it_is_read_without_a_script(visit: Open):
    page = visit("cluster", java_script_enabled=False)
    told = page.locator("main").inner_text().replace("\u00a0", " ")
    for expected in ("99 % of 1,600 tasks done", "KeyError", "out of memory", "shuffle-transfer", "2 computations",
                     "10.0.0.3:40003", "drawn by a script in this file", "400 tasks"):  # fmt: skip
        assert expected in told, expected
    assert page.locator("figure svg path").count() >= 5
    assert not page.locator("canvas").is_visible()
    alone = visit("computation", java_script_enabled=False).locator("main").inner_text()
    assert "Computation 1 of nightly-etl" in alone
    assert "shuffle-transfer-22" in alone
    assert "read-parquet-6f1" not in alone
    assert 'groupby("station")' in alone


def test_printed_it_is_dark_on_white_and_unfolded(visit: Open):
    page = visit("cluster", color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.get_by_text('row["price"]').is_visible(), "the traceback stands in what is folded on the screen"
    assert not page.locator("main > nav").is_visible()
    assert not page.get_by_role("button", name="Closer").is_visible()


def test_hostile_names_are_text(visit: Open):
    page = visit("hostile")
    assert page.title().startswith('"><img')
    assert page.locator("main img").count() == 0
    assert HOSTILE in page.locator("main").inner_text()


def test_whoever_listens_finds_names_for_all(visit: Open):
    page = visit("cluster")
    assert page.locator("html").get_attribute("lang") == "en"
    unnamed = "svg:not([aria-hidden=true]):not([aria-label]), button:empty:not([aria-label]), canvas:not([aria-label])"
    assert page.locator(unnamed).count() == 0
    levels = [int(name[1]) for name in page.locator("h1, h2, h3").evaluate_all("all => all.map(h => h.tagName)")]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "To the content"

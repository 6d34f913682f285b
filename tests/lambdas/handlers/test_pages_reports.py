"""The pages of reports. That the frame isolates what is in it, a real browser shows: tests/browser/."""

import html
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import house
from daskscope_lambdas.ports import ReportRow
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.browsers import Browser, person
from tests.lambdas.service.reporting import ANN, Reporting, site

Page = Callable[[], Browser]


@pytest.fixture
def env(tmp_path: Path) -> LocalEnv:
    return LocalEnv(data=str(tmp_path / "data"), pages="login", reports="https://r.example")


@pytest.fixture
def reporting(world: LocalAdapters) -> Reporting:
    return Reporting(world)


@pytest.fixture
def ann(world: LocalAdapters) -> Browser:
    """Signed in, and whose the reports of reporting.ANN are."""
    return person(world, "ann", acme="member")


def public(row: ReportRow) -> str:
    return f"/acme/reports/{row.id}-{row.link}"


def frame(page: str) -> str:
    (found,) = re.findall(r"<iframe ([^>]*)>", page)
    return html.unescape(found)


def test_whoever_has_the_link_sees_a_public_one_in_a_frame_that_can_do_nothing(reporting: Reporting):
    row = reporting.kept(title="Nightly <b>run</b>")
    seen = Browser().get(public(row))
    assert seen["statusCode"] == 200
    told = frame(seen["body"])
    assert 'sandbox="allow-scripts"' in told
    assert f'src="https://r.example/public/{row.link}.html?until=' in told
    policy = seen["headers"]["Content-Security-Policy"]
    assert policy.endswith("; frame-src https://r.example")
    assert "script-src 'none'" in policy
    assert "was made by ann and is not daskscope's own" in seen["body"]
    assert "Nightly &lt;b&gt;run&lt;/b&gt;" in seen["body"]
    assert "<form" not in seen["body"], "they can change nothing"


def test_what_a_sender_claims_is_said_to_be_claimed(reporting: Reporting):
    row = reporting.kept(site("report"), user="kim")
    body = Browser().get(public(row))["body"]
    assert "made by kim, as the sender says, and is not" in body
    assert ">claimed</span>" in body


def test_a_private_one_is_for_members(reporting: Reporting, world: LocalAdapters, ann: Browser):
    row = reporting.kept(private=True)
    assert Browser().get("/acme/reports/1")["statusCode"] == 401
    assert Browser().get("/acme/reports/99")["statusCode"] == 401, "nobody learns which numbers there are"
    assert Browser().get(public(row))["statusCode"] == 404
    assert person(world, "eve", other="admin").get("/acme/reports/1")["statusCode"] == 404
    assert person(world, "eve", other="admin").get(public(row))["statusCode"] == 404
    seen = person(world, "guest", acme="viewer").get("/acme/reports/1")
    assert seen["statusCode"] == 200
    assert f"https://r.example/private/{row.link}.html?until=" in frame(seen["body"])
    assert row.link not in re.sub(r"<iframe[^>]*>", "", seen["body"])
    assert ann.get(public(row))["statusCode"] == 200, "a member who has an old link"


def test_a_link_that_leads_to_nothing_says_one_thing(reporting: Reporting):
    row, hidden = reporting.kept(), reporting.kept(private=True)
    told = set[str]()
    for path in (public(hidden), f"/acme/reports/1-{hidden.link}", "/acme/reports/1-", f"/nobody/reports/1-{row.link}",
                 f"/acme/reports/7-{row.link}"):  # fmt: skip
        seen = Browser().get(path)
        assert seen["statusCode"] == 404
        told.add(seen["body"])
    assert len(told) == 1


def test_the_file_is_got_from_elsewhere(reporting: Reporting, ann: Browser):
    row, hidden = reporting.kept(), reporting.kept(private=True, filename="my report.html")
    saved = Browser().get(f"{public(row)}/download")
    assert saved["statusCode"] == 303
    assert saved["headers"]["Location"].startswith(
        f"https://r.example/public/{row.link}.html?download=dask-report.html&"
    )
    saved = ann.get("/acme/reports/2/download")
    assert f"/private/{hidden.link}.html?download=my+report.html&" in saved["headers"]["Location"]
    assert Browser().get("/acme/reports/2/download")["statusCode"] == 401
    assert Browser().get(f"{public(hidden)}/download")["statusCode"] == 404


def test_whose_it_is_hides_shows_and_deletes_it(reporting: Reporting, ann: Browser):
    row = reporting.kept()
    ann.get("/acme/reports/1")
    answer = ann.fill("/acme/reports/1/visibility")
    assert (answer["statusCode"], answer["headers"]["Location"]) == (303, "../../../acme/reports/1")
    assert reporting.files() == [f"private/{row.link}.html"]
    ann.get("/acme/reports/1")
    assert ann.fill("/acme/reports/1/visibility")["headers"]["Location"] == f"../../..{public(row)}"
    assert reporting.files() == [f"public/{row.link}.html"]
    ann.get(public(row))
    answer = ann.fill("/acme/reports/1/delete")
    assert (answer["statusCode"], answer["headers"]["Location"]) == (303, "../../../acme/reports")
    assert reporting.files() == []
    for path in (public(row), f"{public(row)}/download"):
        assert Browser().get(path)["statusCode"] == 404
    assert ann.get("/acme/reports/1")["statusCode"] == 404


@pytest.mark.parametrize("act", ["visibility", "delete"])
def test_who_may_not_change_one_cannot(reporting: Reporting, world: LocalAdapters, ann: Browser, act: str):
    reporting.kept()
    path, fields = f"/acme/reports/1/{act}", {"private": "true"}
    assert Browser().post(path, fields)["statusCode"] == 401
    assert person(world, "eve", other="admin").post(path, fields)["statusCode"] == 404
    assert ann.post(path, fields)["statusCode"] == 403, "without the page's own word"
    ann.get("/acme/reports/1")
    assert ann.fill(path, csrf="x" * 43)["statusCode"] == 403
    for who in (person(world, "bob", acme="member"), person(world, "guest", acme="viewer")):
        assert "<form" not in re.sub(r"<header.*?</header>", "", who.get("/acme/reports/1")["body"], flags=re.S)
        csrf = re.findall(r'name="csrf" value="([^"]*)"', who.body)[0]
        assert who.post(path, {**fields, "csrf": csrf})["statusCode"] == 403
    assert reporting.keeper.find("acme", 1).private is False


def test_the_list_of_reports(reporting: Reporting, ann: Browser, world: LocalAdapters, clock: FakeClock):
    assert "No report is kept here yet" in ann.get("/acme/reports")["body"]
    first = reporting.kept(title="Nightly", private=True)
    reporting.kept(site("report"), user="kim")
    reporting.announce()
    world.policies.set_wish("acme", "reports", {"public": "allow", "keep_days": 30})
    body = ann.get("/acme/reports")["body"]
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", body, re.S)
    texts = [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in rows]
    told = f"21 Nov 2026 08:00 {first.size_bytes} bytes 21 Dec 2026 08:00"
    assert texts == [
        f"dask-report.html not here yet ○ anyone with the link 3 ann {told}",
        f"dask-report.html ○ anyone with the link 2 kim claimed {told}",
        f"Nightly dask-report.html ● members only 1 ann {told}",
    ]
    assert 'href="../acme/reports/1"' in body
    assert "Each is kept for 30 days." in body
    assert Browser().get("/acme/reports")["statusCode"] == 401
    assert person(world, "eve", other="admin").get("/acme/reports")["statusCode"] == 404
    world.policies.set_wish("acme", "reports", {"public": "deny", "keep_days": None})
    body = ann.get("/acme/reports")["body"]
    assert "keeps no public reports" in body
    assert "anyone with the link" not in body


def test_the_list_has_pages(reporting: Reporting, ann: Browser, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("daskscope_lambdas.handlers.pages_reports._PER_PAGE", 2)
    for _ in range(5):
        reporting.announce()
    seen, path = list[int](), "/acme/reports"
    while path:
        body = ann.get(path)["body"]
        seen += [int(n) for n in re.findall(r'<td class="n">(\d+)</td><td><span', body)]
        older = re.findall(r'href="([^"]*cursor=\d+)" rel="next"', body)
        path = "/" + older[0].lstrip("./") if older else ""
    assert seen == [5, 4, 3, 2, 1]
    assert "There are no older reports" in ann.get("/acme/reports?cursor=1")["body"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"reports": ""}, "started without an origin for them"),
        ({}, "Its file is not here any more"),
    ],
)
def test_where_no_file_can_be_shown_the_page_says_why(
    reporting: Reporting, env: LocalEnv, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], says: str
):
    row = reporting.kept()
    if not change:
        reporting.world.report_files.delete(row.link)
    monkeypatch.setattr(house, "read", lambda: replace(env, **change))
    house.env.cache_clear()
    seen = Browser().get(public(row))
    assert seen["statusCode"] == 200
    assert says in seen["body"]
    assert "<iframe" not in seen["body"]
    assert Browser().get(f"{public(row)}/download")["statusCode"] == 404


def test_where_pages_are_open_they_show_and_who_changes_something_signs_in(
    reporting: Reporting, env: LocalEnv, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(house, "read", lambda: replace(env, pages="open"))
    house.env.cache_clear()
    reporting.kept(replace(ANN, account="local"), private=True)
    browser = Browser()
    assert "dask-report.html" in browser.get("/local/reports")["body"]
    body = browser.get("/local/reports/1")["body"]
    assert "<iframe" in body
    assert 'href="../../login">Sign in</a> to change' in body
    assert browser.post("/local/reports/1/delete")["statusCode"] == 401

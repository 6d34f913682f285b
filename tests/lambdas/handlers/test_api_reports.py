import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import api, house
from daskscope_lambdas.ports import Membership, Role
from daskscope_lambdas.service.tokens import OF_ROLES, mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.conftest import event

Token = Callable[..., str]
Ask = Callable[..., tuple[int, dict[str, Any]]]
PATH = "/api/v1/acme/reports"
HTML = b"<!DOCTYPE html><p>figures"
ANNOUNCED = {"filename": "dask-report.html", "size_bytes": len(HTML)}


@pytest.fixture
def env(tmp_path: Path) -> LocalEnv:
    """Reports stand on port 8791 of whatever host was asked."""
    return LocalEnv(data=str(tmp_path / "data"), pages="login", reports=":8791")


@pytest.fixture
def ask(world: LocalAdapters) -> Ask:
    """Method, path and query, bearer, and what is posted."""

    def call(method: str, target: str, bearer: str | None, posted: Any = None) -> tuple[int, Any]:
        path, _, query = target.partition("?")
        sent = {"host": "127.0.0.1:8790", **({"authorization": bearer} if bearer else {})}
        body = posted if isinstance(posted, bytes) else b"" if posted is None else json.dumps(posted).encode()
        found = api.handler(event(method, path, sent, body, query), None)
        assert found["headers"]["Cache-Control"] == "no-store"
        return found["statusCode"], json.loads(found["body"])

    return call


@pytest.fixture
def person(world: LocalAdapters) -> Callable[..., str]:
    """A member of acme, and all that a token of theirs may, as an Authorization header."""

    def make(user: str, role: Role = "member", account: str = "acme") -> str:
        member = Membership(account=account, user=user, role=role, added_at=world.clock.now(), added_by="root")
        world.users.put(member)
        return "Bearer " + mint(world.tokens, world.clock, account, OF_ROLES["admin"], "laptop", user=user)[0]

    return make


@pytest.fixture
def kept(ask: Ask, world: LocalAdapters) -> Callable[..., dict[str, Any]]:
    """A report, all the way."""

    def make(bearer: str, **told: Any) -> dict[str, Any]:
        made = ask("POST", PATH, bearer, {**ANNOUNCED, **told})[1]
        bring(world, made)
        return ask("POST", f"{PATH}/{made['id']}/uploaded", bearer)[1]

    return make


def bring(world: LocalAdapters, made: dict[str, Any], body: bytes = HTML) -> None:
    link = urlsplit(made["upload"]["url"]).path.rpartition("/")[2]
    draft = world.report_host.draft()
    draft.write_bytes(body)
    world.report_host.bring(link, draft)


def test_a_report_is_announced_brought_and_kept(ask: Ask, person: Callable[..., str], world: LocalAdapters):
    ann = person("ann")
    status, made = ask("POST", PATH, ann, {**ANNOUNCED, "title": "Nightly", "user": "eve"})
    assert status == 201
    upload = made.pop("upload")
    link = urlsplit(upload["url"]).path.rpartition("/")[2]
    record = {
        "id": 1, "filename": "dask-report.html", "title": "Nightly", "user": "ann", "user_claimed": False,
        "private": False, "size": len(HTML), "created": "2026-11-21T08:00:00.000Z", "expires": None,
        "status": "uploading", "url": f"acme/reports/1-{link}",
    }  # fmt: skip
    assert made == record
    assert (upload["method"], upload["fields"], upload["expires"]) == ("PUT", {}, "2026-11-21T08:15:00.000Z")
    bring(world, {"upload": upload})
    status, kept = ask("POST", f"{PATH}/1/uploaded", ann)
    assert (status, kept) == (200, {**record, "status": "kept"})
    assert ask("POST", f"{PATH}/1/uploaded", ann) == (200, kept), "once more changes nothing"
    status, listed = ask("GET", PATH, ann)
    assert (status, listed) == (200, {"items": [kept], "cursor": None})


def test_where_it_is_downloaded_from(ask: Ask, person: Callable[..., str], kept: Callable[..., dict[str, Any]]):
    ann = person("ann")
    kept(ann, filename="my report.html", private=True)
    status, found = ask("GET", f"{PATH}/1", ann)
    url = urlsplit(found["download_url"])
    assert (status, found["url"], url.scheme, url.netloc) == (200, "acme/reports/1", "http", "localhost:8791")
    assert parse_qs(url.query)["download"] == ["my report.html"]
    assert ask("GET", f"{PATH}/1", person("bob", "viewer"))[0] == 200, "every member sees it"


@pytest.mark.parametrize(
    ("reports", "host", "origin"),
    [
        (":8791", "127.0.0.1:8790", "http://localhost:8791"), (":8791", "localhost:8790", "http://127.0.0.1:8791"),
        (":8791", "[::1]:8790", "http://localhost:8791"), (":8791", "cluster.example:8790", "http://cluster.example:8791"),
        (":8791", "10.0.0.3", "http://10.0.0.3:8791"), ("https://r.example", "x", "https://r.example"),
        ("", "127.0.0.1:8790", None), (":8791", "", None), (":8791", "x; script-src *", None),
    ],
)  # fmt: skip
def test_reports_stand_on_another_origin_than_was_asked(
    env: LocalEnv, person: Callable[..., str], kept: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch,
    reports: str, host: str, origin: str | None,
):  # fmt: skip
    ann = person("ann")
    kept(ann)
    monkeypatch.setattr(house, "read", lambda: replace(env, reports=reports))
    house.env.cache_clear()
    found = api.handler(event("GET", f"{PATH}/1", {"host": host, "authorization": ann}), None)
    url = json.loads(found["body"])["download_url"]
    assert (url and "{0.scheme}://{0.netloc}".format(urlsplit(url))) == origin


def test_one_that_has_not_come_is_downloaded_from_nowhere(ask: Ask, person: Callable[..., str]):
    ann = person("ann")
    ask("POST", PATH, ann, ANNOUNCED)
    found = ask("GET", f"{PATH}/1", ann)[1]
    assert (found["status"], found["download_url"]) == ("uploading", None)


def test_a_site_claims_whose_it_is(token: Token, ask: Ask, kept: Callable[..., dict[str, Any]]):
    record = kept(token("report"), user="kim")
    assert (record["user"], record["user_claimed"]) == ("kim", True)


@pytest.mark.parametrize(
    ("posted", "status", "code", "place"),
    [
        ({**ANNOUNCED, "filename": "../../etc/passwd"}, 422, "bad-message", "$.filename"),
        ({**ANNOUNCED, "size_bytes": 500_000_001}, 413, "too-large", "$.size_bytes"),
        ({**ANNOUNCED, "key": "public/x"}, 422, "bad-message", "$"),
        ({**ANNOUNCED, "private": "yes"}, 422, "bad-message", "$.private"),
        ({"filename": "a.html"}, 422, "bad-message", "$"),
        (b"{", 422, "bad-message", "$"),
    ],
)
def test_what_cannot_be_announced(
    ask: Ask, token: Token, posted: Any, status: int, code: str, place: str, world: LocalAdapters
):
    found, refused = ask("POST", PATH, token("report"), posted)
    assert (found, refused["error"]["code"], refused["error"]["place"]) == (status, code, place)
    assert world.reports.page("acme", 1) == []


def test_what_is_no_report_is_refused_with_the_reason(ask: Ask, token: Token, world: LocalAdapters):
    bearer = token("report", "read")
    made = ask("POST", PATH, bearer, {**ANNOUNCED, "size_bytes": 8})[1]
    bring(world, made, b"%PDF-1.7")
    status, refused = ask("POST", f"{PATH}/1/uploaded", bearer)
    assert (status, refused["error"]["code"]) == (422, "bad-report")
    assert "does not begin as HTML does" in refused["error"]["message"]
    assert ask("POST", f"{PATH}/1/uploaded", bearer)[0] == 404
    assert ask("GET", PATH, bearer)[1]["items"] == []


def test_hidden_shown_and_deleted_with_a_word_in_the_audit(
    ask: Ask, person: Callable[..., str], kept: Callable[..., dict[str, Any]], clock: FakeClock
):
    ann, root = person("ann"), person("root", "admin")
    link = kept(ann)["url"]
    status, hidden = ask("PUT", f"{PATH}/1", ann, {"private": True})
    assert (status, hidden["private"], hidden["url"]) == (200, True, "acme/reports/1")
    clock.advance(1)
    status, shown = ask("PUT", f"{PATH}/1", root, {"private": False})
    assert (status, shown["private"], shown["url"]) == (200, False, link)
    status, refused = ask("DELETE", f"{PATH}/1", person("bob"))
    assert (status, refused["error"]["code"]) == (403, "permission-denied")
    clock.advance(1)
    status, gone = ask("DELETE", f"{PATH}/1", ann)
    assert (status, gone["id"]) == (200, 1)
    assert "60 s more" in gone["sentence"]
    assert ask("GET", f"{PATH}/1", ann)[0] == ask("DELETE", f"{PATH}/1", ann)[0] == 404
    acts = ask("GET", "/api/v1/acme/audit", root)[1]["items"][::-1]
    assert [(act["actor"], act["action"], act["target"], act["detail"]["private"]) for act in acts] == [
        ("ann", "report.visibility", "1", True),
        ("root", "report.visibility", "1", False),
        ("ann", "report.delete", "1", False),
    ]
    assert {act["address"] for act in acts} == {"127.0.0.1"}


def test_an_account_that_wants_none_public(
    ask: Ask, person: Callable[..., str], kept: Callable[..., dict[str, Any]], world: LocalAdapters
):
    ann = person("ann")
    kept(ann)
    world.policies.set_wish("acme", "reports", {"public": "deny", "keep_days": 30})
    (found,) = ask("GET", PATH, ann)[1]["items"]
    assert (found["private"], found["url"], found["expires"]) == (True, "acme/reports/1", "2026-12-21T08:00:00.000Z")
    status, refused = ask("PUT", f"{PATH}/1", ann, {"private": False})
    assert (status, refused["error"]["code"]) == (403, "permission-denied")
    assert ask("POST", PATH, ann, ANNOUNCED)[1]["private"] is True


def test_reports_page(ask: Ask, person: Callable[..., str], clock: FakeClock):
    ann = person("ann")
    for _ in range(5):
        ask("POST", PATH, ann, ANNOUNCED)
    seen, cursor = list[int](), ""
    while cursor is not None:
        page = ask("GET", f"{PATH}?limit=2{cursor and '&cursor='}{cursor}", ann)[1]
        seen += [row["id"] for row in page["items"]]
        cursor = page["cursor"]
    assert seen == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("cursor", ["x", "-1", "0", "1.5", "9" * 12, "１"])
def test_a_cursor_that_no_page_gave(ask: Ask, person: Callable[..., str], cursor: str):
    status, refused = ask("GET", f"{PATH}?cursor={cursor}", person("ann"))
    assert (status, refused["error"]["code"]) == (400, "bad-request")


@pytest.mark.parametrize("number", ["0", "x", "-1", "1-abc", "9" * 40, "01"])
def test_a_number_that_no_report_has(ask: Ask, person: Callable[..., str], number: str):
    root = person("root", "admin")
    calls = (("GET", None), ("PUT", {"private": True}), ("DELETE", None))
    assert {ask(method, f"{PATH}/{number}", root, posted)[0] for method, posted in calls} == {404}
    assert ask("POST", f"{PATH}/{number}/uploaded", root)[0] == 404


def test_another_account_s_are_not_there(
    ask: Ask, person: Callable[..., str], token: Token, kept: Callable[..., dict[str, Any]]
):
    kept(person("ann"))
    calls = (("GET", PATH), ("POST", PATH), ("GET", f"{PATH}/1"), ("PUT", f"{PATH}/1"), ("DELETE", f"{PATH}/1"),
             ("POST", f"{PATH}/1/uploaded"))  # fmt: skip
    for method, path in calls:
        for bearer, status in ((None, 401), (person("eve", "admin", "other"), 404), (token("ingest"), 403)):
            posted = ANNOUNCED if path == PATH else {"private": True}
            found, refused = ask(method, path, bearer, posted if method in ("POST", "PUT") else None)
            assert found == status, (method, path, bearer and refused)
            if status == 404:
                assert refused["error"]["message"] == "No account acme for this token: eve is in other."

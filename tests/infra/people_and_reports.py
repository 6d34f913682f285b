"""What the functions are asked for by people and for their reports, so that each shows what rights it takes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import httpx

from daskscope_lambdas.ports import Membership, ReportDraft, ReportRow
from daskscope_lambdas.service.tickets import invitation
from daskscope_lambdas.wiring import Adapters

Ask = Callable[..., dict[str, Any]]
"""Method, path, JSON or `form`; with the bearer's token, or that of `cookie`: what the API's function answers."""
HTML = b"<!doctype html><title>report</title>"
FORM = "application/x-www-form-urlencoded"


def request(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> dict[str, Any]:
    asked = {"method": method, "path": path, "sourceIp": "127.0.0.1"}
    return {
        "version": "2.0", "rawPath": path, "rawQueryString": "", "headers": headers,
        "requestContext": {"requestId": "1", "stage": "$default", "http": asked},
        "body": base64.b64encode(body).decode(), "isBase64Encoded": True,
    }  # fmt: skip


def asking(say: Callable[[dict[str, Any]], dict[str, Any]], bearer: dict[str, str]) -> Ask:
    def ask(
        method: str, path: str, told: object = None, *, form: str = "", cookie: str = "", code: str = ""
    ) -> dict[str, Any]:
        body = form.encode() if form else b"" if told is None else json.dumps(told).encode()
        sent = {"host": "here", "content-type": FORM if form else "application/json"}
        made = request(method, path, sent if form or cookie else bearer | sent, body)
        return say(made | {"cookies": [cookie] if cookie else [], "queryStringParameters": {"code": code}})

    return ask


def _told(answer: dict[str, Any], status: int = 200) -> dict[str, Any]:
    assert answer["statusCode"] == status, answer
    return json.loads(answer["body"])


def let_somebody_in(ask: Ask) -> str:
    """By an invitation. Returns their cookie."""
    _told(ask("POST", "/api/v1/acme/users", {"role": "viewer"}), 201)
    (waiting,) = _told(ask("GET", "/api/v1/acme/invitations"))["items"]
    assert ask("DELETE", f"/api/v1/acme/invitations/{waiting['id']}")["statusCode"] == 200
    invited = _told(ask("POST", "/api/v1/acme/users", {"role": "member"}), 201)
    code = invited["url"].partition("code=")[2]
    assert ask("GET", "/join", code=code)["statusCode"] == 200
    joined = ask("POST", "/join", form=urlencode({"code": code, "user": "ann"}))
    assert joined["statusCode"] == 303, joined
    assert [each["user"] for each in _told(ask("GET", "/api/v1/acme/users"))["items"]] == ["ann", "root"]
    return joined["cookies"][0].partition(";")[0]


def change_their_role_and_take_them_out(ask: Ask) -> None:
    for role in ("admin", "viewer"):  # which is let go, for there is another one
        assert _told(ask("PUT", "/api/v1/acme/users/ann", {"role": role}))["role"] == role
    assert ask("DELETE", "/api/v1/acme/users/ann")["statusCode"] == 200


def want_something(ask: Ask) -> None:
    for wanted in ({"logs": 30}, {}):
        assert _told(ask("PUT", "/api/v1/acme/policy/retention", wanted)) == wanted
    assert "idle" in _told(ask("GET", "/api/v1/acme/policy"))


def keep_reports(ask: Ask, cookie: str) -> None:
    """Two: one is shown, hidden, saved and deleted, the other stays."""
    for number in (1, 2):
        record = _told(ask("POST", "/api/v1/acme/reports", {"filename": "r.html", "size_bytes": len(HTML)}), 201)
        upload = record["upload"]
        brought = httpx.post(upload["url"], data=upload["fields"], files={"file": HTML}, trust_env=False)
        assert brought.status_code == 204, brought.text
        kept = _told(ask("POST", f"/api/v1/acme/reports/{number}/uploaded"))
        assert (kept["id"], kept["status"], kept["private"]) == (number, "kept", False)
    assert _told(ask("PUT", "/api/v1/acme/reports/1", {"private": True}))["private"]
    page = ask("GET", "/acme/reports/1", cookie=cookie)
    assert (page["statusCode"], "/shown/" in page["body"]) == (200, True)
    saved = httpx.get(_told(ask("GET", "/api/v1/acme/reports/1"))["download_url"], trust_env=False)
    assert saved.content == HTML
    assert not _told(ask("PUT", "/api/v1/acme/reports/1", {"private": False}))["private"]
    assert len(_told(ask("GET", "/api/v1/acme/reports"))["items"]) == 2
    assert ask("DELETE", "/api/v1/acme/reports/1")["statusCode"] == 200


def leave_what_is_due(world: Adapters, long_ago: float) -> None:
    """A report that one account wants no longer, and all that another account has, which is to be deleted."""
    world.policies.set_wish("initech", "reports", {"keep_days": 1})
    world.policies.set_wish("acme", "reports", {"public": "deny"})
    for account in ("initech", "globex"):
        _old_report(world, account, long_ago)
    world.users.claim("old", long_ago)
    world.users.put(Membership(account="globex", user="old", role="admin", added_at=long_ago, added_by="test"))
    invitation(world.tickets, world.clock, "globex", "member", "test")


def _old_report(world: Adapters, account: str, at: float) -> ReportRow:
    link = account.rjust(22, "0")
    draft = ReportDraft(
        account=account, link=link, filename="r.html", title=None, private=False, user=None, user_claimed=False,
        key_id="k", size_bytes=len(HTML), created_at=at,
    )  # fmt: skip
    row = world.reports.add(draft)
    upload = world.report_files.offer(link, len(HTML), world.clock.now() + 60)
    httpx.post(upload.url, data=dict(upload.fields), files={"file": HTML}, trust_env=False).raise_for_status()
    world.report_files.keep(link, private=False)
    return world.reports.keep(account, row.id, at)

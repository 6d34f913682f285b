"""Every route, asked by every kind of caller (access.py): nobody gets what is not theirs."""

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from daskscope import wire
from daskscope.testing import START_MS, identity, message
from daskscope_lambdas.embedded.uploads import PATH as UPLOADS
from daskscope_lambdas.embedded.uploads import Uploads
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import api, forms, ingest
from daskscope_lambdas.ports import Missing, ReportDraft, Role
from daskscope_lambdas.service import tickets
from daskscope_lambdas.service.approvals import Approvals
from daskscope_lambdas.service.people import People
from daskscope_lambdas.service.tokens import OF_ROLES, mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.access import CALLERS, ROUTES
from tests.lambdas.handlers.conftest import event

EVERYTHING = OF_ROLES["admin"]
CANARY = "canary"
"""Stands in all that the account has: no answer to somebody outside may hold it."""
HOST = "scope.example"


@pytest.fixture
def env(tmp_path: Any) -> LocalEnv:
    return LocalEnv(data=str(tmp_path / "data"), pages="login", reports=":8791")


class Callers:
    """All who ask, and what they send to be known."""

    def __init__(self, world: LocalAdapters, clock: FakeClock) -> None:
        self._world, self._people = world, People(world.users, clock)
        members: tuple[tuple[str, str, Role], ...] = (
            ("acme", "vic", "viewer"), ("acme", "mia", "member"), ("acme", "ada", "admin"), ("acme", "ann", "admin"),
            ("acme", "gil", "member"), ("acme", "hal", "member"), ("other", "hal", "member"),
            ("other", "oto", "admin"),
        )  # fmt: skip
        for account, user, role in members:
            self._people.put(account, user, role, "test")
        expired = self._made("acme", EVERYTHING, expires_at=clock.now() + 1)
        clock.advance(2)
        self.bearers = {
            "other admin": self._made("other", EVERYTHING, user="oto"),
            "other site": self._made("other", EVERYTHING),
            "ingest": self._made("acme", {"ingest"}),
            "read": self._made("acme", {"read"}),
            "viewer": self._made("acme", EVERYTHING, user="vic"),
            "member": self._made("acme", EVERYTHING, user="mia"),
            "admin": self._made("acme", EVERYTHING, user="ada"),
            "revoked": self._revoked(self._made("acme", EVERYTHING)),
            "expired": expired,
            "removed": self._made("acme", EVERYTHING, user="gil"),
            "removed elsewhere": self._made("other", EVERYTHING, user="hal"),
        }
        self._people.remove("acme", "gil")
        self._people.remove("acme", "hal")
        mine = self._made("acme", EVERYTHING, user="mia", kind="session")
        self.cookies = {
            "cookie": mine,
            "cookie viewer": self._made("acme", EVERYTHING, user="vic", kind="session"),
            "cookie other": self._made("other", EVERYTHING, user="oto", kind="session"),
            "cookie revoked": self._revoked(self._made("acme", EVERYTHING, user="mia", kind="session")),
            "cookie alone": mine,
        }
        assert {"nobody", *self.bearers, *self.cookies} == set(CALLERS)

    def _made(self, account: str, scopes: Any, **options: Any) -> str:
        return mint(self._world.tokens, self._world.clock, account, scopes, "test", **options)[0]

    def _revoked(self, text: str) -> str:
        self._world.tokens.revoke(text[4:16], self._world.clock.now())
        return text

    def ask(self, caller: str, method: str, path: str, sent: Any, account: str) -> dict[str, Any]:
        headers, cookies = {"host": HOST, wire.ACCOUNT.lower(): account}, tuple[str, ...]()
        if text := self.bearers.get(caller):
            headers["authorization"] = f"Bearer {text}"
        if text := self.cookies.get(caller):
            cookies = (f"daskscope={text}",)
        body = json.dumps(sent).encode() if sent is not None else b""
        if not path.startswith("/api/"):
            headers["content-type"] = forms.TYPE
            csrf = {} if caller == "cookie alone" or not text else {"csrf": forms.csrf(text)}
            body = urlencode({**(sent or {}), **csrf}).encode()
        path, _, query = path.partition("?")
        handler = ingest.handler if path == wire.PATH else api.handler
        return handler(event(method, path, headers, body if method != "GET" else b"", query, cookies), None)


class Things:
    """What is asked about, made anew where asking takes it away."""

    def __init__(self, world: LocalAdapters) -> None:
        self._world, self._n = world, 0
        self.computation = ""

    def fill(self, path: str, account: str) -> str:
        named = {
            "account": lambda: account,
            "cluster": lambda: "1",
            "scheduler": lambda: message().cluster,
            "computation": lambda: self.computation,
            "key_id": self._key_id,
            "user": self._user,
            "id": self._invitation,
            "subject": lambda: "reports",
            "number": self._report,
            "name": lambda: "style.css" if path.startswith("/static") else self._report(),
        }
        filled = re.sub("<([a-z_]+)>", lambda found: named[found[1]](), path)
        # Past the wall nothing need be looked up: who is let in is told that this is no limit.
        return f"{filled}?limit=0&since=x&tasks=x&code={self._code(path)}"

    def sent(self, method: str, path: str) -> dict[str, Any] | None:
        """What is posted: all that it needs to be done."""
        self._n += 1
        every: dict[str, dict[str, Any]] = {
            "/tokens": {"name": "new", "scopes": ["read"]},
            "/users": {"role": "viewer"},
            "/users/<user>": {"role": "member"},
            "/policy/<subject>": {"public": "deny"},
            "<account>/reports": {"filename": "x.html", "size_bytes": 9},
            "/reports/<number>": {"private": True},
            "/visibility": {"private": "true"},
            "/api/v1/login": {"client": "laptop"},
            "/join": {"code": self._code(path), "user": f"new{self._n}"},
            "/login/approve": {"code": self._code(path), "decision": "deny"},
        }
        return next((told for end, told in every.items() if path.endswith(end)), None) if method != "GET" else None

    def _code(self, path: str) -> str:
        world = self._world
        if path == "/join":
            link = tickets.invitation(world.tickets, world.clock, "acme", "viewer", "ann")
            return link.url.partition("code=")[2]
        return Approvals(world.tickets, world.clock).ask("laptop").user_code if path == "/login/approve" else ""

    def _key_id(self) -> str:
        return mint(self._world.tokens, self._world.clock, "acme", {"read"}, f"{CANARY} token")[1].key_id

    def _user(self) -> str:
        self._n += 1
        return People(self._world.users, self._world.clock).put("acme", f"guest{self._n}", "member", "test").user

    def _invitation(self) -> str:
        world = self._world
        code = tickets.invitation(world.tickets, world.clock, "acme", "viewer", "ann").url.partition("code=")[2]
        return tickets.id_of(tickets.look(world.tickets, world.clock, "invitation", code))

    def _report(self) -> str:
        """One of who is the member."""
        self._n += 1
        draft = ReportDraft(
            account="acme", link=f"{self._n:022}", filename=f"{CANARY}.html", title=None, private=True, user="mia",
            user_claimed=False, key_id="", size_bytes=9, created_at=self._world.clock.now(),
        )  # fmt: skip
        row = self._world.reports.add(draft)
        brought = self._world.report_host.draft()
        brought.write_text(CANARY)
        self._world.report_host.bring(row.link, brought)
        self._world.report_files.keep(row.link, True)
        return str(self._world.reports.keep("acme", row.id, self._world.clock.now()).id)


def outcome(answer: dict[str, Any], account: str) -> str:
    status = answer["statusCode"]
    if status == 404:
        return "no account" if f"No account {account} for this token" in answer["body"] else "nothing"
    return str(status) if status in (401, 403) or status >= 500 else "in"


def test_every_route_is_in_the_table() -> None:
    known = {(route.method, route.path) for route in (*api.app._static_routes, *api.app._dynamic_routes)}
    assert known | {("POST", wire.PATH)} == ROUTES.keys()


def test_every_caller_gets_what_the_table_says(
    world: LocalAdapters, clock: FakeClock, post: Callable[..., Any], drain: Callable[[], Any]
) -> None:
    told = message(
        identity=identity(name=f"{CANARY}-cluster", user=f"{CANARY}-user"),
        computations=[wire.Computation(no=0, start_ms=START_MS, stop_ms=START_MS + 9)],
    )
    assert post(told)["statusCode"] == 200
    drain()
    callers, things = Callers(world, clock), Things(world)
    things.computation = f"{told.boot}-0"
    wrong = list[str]()
    for (method, path), expected in ROUTES.items():
        for caller in CALLERS:
            sent = things.sent(method, path)
            answer = callers.ask(caller, method, things.fill(path, "acme"), sent, "acme")
            found = outcome(answer, "acme")
            if found != expected[caller]:
                wrong.append(f"{method} {path} by {caller}: {found}, not {expected[caller]}: {answer['body'][-200:]}")
            if found != "in" and CANARY in answer["body"]:
                wrong.append(f"{method} {path} by {caller}: tells what is inside")
            if found == "no account":
                nowhere = callers.ask(caller, method, things.fill(path, "nowhere"), sent, "nowhere")
                if _same(nowhere, "nowhere") != _same(answer, "acme"):
                    wrong.append(f"{method} {path} by {caller}: tells whether there is such an account")
    assert not wrong, "\n".join(wrong)


@pytest.mark.asyncio
async def test_an_upload_is_opened_by_its_own_address_and_by_no_token(world: LocalAdapters, clock: FakeClock) -> None:
    callers, uploads, link = Callers(world, clock), Uploads(world.report_host), "u" * 22
    answers = list[tuple[int, bytes]]()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"<!doctype html>", "more_body": False}

    for caller in CALLERS:
        sent = list[dict[str, Any]]()

        async def send(message: dict[str, Any], sent: list[dict[str, Any]] = sent) -> None:
            sent.append(message)

        scope = {"method": "PUT", "path": f"{UPLOADS}{link}", "query_string": b"size=15&until=9999999999&sig=x"}
        headers = {"authorization": f"Bearer {text}"} if (text := callers.bearers.get(caller)) else {}
        headers |= {"cookie": f"daskscope={text}"} if (text := callers.cookies.get(caller)) else {}
        await uploads(scope, headers, receive, send)
        answers.append((sent[0]["status"], sent[1]["body"]))
    assert {status for status, _ in answers} == {403}
    assert len(set(answers)) == 1
    with pytest.raises(Missing):
        world.report_files.arrived(link, 1)


def _same(answer: dict[str, Any], account: str) -> tuple[int, str]:
    """All of an answer but the account's name, and the number of what was made to be asked about."""
    return answer["statusCode"], re.sub(r"/reports/\d+", "", answer["body"].replace(account, "X"))

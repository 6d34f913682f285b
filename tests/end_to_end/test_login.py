"""`daskscope login` against a real server, with somebody in a browser who approves; a team made of it; and its end."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlsplit

import dask.config
import httpx
import pytest
from click.testing import CliRunner, Result

import daskscope
from daskscope import approval, cli, login, testing, wire
from daskscope.compression import compress
from daskscope.transport import Http
from daskscope_lambdas.adapters.system import SystemClock
from daskscope_lambdas.ports import TokenRow, Tokens
from daskscope_lambdas.service.tokens import mint
from tests.lambdas.serving import Serving


class Browser:
    """One person's: it keeps cookies, and posts the forms that it is shown."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, trust_env=False, timeout=30, follow_redirects=True)

    def submit(self, page: str, **fields: str) -> httpx.Response:
        """The form of a page, filled in."""
        shown = self.http.get(page).text
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', shown))
        return self.http.post(page.partition("?")[0], data=hidden | fields)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("login")) as running:
        yield running


@pytest.fixture
def browser(server: Serving) -> Iterator[Browser]:
    """Nobody is signed in in it."""
    found = Browser(server.url)
    with contextlib.closing(found.http):
        yield found


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A user who never used daskscope, whose terminal waits no longer than it takes."""
    monkeypatch.setattr(dask.config, "PATH", str(tmp_path / "dask"))
    monkeypatch.setattr(approval, "Approval", functools.partial(approval.Approval, sleep=lambda _: None))
    with dask.config.set({"daskscope": {"data": str(tmp_path / "data")}}):
        yield


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, arguments)


def answered(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def approving(monkeypatch: pytest.MonkeyPatch, browser: Browser, decision: str, account: str = "local") -> None:
    """What the page that opens gets done."""

    def opened(url: str) -> bool:
        parts = urlsplit(url)
        place = f"{parts.path}?{parts.query}"
        shown = browser.http.get(place).text
        assert parse_qs(parts.query)["code"][0] in shown, "who approves sees the terminal's code"
        done = browser.submit(place, decision=decision, account=account)
        assert done.status_code == 200, done.text
        return True

    monkeypatch.setattr("webbrowser.open", opened)


def test_a_terminal_is_let_in_asks_reports_and_leaves(
    server: Serving, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert browser.submit("/login", token=server.token).status_code == 200
    approving(monkeypatch, browser, "approve")
    result = run("login", "--server", server.url, "--browser")
    assert result.exit_code == 0, result.stderr
    kept = login.kept()
    assert kept is not None
    assert f"as {kept.user}, in account local (admin)" in result.stderr

    me = json.loads(answered("whoami", "--json"))
    assert (me["user"], me["account"], me["role"]) == (kept.user, "local", "admin")
    assert sorted(me["scopes"]) == ["admin", "control", "read", "report"], "what asks cannot report"
    with daskscope.connect(server.url, kept.ingest_token) as reporter:
        assert reporter.whoami()["scopes"] == ["ingest"]
        with pytest.raises(daskscope.PermissionDenied):
            reporter.list_clusters()

    body, encoding = compress(wire.encode(testing.message()))
    for account, verdict in (("local", "kept"), (None, "kept"), ("acme", "denied")):
        with contextlib.closing(Http(server.url, kept.ingest_token, account=account)) as http:
            outcome = http.deliver("c-b-0", body, encoding)
        assert outcome.verdict == verdict, outcome.reason
    assert str(outcome.reason).startswith("HTTP 404: No account acme for this token: ")

    link = answered("open", "--no-browser", "--sign-in").strip()
    another = Browser(server.url)
    with contextlib.closing(another.http):
        came = another.submit(link.removeprefix(server.url))
        assert (came.status_code, came.url.path) == (200, "/local/analytics"), came.text
        assert f"{kept.user}" in came.text

    over = run("logout")
    assert (over.exit_code, "Revoked " in over.stderr) == (0, True), over.stderr
    ended = [row for row in server.api("local/tokens")["items"] if row["name"].startswith("login on")]
    assert [bool(row["revoked"]) for row in ended] == [True, True]
    assert run("whoami").exit_code == 5, "nobody knows of a server here any more"


def test_one_token_reports_to_each_account_of_its_user_and_to_no_other(server: Serving) -> None:
    assert run("login", "--server", server.url, "--token", server.token).exit_code == 0
    me = json.loads(answered("whoami", "--json"))["user"]
    stores = ("--data", str(server.data), "--url", server.url)
    made = answered("admin", "account", "create", "climate", "--user", me, *stores)
    assert made.startswith(f"{server.url}/login?code=")
    whose = testing.identity(scheduler_id=f"Scheduler-{uuid.UUID(int=77)}")
    body, encoding = compress(wire.encode(testing.message(cluster=f"{77:032x}", identity=whose)))
    with contextlib.closing(Http(server.url, server.token, account="climate")) as http:
        assert http.deliver("c-b-0", body, encoding).verdict == "kept"
    theirs = json.loads(answered("clusters", "--account", "climate", "--since", "all", "--json"))
    others = json.loads(answered("clusters", "--since", "all", "--json"))
    assert len(theirs) == 1
    assert theirs[0]["scheduler_id"] not in [each["scheduler_id"] for each in others]
    assert (theirs[0]["user"], theirs[0]["user_claimed"]) == (me, False), "by the token, whatever the system says"

    result = run("login", "--server", server.url, "--token", server.token, "--account", "climate")
    assert f"as {me}, in account climate (admin), also in local" in result.stderr
    now = json.loads(answered("clusters", "--since", "all", "--json"))
    assert [each["scheduler_id"] for each in now] == [theirs[0]["scheduler_id"]], "from now on"
    nobody_s = run("clusters", "--account", "acme")
    assert (nobody_s.exit_code, nobody_s.stderr) == (
        4, f"Error: No account acme for this token: {me} is in climate, local.\n",
    )  # fmt: skip


def test_a_terminal_that_is_refused_keeps_nothing(
    server: Serving, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.submit("/login", token=server.token)
    approving(monkeypatch, browser, "refuse")
    result = run("login", "--server", server.url, "--browser")
    assert (result.exit_code, "denied in the browser" in result.stderr) == (3, True)
    assert login.kept() is None


def test_each_way_in_which_a_token_is_wrong_is_told(server: Serving) -> None:
    stranger = "dks_000000000000_" + server.token[17:]
    for token, words in (
        ("no-token", "This is no daskscope token"),
        (server.token[:-1], "damaged"),
        (stranger, "damaged"),
        (strange_token(), "does not know this token"),
    ):
        result = run("login", "--server", server.url, "--token", token)
        assert (result.exit_code, words in result.stderr) == (3, True), result.stderr
        assert token not in result.stderr
    result = run("login", "--server", server.url, "--token", server.token, "--account", "acme")
    assert (result.exit_code, "No account acme for this token" in result.stderr) == (4, True)
    assert login.kept() is None


def test_a_login_that_the_server_knows_no_more_is_logged_out_and_a_damaged_one_is_not(server: Serving) -> None:
    for token, code in ((strange_token(), 0), (server.token[:-1], 3)):
        login.keep(login.Login(server=server.url, token=token, account="local", user="ann"))
        assert run("logout").exit_code == code
        assert login.kept() is None


def strange_token() -> str:
    """One that is whole, and that the server did not make."""

    class Nowhere:
        def add(self, row: TokenRow) -> None: ...

    return mint(cast("Tokens", Nowhere()), SystemClock(), "local", ["read"], "nobody's")[0]


def test_a_team_is_made_by_commands(server: Serving, browser: Browser) -> None:
    assert run("login", "--server", server.url, "--token", server.token).exit_code == 0
    link = answered("user", "invite", "--role", "viewer").strip()
    assert link.startswith(f"{server.url}/join?code=")
    joined = browser.submit(link.removeprefix(server.url), user="bea")
    assert joined.status_code == 200, joined.text
    roles = {row["user"]: row["role"] for row in json.loads(answered("user", "list", "--json"))}
    assert roles["bea"] == "viewer"
    assert run("user", "role", "bea", "member").exit_code == 0

    body, encoding = compress(wire.encode(testing.message()))
    with contextlib.closing(Http(server.url, server.token)) as http:
        assert http.deliver("c-b-0", body, encoding).verdict == "kept"
    number = json.loads(answered("clusters", "--since", "all", "--json"))[0]["id"]
    answered("policy", "idle", "2h", "--user", "bea=never", "--cluster", f"{number}=30m")
    answered("policy", "idle", "--user", "bea=1h", "--cluster", f"{number}=")
    answered("policy", "reports", "--keep-days", "30")
    answered("policy", "retention", "tasks=10", "logs=20", "--yes")
    answered("policy", "retention", "tasks=")
    assert json.loads(answered("policy", "show", "--json")) == {
        "reports": {"public": "allow", "keep_days": 30},
        "idle": {"timeout_s": 7200, "users": {"bea": 3600}, "clusters": {}},
        "retention": {"logs": 20},
    }
    wrong = run("policy", "idle", "1s")
    assert (wrong.exit_code, "60" in wrong.stderr) == (2, True), wrong.stderr

    made = json.loads(answered("token", "create", "etl", "--scope", "ingest", "--site", "--json"))
    rotated = json.loads(answered("token", "rotate", made["token"], "--overlap", "1h", "--json"))
    assert (rotated["name"], rotated["scopes"], rotated["key_id"] != made["key_id"]) == ("etl", ["ingest"], True)
    old = next(row for row in json.loads(answered("token", "list", "--json")) if row["key_id"] == made["key_id"])
    assert old["expires"]

    me = json.loads(answered("whoami", "--json"))["user"]
    last = run("user", "remove", me, "--yes")
    assert (last.exit_code, "last admin" in last.stderr) == (1, True), last.stderr
    assert run("user", "remove", "bea", "--yes").exit_code == 0
    acts = [row["action"] for row in json.loads(answered("audit", "--json"))]
    assert acts[:2] == ["user.remove", "token.rotate"]
    assert {"user.invite", "user.join", "user.role", "policy.set", "token.create"} <= {*acts}

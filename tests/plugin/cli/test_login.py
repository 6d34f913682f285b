"""`daskscope login` and `logout`: each thing that can be wrong is told apart, and nothing half is kept."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import dask.config
import pytest
from click.testing import CliRunner, Result

from daskscope import approval, cli, login
from daskscope.login import Login
from tests.plugin.api_server import Answer, ApiServer
from tests.plugin.test_approval import ASKED, GIVEN, LOGIN, OURS, PENDING, refused

ME = {
    "account": "team",
    "name": "ci",
    "scopes": ["ingest"],
    "user": None,
    "accounts": [{"account": "team", "role": None}],
}
ANN = {**ME, "scopes": ["read"], "user": "ann", "accounts": LOGIN["accounts"]}


class Desk:
    """What the server answers at each path, and who asked there."""

    def __init__(self, **answers: Answer) -> None:
        self.answers: dict[str, Answer] = {
            "/login": (200, ASKED, OURS), "/login/token": GIVEN,
            "/logout": (200, {"revoked": ["a", "b"], "sentence": "Revoked 2 tokens."}, OURS),
            "/whoami": (200, ME, OURS), **{path.replace("_", "/"): answer for path, answer in answers.items()},
        }  # fmt: skip
        self.http = ApiServer(lambda path, _: self.answers[path.removeprefix("/api/v1")])

    def came(self) -> list[tuple[str, str | None]]:
        return [(path.removeprefix("/api/v1"), authorization) for path, _, authorization in self.http.asked]


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(approval, "Approval", functools.partial(approval.Approval, sleep=lambda _: None))
    found = Desk()
    with found.http.running():
        yield found


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(cli.scope, arguments, input=given)


def log_in(desk: Desk, *arguments: str, given: str | None = None) -> Result:
    return run("login", "--server", desk.http.url, *arguments, given=given)


def test_who_is_approved_is_logged_in(desk: Desk) -> None:
    result = log_in(desk)
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    asks, done = result.stderr.splitlines()
    assert asks == (
        f"Open {desk.http.url}/login/approve?code=WDJB-MJHT in a browser, and approve the terminal with the code "
        "WDJB-MJHT (within 10 minutes)."
    )
    assert done == (
        f"Logged in at {desk.http.url} as ann, in account team (admin), also in other, until 2027-02-20. The login is "
        f"kept in {login.path()}."
    )
    kept = login.kept()
    assert kept == Login(server=desk.http.url, token="dks_asks", ingest_token="dks_in", account="team", user="ann")
    assert "dks_" not in result.output


def test_the_page_is_opened_where_that_is_wanted(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[str]()
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    assert log_in(desk, "--browser").exit_code == 0
    assert opened == [f"{desk.http.url}/login/approve?code=WDJB-MJHT"]
    assert log_in(desk, "--no-browser").exit_code == log_in(desk).exit_code == 0
    assert len(opened) == 1, "there is no desktop in front of a test"


def test_a_token_is_looked_at_before_it_is_kept(desk: Desk) -> None:
    for arguments, given in ((["--token", "dks_site"], None), (["--token", "-"], "dks_site\n")):
        login.forget()
        result = log_in(desk, *arguments, given=given)
        assert result.exit_code == 0, result.stderr
        assert "with the token of a site, in account team." in result.stderr
        assert "Schedulers that are registered here get this very token" in result.stderr
        kept = Login(server=desk.http.url, token="dks_site", ingest_token="dks_site", account="team", is_given=True)
        assert login.kept() == kept
    assert desk.came() == [("/whoami", "Bearer dks_site")] * 2


def test_a_token_that_may_not_report_is_none_for_schedulers(desk: Desk) -> None:
    desk.answers["/whoami"] = (200, ANN, OURS)
    result = log_in(desk, "--token", "dks_ann", "--account", "other")
    assert result.exit_code == 0
    assert "as ann, in account other (viewer), also in team" in result.stderr
    assert "It may not report" in result.stderr
    kept = Login(server=desk.http.url, token="dks_ann", account="other", user="ann", is_given=True)
    assert login.kept() == kept


TOKEN = ["--token", "dks_x"]
WRONG: list[tuple[list[str], str, Answer, int, str]] = [
    (TOKEN, "/whoami", refused(401, "not-logged-in", "The server does not know this token."), 3, "does not know this"),
    (TOKEN, "/whoami", refused(401, "not-logged-in", "The token is damaged."), 3, "is damaged"),
    (TOKEN, "/whoami", refused(401, "not-logged-in", "The token 'ci' has expired."), 3, "has expired"),
    (TOKEN, "/whoami", refused(401, "not-logged-in", "The token 'ci' was revoked."), 3, "was revoked"),
    ([*TOKEN, "--account", "acme"], "/whoami", (200, ME, OURS), 4, "No account acme for this token: it is of team."),
    (["--account", "acme"], "/login/token", GIVEN, 4, "No account acme for this token: ann is in other, team."),
    ([], "/login/token", refused(403, "permission-denied", "No."), 3, "The login was denied in the browser"),
    ([], "/login/token", refused(404, "not-found", "No such code."), 3, "Nobody approved WDJB-MJHT in time"),
    ([], "/login", refused(500, "server-error", "The server failed."), 1, "The server failed."),
]


@pytest.mark.parametrize(("arguments", "path", "answer", "code", "words"), WRONG)
def test_what_is_wrong_is_told_apart(
    desk: Desk, arguments: list[str], path: str, answer: Answer, code: int, words: str
) -> None:
    desk.answers[path] = answer
    result = log_in(desk, *arguments)
    assert (result.exit_code, result.stdout) == (code, ""), result.stderr
    assert words in result.stderr
    assert "dks_" not in result.stderr
    assert login.kept() is None


def test_no_answer_and_one_of_something_else(desk: Desk) -> None:
    gone = run("login", "--server", "http://127.0.0.1:1")
    assert (gone.exit_code, "No answer from http://127.0.0.1:1" in gone.stderr) == (5, True)
    desk.answers["/login"] = (200, b"<html>Welcome to the wiki")
    stranger = log_in(desk)
    assert stranger.exit_code == 1
    assert "so it is no daskscope server" in stranger.stderr
    nowhere = run("login")
    assert (nowhere.exit_code, "No server to log in at" in nowhere.stderr) == (5, True)
    assert login.kept() is None


@pytest.mark.parametrize("server", ["file:///shared", "s3://bucket/lake", "scope.example.org", "https://a:pass@h"])
def test_where_nobody_can_log_in(server: str) -> None:
    result = run("login", "--server", server)
    assert result.exit_code == 2
    assert "https://HOST" in result.stderr
    assert (server in result.stderr, "pass" in result.stderr) == ("@" not in server, False)


@pytest.mark.parametrize(("token", "words"), [("-", "no token on standard input"), ("two words", "has no spaces")])
def test_what_is_no_token_is_said_to_be_none(desk: Desk, token: str, words: str) -> None:
    result = log_in(desk, "--token", token, given="\n")
    assert (result.exit_code, words in result.stderr, "two words" in result.stderr) == (2, True, False)
    assert desk.came() == []


def test_tokens_that_cannot_be_kept_are_ended(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(login, "keep", full)
    result = log_in(desk)
    assert result.exit_code == 1
    assert f"{login.path()} cannot be written (No space left on device)" in result.stderr
    assert desk.came()[-1] == ("/logout", "Bearer dks_asks")


def test_what_keeps_a_login_from_being_used_is_said(desk: Desk) -> None:
    with dask.config.set({"daskscope.server": "https://elsewhere.example.org", "daskscope.token": "dks_other"}):
        result = log_in(desk)
    assert result.exit_code == 0
    assert "But daskscope.server is https://elsewhere.example.org" in result.stderr
    assert "But daskscope.token is set, and wins" in result.stderr
    assert {authorization for _, authorization in desk.came()} == {None}, "that token is for another server"


def test_without_tls_it_is_said(desk: Desk) -> None:
    result = run("login", "--server", "http://scope.invalid", "--timeout", "5 s")
    assert "http://scope.invalid has no TLS" in result.stderr


def test_who_logs_out_is_forgotten_there_and_here(desk: Desk) -> None:
    assert log_in(desk).exit_code == 0
    result = run("logout")
    assert (result.exit_code, result.stderr) == (0, f"Logged out of {desk.http.url}. Revoked 2 tokens.\n")
    assert desk.came()[-1] == ("/logout", "Bearer dks_asks")
    assert login.kept() is None
    again = run("logout")
    assert (again.exit_code, "Nobody is logged in here" in again.stderr) == (0, True)


@pytest.mark.parametrize(
    "words",
    [
        "The token 'login on laptop' has expired: ask for a new one.",
        "The token 'login on laptop' was revoked: ask for a new one.",
        "The token that the token 'login on laptop' was made with is gone: ask for a new one.",
        "The server does not know this token: was it made by another server?",
    ],
)
def test_a_login_that_ended_by_itself_is_logged_out_all_the_same(desk: Desk, words: str) -> None:
    assert log_in(desk).exit_code == 0
    desk.answers["/logout"] = refused(401, "not-logged-in", words)
    result = run("logout")
    assert (result.exit_code, result.stderr) == (
        0, f"Logged out of {desk.http.url}. Its tokens were good no more.\n",
    )  # fmt: skip
    assert login.kept() is None


def test_a_server_that_refuses_for_another_reason_did_not_end_it(desk: Desk) -> None:
    assert log_in(desk).exit_code == 0
    desk.answers["/logout"] = refused(401, "not-logged-in", "ann is not in account team any more.")
    result = run("logout")
    assert result.exit_code == 3
    assert "its tokens may be good there until they expire:\n" in result.stderr
    assert "ann is not in account team any more." in result.stderr
    assert "Logged out" not in result.stderr
    assert login.kept() is None


def test_a_server_that_is_gone_does_not_keep_the_login_here() -> None:
    login.keep(Login(server="http://127.0.0.1:1", token="dks_asks", account="team", user="ann"))
    result = run("logout")
    assert result.exit_code == 5
    assert "The login at http://127.0.0.1:1 is forgotten here, but its tokens may be good there" in result.stderr
    assert login.kept() is None


@pytest.mark.parametrize("whose", [ME, ANN])
def test_a_token_that_somebody_brought_is_forgotten_and_not_ended(desk: Desk, whose: dict[str, Any]) -> None:
    desk.answers["/whoami"] = (200, whose, OURS)
    assert log_in(desk, "--token", "dks_brought").exit_code == 0
    result = run("logout")
    assert result.stderr.startswith(f"Logged out of {desk.http.url}. The token that you brought is good still")
    assert "/logout" not in [path for path, _ in desk.came()]
    assert login.kept() is None


def test_a_file_that_is_no_login_is_named() -> None:
    login.path().parent.mkdir()
    login.path().write_text("{}")
    result = run("logout")
    assert (result.exit_code, str(login.path()) in result.stderr) == (2, True)


def test_while_nobody_approves_it_asks_on(desk: Desk) -> None:
    answers = [PENDING, PENDING, GIVEN]
    desk.http = ApiServer(lambda path, _: answers.pop(0) if path.endswith("token") else (200, ASKED, OURS))
    with desk.http.running():
        assert log_in(desk).exit_code == 0
    assert answers == []

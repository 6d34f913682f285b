"""A terminal asks for a login, and gets it once somebody approved; against servers that do as they like."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from daskscope import errors
from daskscope.approval import MOST_INTERVAL_S, MOST_WAIT_S, Approval, Approved, Request
from daskscope.discovery import Server
from daskscope.remote import Remote
from tests.plugin.api_server import Answer, ApiServer

OURS = {"Daskscope-Version": "0.1.0", "Daskscope-Api": "1"}
ASKED = {
    "device_code": "d3vice", "user_code": "WDJB-MJHT", "url": "login/approve?code=WDJB-MJHT", "interval_s": 2,
    "expires_in_s": 600,
}  # fmt: skip
LOGIN = {
    "token": "dks_asks", "ingest_token": "dks_in", "user": "ann", "account": "team",
    "accounts": [{"account": "team", "role": "admin"}, {"account": "other", "role": "viewer"}],
    "expires": "2027-02-20T00:00:00.000Z",
}  # fmt: skip
PENDING: Answer = (202, {"status": "pending"}, OURS)
GIVEN: Answer = (200, LOGIN, OURS)


def refused(status: int, code: str, message: str) -> Answer:
    """As a daskscope server says it."""
    return status, {"error": {"code": code, "message": message}}, OURS


class Clock:
    """Goes on by what is slept."""

    def __init__(self) -> None:
        self.slept = list[float]()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def monotonic(self) -> float:
        return sum(self.slept)


class Desk:
    """A server that answers a request, and then as `answers` say, the last one for ever."""

    def __init__(self, *answers: Answer, asked: dict[str, Any] | None = None) -> None:
        self.clock = Clock()
        self._asked, self._answers = ASKED | (asked or {}), [*answers]
        self.http = ApiServer(self._answer)

    def _answer(self, path: str, _query: dict[str, str]) -> Answer:
        if path.endswith("/login"):
            return 200, self._asked, OURS
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    @contextlib.contextmanager
    def approval(self) -> Generator[Approval]:
        with self.http.running() as http, contextlib.closing(Remote(Server(http.url), 10)) as remote:
            yield Approval(remote, "/data", monotonic=self.clock.monotonic, sleep=self.clock.sleep)

    def run(self) -> Approved:
        with self.approval() as approval:
            return approval.wait(approval.request("daskscope on laptop"))


def test_it_asks_at_the_pace_it_is_told_until_somebody_approved() -> None:
    desk = Desk(PENDING, PENDING, GIVEN)
    done = desk.run()
    assert done.login.server == desk.http.url
    assert (done.login.token, done.login.ingest_token) == ("dks_asks", "dks_in")
    assert (done.login.account, done.login.user, done.expires) == ("team", "ann", LOGIN["expires"])
    assert done.words("team") == "as ann, in account team (admin), also in other, until 2027-02-20"
    assert desk.clock.slept == [2.0] * 3
    assert desk.http.posted == [{"client": "daskscope on laptop"}] + [{"device_code": "d3vice"}] * 3
    assert {authorization for *_, authorization in desk.http.asked} == {None}, "no token of an earlier login goes along"


def test_the_page_is_the_server_s_own_whatever_it_says() -> None:
    desk = Desk(GIVEN, asked={"url": "//evil.example.org/login\x1b[2J", "user_code": "AB\x1bCD"})
    with desk.approval() as approval:
        request = approval.request("a terminal")
    assert request.url == f"{desk.http.url}/evil.example.org/login [2J"
    assert request.user_code == "AB CD"
    assert "d3vice" not in repr(request)


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ({"interval_s": 0, "expires_in_s": -5}, (1.0, 1.0)),
        ({"interval_s": 10**400, "expires_in_s": 1e300}, (MOST_INTERVAL_S, MOST_WAIT_S)),
        ({"interval_s": None, "expires_in_s": "soon"}, (1.0, 1.0)),
        ({"interval_s": True, "expires_in_s": float("nan")}, (1.0, 1.0)),
        ({"interval_s": 5, "expires_in_s": 600}, (5.0, 600.0)),
    ],
)
def test_no_server_has_it_asked_without_pause_or_end(said: dict[str, Any], taken: tuple[float, float]) -> None:
    desk = Desk(PENDING, asked=said)
    with desk.approval() as approval:
        request = approval.request("a terminal")
    assert (request.interval_s, request.expires_in_s) == taken


def test_a_server_that_fails_meanwhile_is_asked_again() -> None:
    desk = Desk((502, b"<html>", {}), (500, {"error": {"message": "It failed."}}, OURS), PENDING, GIVEN)
    assert desk.run().login.user == "ann"
    assert len(desk.clock.slept) == 4


def test_a_server_that_is_gone_to_the_end_is_said_to_be_that() -> None:
    with contextlib.closing(Remote(Server("http://127.0.0.1:1"), 10)) as remote:
        clock = Clock()
        approval = Approval(remote, "/data", monotonic=clock.monotonic, sleep=clock.sleep)
        with pytest.raises(errors.ServerUnreachable, match=r"No answer from http://127\.0\.0\.1:1"):
            approval.wait(Request("d", "AB-CD", "http://127.0.0.1:1/login", 2.0, 10.0))
    assert clock.slept == [2.0] * 5


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (refused(403, "permission-denied", "Whoever was asked said no."), errors.PermissionDenied, "denied in"),
        (refused(404, "not-found", "No such code."), errors.NotLoggedIn, "Nobody approved WDJB-MJHT in time"),
        (PENDING, errors.NotLoggedIn, "Nobody approved WDJB-MJHT in time"),
    ],
)
def test_what_nobody_approved_is_no_login(answer: Answer, kind: type[Exception], words: str) -> None:
    desk = Desk(PENDING, answer)
    with pytest.raises(kind, match=words):
        desk.run()
    assert sum(desk.clock.slept) <= 600


@pytest.mark.parametrize(
    "changes",
    [{"token": "two\nlines"}, {"token": None}, {"ingest_token": 7}, {"account": "../x"}, {"user": None},
     {"accounts": None}],
)  # fmt: skip
def test_what_can_be_no_login_is_none(changes: dict[str, Any]) -> None:
    with pytest.raises(errors.ServerError, match="is it a daskscope server"):
        Desk((200, LOGIN | changes, OURS)).run()


def test_who_may_not_report_gets_one_token() -> None:
    assert Desk((200, LOGIN | {"ingest_token": None}, OURS)).run().login.ingest_token is None


@pytest.fixture(params=[(200, b"<html>Log in!"), (404, {"error": {"message": "Not here."}}), (302, b""), (501, b"")])
def stranger(request: pytest.FixtureRequest) -> Iterator[ApiServer]:
    with ApiServer(lambda *_: request.param).running() as server:
        yield server


def test_what_is_no_daskscope_server_is_said_to_be_none(stranger: ApiServer) -> None:
    named = pytest.raises(errors.ServerError, match="without the header Daskscope-Version, so it is no daskscope")
    with contextlib.closing(Remote(Server(stranger.url), 10)) as remote, named:
        Approval(remote, "/data").request("a terminal")


def test_a_server_of_an_earlier_release_is_to_be_upgraded() -> None:
    def older(path: str, _query: dict[str, str]) -> Answer:
        message = f"Nothing answers POST {path}."
        return 404, {"error": {"code": "not-found", "message": message}}, OURS | {"Daskscope-Version": "0.0.9"}

    named = pytest.raises(errors.VersionMismatch, match=r"runs daskscope 0\.0\.9 .*Upgrade the server")
    with ApiServer(older).running() as server, contextlib.closing(Remote(Server(server.url), 10)) as remote, named:
        Approval(remote, "/data").request("a terminal")

"""`daskscope user`, `policy`, `audit` and `open`: what they ask for, and what they say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from daskscope import cli
from tests.plugin.api_server import Answer, ApiServer, error

ANN = {"account": "acme", "user": "an\x1bn", "role": "viewer", "added": "2026-11-21T08:00:00.000Z", "added_by": "bea"}
POLICY: dict[str, Any] = {
    "reports": {"public": "allow", "keep_days": None},
    "idle": {"timeout_s": 3600, "users": {"ann": None}, "clusters": {"12": 5400}},
    "retention": {"tasks": 30},
}
ACT = {"time": "2026-11-21T08:00:00.000Z", "actor": "ann", "role": "admin", "action": "user.role", "target": "b\x1bea",
       "detail": {"role": "viewer"}, "address": "10.0.0.7", "key_id": "k"}  # fmt: skip


def report(number: int, year: int, *, private: bool = False) -> dict[str, Any]:
    return {"id": number, "private": private, "created": f"{year}-11-21T08:00:00.000Z", "url": "acme/reports/1"}


WAITING = {"id": "0123456789ab", "account": "acme", "role": "member", "user": None, "by": "be\x1ba",
           "expires": "2026-11-28T08:00:00.000Z"}  # fmt: skip


def api(path: str, query: dict[str, str]) -> Answer:
    what = path.removeprefix("/api/v1/acme/")
    if what == "users":
        return 200, {"items": [ANN], "cursor": None, "url": "join?code=abc\x1b", "account": "acme", "expires": None}
    if what.startswith("users/"):
        return 200, {**ANN, "sentence": "an\x1bn is out."}
    if what == "invitations":
        return 200, {"items": [WAITING], "cursor": None}
    if what.startswith("invitations/"):
        return 200, {**WAITING, "sentence": "Nobody joins by it, be\x1ba."}
    if what == "reports":
        return 200, {"items": [report(1, 2020), report(2, 2020, private=True), report(3, 2090)], "cursor": None}
    if what == "audit":
        return 200, {"items": [ACT], "cursor": None, "as_of": None, "skipped": []}
    if what.startswith("clusters"):
        return 200, {"items": [], "cursor": None, "total": 0, "id": 7}
    if what == "policy/idle":
        return 200, POLICY["idle"] | {"sentence": "Nobody called be\x1ba is known."}
    return 200, POLICY if what == "policy" else POLICY[what.removeprefix("policy/")]


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(cli.scope, arguments, input=given)


def test_an_invitation_is_its_link_alone_on_stdout(server: ApiServer) -> None:
    result = run("user", "invite", "--role", "viewer", "--user", "bea")
    assert (result.exit_code, result.stdout) == (0, f"{server.url}/join?code=abc \n")
    assert "as viewer of account acme" in result.stderr
    assert server.posted == [{"role": "viewer", "user": "bea"}]


def test_people_are_listed_changed_and_taken_out(server: ApiServer) -> None:
    assert json.loads(run("user", "list", "--json").stdout) == [ANN]
    assert "\x1b" not in run("user", "list").stdout
    changed = run("user", "role", "ann", "viewer")
    assert (changed.exit_code, changed.stderr) == (0, "an n is out.\n")
    assert server.posted == [{"role": "viewer"}]
    assert run("user", "remove", "a/n", given="n\n").exit_code == 1, "nobody confirmed it"
    assert server.asked[-1][0].endswith("/users/ann")
    assert run("user", "remove", "a/n", "--yes").stderr == "an n is out.\n"
    assert server.asked[-1][0] == "/api/v1/acme/users/a%2Fn"


def test_invitations_are_listed_and_withdrawn(server: ApiServer) -> None:
    assert json.loads(run("user", "invitations", "--json").stdout) == [WAITING]
    assert "\x1b" not in run("user", "invitations").stdout
    result = run("user", "withdraw", "a/b")
    assert (result.exit_code, result.stderr) == (0, "Nobody joins by it, be a.\n")
    assert server.asked[-1][0] == "/api/v1/acme/invitations/a%2Fb"


def test_what_is_wanted_is_shown_in_words(server: ApiServer) -> None:
    assert run("policy", "show").stdout.splitlines() == [
        "reports public     allow",
        "reports keep_days  never",
        "idle timeout       1h",
        "idle user ann      never",
        "idle cluster 12    90m",
        "retention tasks    30",
    ]


@pytest.mark.parametrize(
    ("arguments", "put"),
    [
        (["reports", "--public", "deny"], {"public": "deny", "keep_days": None}),
        (["reports", "--keep-days", "30"], {"public": "allow", "keep_days": 30}),
        (["reports", "--keep-days", "never"], POLICY["reports"]),
        (["idle", "never"], POLICY["idle"] | {"timeout_s": None}),
        (["idle", "2h", "--user", "bea=1 day"],
         {"timeout_s": 7200, "users": {"ann": None, "bea": 86400}, "clusters": {"12": 5400}}),
        (["idle", "--user", "ann=", "--cluster", "12="], {"timeout_s": 3600, "users": {}, "clusters": {}}),
        (["retention", "logs=7", "tasks="], {"logs": 7}),
    ],
)  # fmt: skip
def test_a_change_leaves_the_rest_as_it_is(server: ApiServer, arguments: list[str], put: dict[str, Any]) -> None:
    result = run("policy", *arguments, *([] if arguments[0] == "idle" else ["--yes"]))
    assert result.exit_code == 0, result.stderr
    assert server.posted == [put]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["reports", "--public", "deny"], "2 that whoever has the address may see are for members alone. Go on?"),
        (["reports", "--keep-days", "30"], "2 older than 30 days go for good. Go on?"),
        (["retention", "logs=7", "tasks=40"], "rows of logs older than 7 days go for good. Go on?"),
        (["retention", "tasks=29"], "rows of tasks older than 29 days go for good. Go on?"),
    ],
)
def test_what_takes_something_away_is_asked_about(server: ApiServer, arguments: list[str], words: str) -> None:
    refused = run("policy", *arguments)
    assert (refused.exit_code, words in refused.stderr, server.posted) == (1, True, [])
    assert run("policy", *arguments, given="y\n").exit_code == 0
    assert len(server.posted) == 1


@pytest.mark.parametrize(
    "arguments", [["reports", "--keep-days", "never"], ["reports", "--keep-days", "36500"], ["retention", "tasks=31"],
                  ["retention", "tasks="]]
)  # fmt: skip
def test_what_takes_nothing_away_is_not(server: ApiServer, arguments: list[str]) -> None:
    assert run("policy", *arguments).exit_code == 0
    assert len(server.posted) == 1


@pytest.mark.parametrize(
    "arguments",
    [["reports"], ["idle"], ["retention"], ["reports", "--keep-days", "soon"], ["reports", "--public", "maybe"],
     ["idle", "soon"], ["idle", "--user", "ann"], ["idle", "--user", "=2h"], ["retention", "tasks"],
     ["retention", "tasks=-1"], ["retention", "tasks=0"], ["reports", "--keep-days", "0"], ["idle", "5"],
     ["idle", "5s"], ["idle", "7200"], ["idle", "--user", "ann=30s"], ["reports", "--keep-days", "36501"]],
)  # fmt: skip
def test_wrong_use_of_a_policy(server: ApiServer, arguments: list[str]) -> None:
    result = run("policy", *arguments)
    assert result.exit_code == 2
    assert "JSON" not in result.stderr
    assert not server.posted


def test_what_is_odd_about_a_change_is_said(server: ApiServer) -> None:
    result = run("policy", "idle", "--user", "bea=1h")
    assert (result.exit_code, result.stderr) == (0, "Nobody called be a is known.\n")
    assert "known" not in result.stdout


def test_acts_are_listed_as_they_were_asked_for(server: ApiServer) -> None:
    result = run("audit", "--since", "1 day", "--actor", "ann", "--action", "user.role", "--json")
    assert json.loads(result.stdout) == [ACT]
    path, query, _ = server.asked[-1]
    assert path == "/api/v1/acme/audit"
    assert {key: query[key] for key in ("since", "actor", "action")} == {
        "since": "86400", "actor": "ann", "action": "user.role",
    }  # fmt: skip
    assert "\x1b" not in run("audit").stdout
    assert server.asked[-1][1]["since"] == str(30 * 86_400)


def test_a_page_is_opened_or_told(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[str]()
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    assert run("open", "--no-browser").stdout == f"{server.url}/acme/analytics\n"
    assert run("open", "7", "--browser").stdout == ""
    assert opened == [f"{server.url}/acme/analytics/clusters/7"], "pages are open, so there is nothing to sign in for"


def test_where_pages_are_for_who_is_signed_in_it_opens_a_link_that_signs_in(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: str, query: dict[str, str]) -> Answer:
        if path == "/api/v1/sign-in-link":
            return 201, {"url": "login?code=abc", "expires": None}
        is_nobody = server.asked[-1][2] is None
        return error(401, "not-logged-in", "No token came with the request.") if is_nobody else api(path, query)

    server = serve(closed)
    opened = list[str]()
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    link = f"{server.url}/login?code=abc&next=acme%2Fanalytics%2Fclusters%2F7"
    assert run("open", "7", "--browser").stdout == ""
    assert run("open", "7", "--browser", "--no-sign-in").stdout == ""
    assert opened == [link, f"{server.url}/acme/analytics/clusters/7"]
    assert run("open", "7", "--no-browser").stdout == f"{server.url}/acme/analytics/clusters/7\n", "no secret unasked"
    assert run("open", "7", "--no-browser", "--sign-in").stdout == f"{link}\n"


@pytest.mark.parametrize("command", [["user", "list"], ["token", "list"], ["policy", "show"], ["report", "list"]])
def test_what_no_lake_has_is_asked_of_none(server: ApiServer, command: list[str]) -> None:
    result = run(*command, "--server", "s3://bucket/lake")
    assert (result.exit_code, "s3://bucket/lake is no server" in result.stderr) == (2, True)
    assert not server.asked

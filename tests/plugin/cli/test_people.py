"""`daskscope user`, `policy`, `audit` and `open`: what they ask for, and what they say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from daskscope import cli
from tests.plugin.api_server import Answer, ApiServer

ANN = {"account": "acme", "user": "an\x1bn", "role": "viewer", "added": "2026-11-21T08:00:00.000Z", "added_by": "bea"}
POLICY: dict[str, Any] = {
    "reports": {"public": "allow", "keep_days": None},
    "idle": {"timeout_s": 3600, "users": {"ann": None}, "clusters": {"12": 5400}},
    "retention": {"tasks": 30},
}
ACT = {"time": "2026-11-21T08:00:00.000Z", "actor": "ann", "role": "admin", "action": "user.role", "target": "b\x1bea",
       "detail": {"role": "viewer"}, "address": "10.0.0.7", "key_id": "k"}  # fmt: skip


def api(path: str, query: dict[str, str]) -> Answer:
    what = path.removeprefix("/api/v1/acme/")
    if what == "users":
        return 200, {"items": [ANN], "cursor": None, "url": "join?code=abc\x1b", "account": "acme", "expires": None}
    if what.startswith("users/"):
        return 200, {**ANN, "sentence": "an\x1bn is out."}
    if what == "audit":
        return 200, {"items": [ACT], "cursor": None, "as_of": None, "skipped": []}
    if what.startswith("clusters"):
        return 200, {"items": [], "cursor": None, "total": 0, "id": 7}
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
    assert (changed.exit_code, changed.stderr) == (0, "an n is viewer of account acme now.\n")
    assert server.posted == [{"role": "viewer"}]
    assert run("user", "remove", "a/n", given="n\n").exit_code == 1, "nobody confirmed it"
    assert server.asked[-1][0].endswith("/users/ann")
    assert run("user", "remove", "a/n", "--yes").stderr == "an n is out.\n"
    assert server.asked[-1][0] == "/api/v1/acme/users/a%2Fn"


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
    result = run("policy", *arguments)
    assert result.exit_code == 0, result.stderr
    assert server.posted == [put]


@pytest.mark.parametrize(
    "arguments",
    [["reports"], ["idle"], ["retention"], ["reports", "--keep-days", "soon"], ["reports", "--public", "maybe"],
     ["idle", "soon"], ["idle", "--user", "ann"], ["idle", "--user", "=2h"], ["retention", "tasks"],
     ["retention", "tasks=-1"]],
)  # fmt: skip
def test_wrong_use_of_a_policy(server: ApiServer, arguments: list[str]) -> None:
    assert run("policy", *arguments).exit_code == 2
    assert not server.posted


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
    assert opened == [f"{server.url}/acme/analytics/clusters/7"]

"""`daskscope token` and `whoami`: through the API, with a token of scope admin."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from daskscope import cli
from tests.plugin.api_server import Answer, ApiServer

TOKEN = {"key_id": "abc123", "name": "ann\x1b", "account": "acme", "scopes": ["read"], "created": None, "expires": None}


def api(path: str, query: dict[str, str]) -> Answer:
    if path.endswith("/whoami"):
        found = {"account": "acme", "name": "lap\x1btop", "scopes": ["admin", "read"], "version": "0.1.0", "api": 1}
        return 200, {**found, "user": "ann"}
    if "limit" in query:
        return 200, {"items": [TOKEN], "cursor": None}
    return 201, {**TOKEN, "token": "dks_abc123_secret", "sentence": "Revoked 'ann'."}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, arguments)


def test_a_new_one_is_all_that_stands_on_stdout(server: ApiServer) -> None:
    result = run("token", "create", "ann", "--scope", "read", "--scope", "control", "--expires", "90d")
    assert (result.exit_code, result.stdout) == (0, "dks_abc123_secret\n")
    assert "abc123" in result.stderr
    assert "\x1b" not in result.stderr
    assert server.posted == [{"name": "ann", "scopes": ["read", "control"], "expires_in_s": 7_776_000}]


@pytest.mark.parametrize(
    ("expires", "asked_for", "is_less"),
    [(None, "400d", False), ("2027-02-19T08:00:00.000Z", "400d", True), ("2027-02-19T08:00:00.000Z", "90d", False),
     ("2027-02-19T08:00:00.000Z", None, False)],
)  # fmt: skip
def test_until_when_it_is_good_is_said(serve: Any, expires: str | None, asked_for: str | None, is_less: bool) -> None:
    serve(lambda *_: (201, {**TOKEN, "token": "dks_x", "created": "2026-11-21T08:00:00.000Z", "expires": expires}))
    result = run("token", "create", "ann", *(["--expires", asked_for] if asked_for else []))
    assert (result.exit_code, result.stdout) == (0, "dks_x\n")
    assert ("good until 2027-02-19" if expires else "good until it is revoked.") in result.stderr
    assert ("less than was asked for" in result.stderr) is is_less


def test_without_a_scope_it_may_read(server: ApiServer) -> None:
    assert json.loads(run("token", "create", "ann", "--json").stdout)["token"] == "dks_abc123_secret"
    assert server.posted == [{"name": "ann", "scopes": ["read"], "expires_in_s": None}]


def test_they_are_listed(server: ApiServer) -> None:
    assert json.loads(run("token", "list", "--json").stdout) == [TOKEN]
    assert run("token", "list").stdout.splitlines()[0].split()[:4] == ["key_id", "name", "kind", "user"]


def test_those_that_were_revoked_stand_last_in_the_table(serve: Any) -> None:
    gone, good = {**TOKEN, "key_id": "old", "revoked": "2026-11-20T08:00:00.000Z"}, {**TOKEN, "revoked": None}
    serve(lambda path, query: (200, {"account": "acme", "items": [gone, good], "cursor": None}))
    lines = run("token", "list").stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["abc123", "old"]
    assert [row["key_id"] for row in json.loads(run("token", "list", "--json").stdout)] == ["old", "abc123"]


@pytest.mark.parametrize(("flag", "user"), [("--personal", "ann"), ("--site", None)])
def test_one_of_one_s_own_or_of_the_site(server: ApiServer, flag: str, user: str | None) -> None:
    assert run("token", "create", "ci", flag).exit_code == 0
    assert server.posted == [{"name": "ci", "scopes": ["read"], "expires_in_s": None, "user": user}]


def test_the_token_of_a_site_makes_none_that_is_personal(serve: Any) -> None:
    server = serve(lambda path, query: (200, {"account": "acme", "user": None}))
    result = run("token", "create", "ci", "--personal")
    assert (result.exit_code, "personal is True; allowed: False or None" in result.stderr) == (2, True)
    assert not server.posted


@pytest.mark.parametrize("named", ["abc123", "dks_abc123_secret"])
def test_one_takes_the_place_of_another(server: ApiServer, named: str) -> None:
    result = run("token", "rotate", named, "--overlap", "2h")
    assert (result.exit_code, result.stdout) == (0, "dks_abc123_secret\n")
    assert server.posted == [{"overlap_s": 7200}]
    assert server.asked[-1][0] == "/api/v1/acme/tokens/abc123/rotate"


@pytest.mark.parametrize(("named", "typed"), [("dks_abc123_secret", ""), ("-", "dks_abc123_secret\n")])
def test_a_whole_one_is_its_own_proof(server: ApiServer, named: str, typed: str) -> None:
    result = CliRunner().invoke(cli.scope, ["token", "revoke", named], input=typed)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Revoked 'ann'.\n")
    assert server.asked == [("/api/v1/logout", {}, "Bearer dks_abc123_secret")]


def test_one_is_revoked_by_its_key_id(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[tuple[Any, ...]] = []

    def deleted(_: Any, path: str) -> dict[str, Any]:
        gone.append((path,))
        return {"sentence": "Revoked 'ann'."}

    monkeypatch.setattr("daskscope.connection.Connection.delete", deleted)
    result = run("token", "revoke", "abc123")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Revoked 'ann'.\n")
    assert gone == [("/acme/tokens/abc123",)]


def test_whoami_tells_whose_the_token_is(server: ApiServer) -> None:
    text = run("whoami").stdout
    assert text.splitlines()[:3] == ["account  acme", "name     lap top", "scopes   admin, read"]
    assert json.loads(run("whoami", "--json").stdout)["scopes"] == ["admin", "read"]


@pytest.mark.parametrize("arguments", [["create"], ["create", "ann", "--scope", "write"], ["revoke"]])
def test_wrong_use(server: ApiServer, arguments: list[str]) -> None:
    assert run("token", *arguments).exit_code == 2
    assert not server.asked

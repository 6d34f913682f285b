"""`daskscope admin account` and `user`, on what a `daskscope serve` left in its folder."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from daskscope_lambdas.admin_command import admin
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.service import tickets
from daskscope_lambdas.service.audit import AuditReader
from daskscope_lambdas.service.deletion import Deleter
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import LocalAdapters, connect

URL = ("--url", "https://scope.example.org/")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalAdapters]:
    monkeypatch.setenv("LOGNAME", "root")
    monkeypatch.setenv("DASK_DASKSCOPE__DATA", str(tmp_path / "nothing runs here"))
    opened = connect(LocalEnv(data=str(tmp_path / "data")))
    yield opened
    opened.close()


@pytest.fixture
def data(world: LocalAdapters, tmp_path: Path) -> str:
    return str(tmp_path / "data")


def run(data: str, *arguments: str) -> Result:
    return CliRunner().invoke(admin, [*arguments, "--data", data])


def told(data: str, *arguments: str) -> Any:
    result = run(data, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def acts(world: LocalAdapters, account: str) -> list[tuple[str, str, str]]:
    reader = AuditReader(Asker(world.lake_root, world.seals, world.deletions), world.clock)
    return sorted((each["actor"], each["action"], each["target"]) for each in reader.acts(account, 100, 0).rows)


def test_an_account_is_made_with_its_first_admin_who_signs_in_by_the_link(world: LocalAdapters, data: str) -> None:
    result = run(data, "account", "create", "acme", "--user", "ada", *URL)
    assert (result.exit_code, result.stdout.count("\n")) == (0, 1)
    code = result.stdout.strip().removeprefix("https://scope.example.org/login?code=")
    ticket = tickets.take(world.tickets, world.clock, "sign-in", code)
    assert (ticket.told["account"], ticket.told["user"], ticket.told["parent"]) == ("acme", "ada", None)
    assert ticket.expires_at - world.clock.now() == pytest.approx(86_400, abs=60)
    assert world.users.find("acme", "ada").role == "admin"
    assert world.users.claimed("ada") == "ada"
    assert acts(world, "acme") == [("operator root", "account.create", "acme"), ("operator root", "login.link", "ada")]
    assert told(data, "account", "list") == [{"account": "acme", "users": 1, "admins": ["ada"], "tokens": 0}]


def test_an_account_that_is_there_is_not_made_again(world: LocalAdapters, data: str) -> None:
    run(data, "account", "create", "acme", "--user", "ada")
    result = run(data, "account", "create", "acme", "--user", "bob")
    assert result.exit_code == 1
    assert "There is an account acme already" in result.stderr
    assert [each.user for each in world.users.list("acme")] == ["ada"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("account", "create", "Acme", "--user", "ada"), "1 to 63 of a-z, 0-9 and '-'"),
        (("account", "create", "acme", "--user", "a b"), "1 to 64 of A-Z"),
        (("user", "role", "a/b", "admin"), "1 to 64 of A-Z"),
    ],
)
def test_what_can_be_no_name(world: LocalAdapters, data: str, arguments: tuple[str, ...], says: str) -> None:
    result = run(data, *arguments)
    assert (result.exit_code, says in result.stderr) == (2, True)
    assert world.users.accounts() == []


def test_nothing_is_told_of_no_account(data: str) -> None:
    assert run(data, "account", "list").stderr == "There is no account yet.\n"
    assert run(data, "user", "list", "--account", "acme").stderr == "Nobody is in account acme.\n"


def test_people_are_made_something_and_taken_out_also_the_last_admin(world: LocalAdapters, data: str) -> None:
    of = ("--account", "acme")
    for user, role in (("ann", "member"), ("ann", "admin"), ("ann", "viewer")):
        assert run(data, "user", "role", user, role, *of).exit_code == 0
        assert world.users.find("acme", user).role == role
    (ann,) = told(data, "user", "list", *of)
    assert (ann["user"], ann["role"], ann["added_by"]) == ("ann", "viewer", "operator root")
    assert "ann" in run(data, "user", "list", *of).stdout
    assert run(data, "user", "remove", "ann", *of).exit_code == 0
    assert world.users.list("acme") == []
    assert [action for _, action, _ in acts(world, "acme")] == ["user.remove", *["user.role"] * 3]
    assert run(data, "user", "remove", "ann", *of).exit_code == 4


def test_an_operator_takes_back_what_an_admin_made_and_means_whom_they_name_in_any_case(
    world: LocalAdapters, data: str
) -> None:
    of = ("--account", "acme")
    for role, way in (("viewer", ("role", "MAL", "viewer")), (None, ("remove", "mal"))):
        run(data, "user", "role", "mal", "admin", *of)
        _, row = mint(world.tokens, world.clock, "acme", ["read"], "ci", made_by="mal")
        result = run(data, "user", *way, *of)
        assert (result.exit_code, f"'ci' ({row.key_id})" in result.stderr) == (0, True), result.stderr
        assert world.tokens.find(row.key_id).revoked_at is not None
        assert [each.role for each in world.users.list("acme")] == ([role] if role else [])


def test_an_account_that_was_just_deleted_is_not_made_again_at_once(world: LocalAdapters, data: str) -> None:
    run(data, "account", "create", "acme", "--user", "ada")
    Deleter(world).delete_account("acme", "root")
    result = run(data, "account", "create", "acme", "--user", "ada")
    assert (result.exit_code, "was just deleted, and what comes of it goes too: wait 1" in result.stderr) == (1, True)
    assert world.users.list("acme") == []


def test_who_is_locked_out_gets_a_link_and_nobody_else_does(world: LocalAdapters, data: str) -> None:
    run(data, "user", "role", "ann", "viewer")
    found = told(data, "user", "link", "ann")
    assert (found["account"], found["user"]) == ("local", "ann")
    code = found["url"].removeprefix("login?code=")
    assert tickets.take(world.tickets, world.clock, "sign-in", code).told["user"] == "ann"
    assert "--url" in run(data, "user", "link", "ann").stderr, "nobody knows where the server is"
    result = run(data, "user", "link", "bob")
    assert (result.exit_code, "no user bob" in result.stderr) == (4, True)


def test_what_an_operator_does_is_written_down(world: LocalAdapters, data: str, tmp_path: Path) -> None:
    world.clusters.enrol("acme", "ab" * 16, 100.0, 110.0)
    of = ("--account", "acme")
    made = told(data, "token", "new", "--name", "ci", "--scope", "read", *of)
    run(data, "token", "revoke", made["key_id"], *of)
    run(data, "retention", "--table", "tasks", "--days", "30", *of)
    (tmp_path / "prices.yaml").write_text("core_hour: 0.02\n")
    run(data, "prices", "set", str(tmp_path / "prices.yaml"))
    run(data, "prices", "clear", *of)
    run(data, "delete", "cluster", "1", "--yes", *of)
    assert acts(world, "acme") == [
        ("operator root", action, target)
        for action, target in (
            ("data.delete", "ab" * 16), ("policy.set", "retention"), ("prices.set", "acme"),
            ("prices.set", "installation"), ("token.create", made["key_id"]), ("token.revoke", made["key_id"]),
        )
    ]  # fmt: skip


def test_what_was_done_to_an_account_is_kept_for_a_year(world: LocalAdapters, data: str) -> None:
    result = run(data, "retention", "--table", "audit", "--days", "364")
    assert (result.exit_code, "audit is kept for 365 days at least" in result.stderr) == (2, True)
    assert world.policies.wish("local", "retention") == {}
    assert run(data, "retention", "--table", "audit", "--days", "365").exit_code == 0

"""`daskscope admin delete` and `retention`, on what a `daskscope serve` left in its folder."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from daskscope_lambdas.admin_command import admin
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.ports import Missing
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.wiring import LocalAdapters, connect
from tests.query.lake_rig import envelope

UUID = "ab" * 16


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalAdapters]:
    opened = connect(LocalEnv(data=str(tmp_path / "data")))
    opened.clusters.enrol("local", UUID, 100.0, 110.0)
    opened.clusters.enrol("other", "cd" * 16, 100.0, 110.0)
    yield opened
    opened.close()


@pytest.fixture
def data(world: LocalAdapters, tmp_path: Path) -> str:
    return str(tmp_path / "data")


def run(*arguments: str, said: str | None = None) -> Result:
    return CliRunner().invoke(admin, [*arguments], input=said)


@pytest.mark.parametrize("reference", ["1", UUID])
def test_a_cluster_is_deleted_by_what_a_person_has_of_it(world: LocalAdapters, data: str, reference: str) -> None:
    result = run("delete", "cluster", reference, "--data", data, "--yes")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "35 days" in result.stderr
    with pytest.raises(Missing):
        world.clusters.find("local", UUID)
    (pending,) = world.deletions.pending()
    assert (pending.account, pending.cluster) == ("local", UUID)


@pytest.mark.parametrize("what", [("cluster", "1"), ("account", "local")])
def test_who_does_not_mean_it_changes_nothing(world: LocalAdapters, data: str, what: tuple[str, str]) -> None:
    result = run("delete", *what, "--data", data, said="n\n")
    assert result.exit_code == 1
    assert "for good?" in result.stderr
    assert world.clusters.find("local", UUID).id == 1
    assert world.deletions.pending() == []


def test_who_means_it_says_so(world: LocalAdapters, data: str) -> None:
    assert run("delete", "cluster", "1", "--data", data, said="y\n").exit_code == 0
    assert world.deletions.pending()


@pytest.mark.parametrize(("what", "code"), [(("cluster", "7"), 4), (("account", "nobody"), 4), (("account", "A B"), 2)])
def test_what_is_not_there_cannot_be_deleted(world: LocalAdapters, data: str, what: tuple[str, str], code: int) -> None:
    assert run("delete", *what, "--data", data, "--yes").exit_code == code
    assert world.deletions.pending() == []


def test_what_the_lake_alone_knows_is_deleted_by_its_uuid(world: LocalAdapters, data: str) -> None:
    """Its row was kept no longer."""
    forgotten = "ef" * 16
    Writer(world.objects, world.seals).write([envelope("gone", cluster=forgotten)], "batch")
    for wrong in (("cluster", forgotten), ("cluster", "ee" * 16, "--account", "gone"), ("account", "nobody")):
        assert run("delete", *wrong, "--data", data, "--yes").exit_code == 4
    result = run("delete", "cluster", forgotten, "--account", "gone", "--data", data, "--yes")
    assert result.exit_code == 0, result.stderr
    (pending,) = world.deletions.pending()
    assert (pending.account, pending.cluster) == ("gone", forgotten)
    assert world.clusters.deleted([forgotten]) == {forgotten}, "nothing comes of it later"
    assert run("delete", "cluster", forgotten, "--account", "gone", "--data", data, "--yes").exit_code == 4
    assert world.clusters.page("gone", None, 9, None).rows == []
    assert run("delete", "account", "gone", "--data", data, "--yes").exit_code == 0


def test_a_cluster_of_another_account_is_not_found(world: LocalAdapters, data: str) -> None:
    assert run("delete", "cluster", "cd" * 16, "--data", data, "--yes").exit_code == 4
    assert run("delete", "cluster", "1", "--account", "other", "--data", data, "--yes").exit_code == 0
    assert world.clusters.find("local", UUID).id == 1


def test_an_account_is_deleted_with_its_tokens(world: LocalAdapters, data: str) -> None:
    mint(world.tokens, world.clock, "local", ["read"], "ann")
    result = run("delete", "account", "local", "--data", data, "--yes")
    assert result.exit_code == 0, result.stderr
    assert list(world.tokens.list("local")) == []
    assert world.clusters.page("local", None, 9, None).rows == []
    assert world.clusters.page("other", None, 9, None).rows != []


def _kept(data: str, *arguments: str) -> dict[str, int]:
    result = run("retention", "--data", data, *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return {each["table"]: each["days"] for each in json.loads(result.stdout) if each["days"] is not None}


def test_retention_is_shown_and_set(world: LocalAdapters, data: str) -> None:
    assert _kept(data) == {}
    assert _kept(data, "--table", "logs", "--table", "tasks", "--days", "30") == {"logs": 30, "tasks": 30}
    assert _kept(data, "--table", "logs", "--days", "7") == {"logs": 7, "tasks": 30}
    assert _kept(data, "--table", "tasks", "--forever") == {"logs": 7}
    assert _kept(data, "--account", "other") == {}
    assert world.policies.wish("local", "retention") == {"logs": 7}
    table = run("retention", "--data", data).stdout
    assert [line.split()[0] for line in table.splitlines()[:2]] == ["table", "clusters"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--days", "7"),
        ("--forever",),
        ("--table", "logs"),
        ("--table", "logs", "--days", "7", "--forever"),
        ("--table", "logs", "--days", "0"),
        ("--table", "code", "--days", "7"),
    ],
)
def test_half_a_wish_changes_nothing(world: LocalAdapters, data: str, arguments: tuple[str, ...]) -> None:
    assert run("retention", "--data", data, *arguments).exit_code == 2
    assert world.policies.wish("local", "retention") == {}

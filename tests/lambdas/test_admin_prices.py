"""`daskscope admin prices`, in both worlds."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from daskscope.cli import Failure
from daskscope_lambdas.admin_command import admin
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.service.price_file import packaged
from daskscope_lambdas.service.price_store import in_force
from daskscope_lambdas.wiring import LocalAdapters, connect
from tests.aws_world import make_world, point_at
from tests.emulator import Emulator


@pytest.fixture
def world(env: LocalEnv, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalAdapters]:
    for name, value in env.variables().items():
        monkeypatch.setenv(name, value)
    opened = connect(env)
    yield opened
    opened.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text("core_hour: 0.02\ninstance_types: {m6i.large: 0.05}\n")
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(admin, ["prices", *arguments])


def shown(*arguments: str) -> dict[str, object]:
    result = run("show", "--json", *arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_set_show_and_clear(world: LocalAdapters, file: Path):
    assert shown()["core_hour"] == packaged().tables[0].core_hour
    done = run("set", str(file))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "Prices of this installation are set.\n")
    assert (shown()["core_hour"], shown("--account", "acme")["core_hour"]) == (0.02, 0.02)
    file.write_text("core_hour: 0.5")
    assert run("set", "--account", "acme", str(file)).stderr == "Prices of account acme are set.\n"
    assert (shown()["core_hour"], shown("--account", "acme")["core_hour"]) == (0.02, 0.5)
    assert shown("--account", "acme")["sources"] == [
        *packaged().sources, "this installation: core_hour 0.02, 1 instance types", "account acme: core_hour 0.5",
    ]  # fmt: skip
    assert run("clear", "--account", "acme").stderr == "Prices of account acme are taken back.\n"
    assert run("clear", "--account", "acme").stderr == "Prices of account acme were never set.\n"
    assert shown("--account", "acme")["core_hour"] == 0.02


def test_a_table_says_every_price_and_stderr_whence(world: LocalAdapters, file: Path):
    run("set", str(file))
    told = run("show")
    lines = [line.split() for line in told.stdout.splitlines()]
    assert ["any", "m6i.large", "0.05"] in lines
    assert ["us-east-1", "g5.xlarge", "1.006"] in lines
    assert told.stderr.splitlines()[-1] == "this installation: core_hour 0.02, 1 instance types"


def test_an_odd_file_or_account_is_an_error_that_names_the_place(world: LocalAdapters, file: Path):
    file.write_text("core_hour: free")
    refused = run("set", str(file))
    assert isinstance(refused.exception, SystemExit | Failure)
    assert f"{file}: core_hour is 'free'; allowed: a price per hour, a number from 0 on." in refused.stderr
    assert "is no account name" in run("show", "--account", "Acme!").stderr
    assert run("set", str(file.with_name("none.yaml"))).exit_code == 2
    assert in_force(world.objects, None) == packaged()


def test_in_aws(emulator: Emulator, monkeypatch: pytest.MonkeyPatch, file: Path):
    point_at(emulator, monkeypatch)
    env = make_world(emulator)
    for name, value in env.variables().items():
        monkeypatch.setenv(name, value)
    assert run("set", str(file)).exit_code == 0
    with closing(connect(env)) as world:
        assert in_force(world.objects, "acme").tables[0].core_hour == 0.02
    assert run("clear").stderr == "Prices of this installation are taken back.\n"
    assert shown()["sources"] == list(packaged().sources)

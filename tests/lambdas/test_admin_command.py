import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from click.testing import CliRunner, Result

from daskscope.errors import NotLoggedIn
from daskscope_lambdas import registry
from daskscope_lambdas.adapters.system import SystemClock
from daskscope_lambdas.admin_command import admin
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.service.gate import Gate
from daskscope_lambdas.service.tokens import Principal
from daskscope_lambdas.wiring import LocalAdapters, connect
from tests.emulator import Emulator


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalAdapters]:
    """What a `daskscope serve` left in its folder."""
    opened = connect(LocalEnv(data=str(tmp_path / "data")))
    yield opened
    opened.close()


@pytest.fixture
def data(world: LocalAdapters, tmp_path: Path) -> str:
    return str(tmp_path / "data")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(admin, ["token", *arguments])


def make(data: str, *arguments: str) -> dict[str, Any]:
    result = run("new", "--data", data, "--name", "ann", "--scope", "read", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def bearer(world: LocalAdapters, text: str) -> Principal:
    return Gate(world.tokens, world.users, SystemClock()).principal(f"Bearer {text}")


def test_a_new_token_lets_its_bearer_in_with_the_scopes_it_was_made_for(world: LocalAdapters, data: str):
    result = run("new", "--data", data, "--name", "team", "--scope", "ingest", "--scope", "read", "--account", "acme")
    assert result.stdout.count("\n") == 1, "stdout is the token and nothing else"
    principal = bearer(world, result.stdout.strip())
    assert (principal.account, principal.scopes, principal.name) == ("acme", {"ingest", "read"}, "team")
    assert principal.key_id in result.stderr


def test_a_list_shows_all_but_the_secret(data: str):
    made = make(data)
    secret = made.pop("token").rpartition("_")[2]
    listed = run("list", "--data", data, "--json")
    assert json.loads(listed.stdout) == [made]
    table = run("list", "--data", data).stdout
    assert table.split()[:3] == ["key_id", "name", "account"]
    assert made["key_id"] in table
    assert secret not in table + listed.stdout


def test_a_list_is_of_one_account(data: str):
    make(data)
    result = run("list", "--data", data, "--account", "other")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Account other has no tokens.\n")


def test_a_token_may_end_by_itself(world: LocalAdapters, data: str):
    row = world.tokens.find(make(data, "--expires-in", "90d")["key_id"])
    assert row.expires_at is not None
    assert row.expires_at - row.created_at == pytest.approx(90 * 86400, abs=60)


@pytest.mark.parametrize("whole", [False, True], ids=["key id", "the token itself"])
def test_a_revoked_token_is_refused(world: LocalAdapters, data: str, whole: bool):
    made = make(data)
    assert bearer(world, made["token"]).name == "ann"
    result = run("revoke", made["token" if whole else "key_id"], "--data", data)
    assert (result.exit_code, result.stdout) == (0, "")
    with pytest.raises(NotLoggedIn, match="revoked"):
        bearer(world, made["token"])
    assert json.loads(run("list", "--data", data, "--json").stdout)[0]["revoked"] is not None


def test_the_first_token_is_made_once(world: LocalAdapters, data: str):
    make(data)
    first = make(data, "--scope", "admin", "--first")
    again = run("new", "--data", data, "--name", "x", "--scope", "admin", "--first", "--json")
    assert (again.exit_code, json.loads(again.stdout)) == (0, None)
    plain = run("new", "--data", data, "--name", "x", "--scope", "admin", "--first")
    assert (plain.exit_code, plain.stdout) == (0, "")
    assert "has had its first token" in plain.stderr
    run("revoke", first["key_id"], "--data", data)
    assert make_first(data, "local") is None, "whoever revoked it did not ask for another"
    assert make_first(data, "other") is not None
    assert len(world.tokens.list("local")) == 2


def make_first(data: str, account: str) -> dict[str, Any] | None:
    arguments = ["--data", data, "--account", account, "--name", "x", "--scope", "admin", "--first", "--json"]
    return json.loads(run("new", *arguments).stdout)


NEW = ("new", "--name", "x", "--scope", "read")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([*NEW], 2, "DASKSCOPE_WORLD is not set. Say --data FOLDER or --stack NAME"),
        ([*NEW, "--data", "{data}", "--stack", "s"], 2, "--data and --stack name two servers"),
        ([*NEW, "--data", "{data}/nowhere"], 2, "a folder in which `daskscope serve` has run"),
        ([*NEW, "--data", "{data}", "--account", "A B"], 2, "--account is 'A B'; allowed: 1 to 63 of a-z"),
        ([*NEW, "--data", "{data}", "--expires-in", "soon"], 2, "--expires-in is 'soon'; allowed: a span"),
        ([*NEW, "--data", "{data}", "--expires-in", "-1d"], 2, "--expires-in is '-1d'; allowed: a span"),
        (["new", "--name", "x", "--scope", "all", "--data", "{data}"], 2, "'all' is not one of 'ingest'"),
        (["new", "--name", "x", "--data", "{data}"], 2, "Missing option '--scope'"),
        (["revoke", "0" * 12, "--data", "{data}"], 4, "Account local has no token with key id 000000000000."),
    ],
)  # fmt: skip
def test_wrong_use_gets_a_sentence(
    data: str, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, said: str
):
    monkeypatch.delenv("DASKSCOPE_WORLD", raising=False)
    result = run(*(argument.replace("{data}", data) for argument in arguments))
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr


def test_a_token_of_another_account_is_not_revoked(data: str):
    made = make(data)
    assert run("revoke", made["key_id"], "--data", data, "--account", "other").exit_code == 4
    assert json.loads(run("list", "--data", data, "--json").stdout)[0]["revoked"] is None


def test_the_environment_names_the_server_as_it_does_for_the_functions(data: str, monkeypatch: pytest.MonkeyPatch):
    for name, value in LocalEnv(data=data).variables().items():
        monkeypatch.setenv(name, value)
    assert run(*NEW).exit_code == 0
    assert len(json.loads(run("list", "--json").stdout)) == 1
    monkeypatch.setenv("DASKSCOPE_WORLD", "moon")
    assert "allowed: local, aws" in run("list").stderr


@pytest.fixture
def account(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    for name, value in emulator.environment.items():
        monkeypatch.setenv(name, value)
    return emulator


def stack(name: str, outputs: dict[str, Any]) -> None:
    """A stack with the registry's table, and the bucket of the lake."""
    table = {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [
                {"AttributeName": attribute, "AttributeType": "S"}
                for attribute in (registry.KEY, registry.LISTED_IN, registry.LISTED_AT)
            ],
            "KeySchema": [{"AttributeName": registry.KEY, "KeyType": "HASH"}],
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": registry.LISTING,
                    "KeySchema": [
                        {"AttributeName": registry.LISTED_IN, "KeyType": "HASH"},
                        {"AttributeName": registry.LISTED_AT, "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
        },
    }
    resources = {"Registry": table, "Lake": {"Type": "AWS::S3::Bucket"}}
    template = {"Resources": resources, "Outputs": {key: {"Value": value} for key, value in outputs.items()}}
    client = boto3.Session().client("cloudformation")
    client.create_stack(StackName=name, TemplateBody=json.dumps(template))
    client.get_waiter("stack_create_complete").wait(StackName=name)


OTHERS = {"Bucket": "b", "QueueUrl": "http://127.0.0.1/queue", "Keys": "/daskscope/admin/keys"}


def test_a_stack_is_found_by_its_name(account: Emulator):
    stack("admin-tokens", {"Table": {"Ref": "Registry"}, **OTHERS, "Bucket": {"Ref": "Lake"}})
    made = json.loads(run(*NEW, "--stack", "admin-tokens", "--json").stdout)
    assert made.pop("token").startswith(f"dks_{made['key_id']}_")
    assert made["account"] == "main"
    assert json.loads(run("list", "--stack", "admin-tokens", "--json").stdout) == [made]
    assert run("revoke", made["key_id"], "--stack", "admin-tokens").exit_code == 0


def test_the_region_may_be_said_as_all_tools_of_aws_take_it(account: Emulator, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "")  # so that what becomes of it is taken back
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    result = run("list", "--stack", "nowhere")
    assert (result.exit_code, os.environ["AWS_DEFAULT_REGION"]) == (4, "ap-south-1")


def test_a_stack_that_is_none_of_ours(account: Emulator):
    stack("admin-foreign", OTHERS)
    result = run("list", "--stack", "admin-foreign")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "a stack of `make deploy`; this one has no output Table" in result.stderr


def test_a_stack_that_is_not_there(account: Emulator):
    result = run("list", "--stack", "nowhere")
    assert result.exit_code == 4
    assert "There is no stack nowhere" in result.stderr


def test_aws_without_credentials(account: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    result = run("list", "--stack", "nowhere")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "AWS could not be asked" in result.stderr
    assert "AWS_PROFILE" in result.stderr


def test_a_table_that_is_gone(account: Emulator):
    stack("admin-gone", {"Table": "no-such-table", **OTHERS})
    result = run("list", "--stack", "admin-gone")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "The registry could not be used" in result.stderr

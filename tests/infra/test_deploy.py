"""The real commands, the real CDK, into the emulator."""

import json
import signal
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import click
import httpx
import pytest
from botocore import exceptions

from daskscope_infra.commands import account
from tests.emulator import Emulator
from tests.infra import little_stacks
from tests.infra.commands import CONTEXT, command, environment, run

pytestmark = pytest.mark.timeout(600)

NAME = "deploy-test"
NAMED = (*CONTEXT, f"daskscope:name={NAME}")

Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def environ(emulator: Emulator, home: Path) -> dict[str, str]:
    return environment(emulator, home)


@pytest.fixture(scope="module")
def deployed(emulator: Emulator, home: Path) -> Done:
    """The first deploy, in an account that was just prepared. Its JSON is in `home`."""
    prepared = run(command("bootstrap"), environment(emulator, home))
    assert prepared.returncode == 0, prepared.stdout + prepared.stderr
    options = ("--yes", "--outputs", str(home / "first.json"))
    done = run(command("deploy", *options, context=NAMED), environment(emulator, home))
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture
def client(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    for name, value in emulator.environment.items():
        monkeypatch.setenv(name, value)
    session: Any = boto3.Session()
    return session.client


def api(emulator: Emulator, address: str, token: str, path: str = "main/clusters") -> httpx.Response:
    """The deployed API's answer: its address is a name, which the emulator takes as a path too."""
    root = f"{emulator.url}/_aws/execute-api/{httpx.URL(address).host.partition('.')[0]}/$default"
    bearer = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{root}/api/v1/{path}", headers=bearer, trust_env=False, timeout=60)


def scopes(emulator: Emulator, address: str, token: str) -> list[str]:
    return api(emulator, address, token, "whoami").raise_for_status().json()["scopes"]


def test_a_first_deploy_says_what_it_makes_and_hands_over_working_tokens(
    deployed: Done, home: Path, emulator: Emulator
) -> None:
    assert f"Account 000000000000, region eu-west-1, stack {NAME}:\n" in deployed.stdout
    assert "5 Lambda Function" in deployed.stdout
    assert stat.S_IMODE((home / "first.json").stat().st_mode) == 0o600
    told = json.loads((home / "first.json").read_text())
    assert told["address"] == told["outputs"]["Address"]
    assert "dks_" not in deployed.stdout + deployed.stderr, "a file was asked for: logs of a build are read by many"
    assert api(emulator, told["address"], told["token"]).status_code == 200
    assert api(emulator, told["address"], told["ingest_token"]).status_code == 403, "what schedulers have reads nothing"
    assert api(emulator, told["address"], told["read_token"]).status_code == 200


def test_a_second_run_changes_nothing_makes_no_token_and_loses_none(
    deployed: Done, home: Path, environ: dict[str, str], emulator: Emulator
) -> None:
    first = json.loads((home / "first.json").read_text())
    done = run(command("deploy", "--outputs", str(home / "first.json"), context=NAMED), environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing has changed." in done.stdout
    assert json.loads((home / "first.json").read_text()) == first
    assert api(emulator, first["address"], first["token"]).status_code == 200, "what was handed over stays good"


def test_another_account_gets_its_tokens_and_what_to_paste(
    deployed: Done, environ: dict[str, str], emulator: Emulator
) -> None:
    done = run(command("deploy", "--account", "acme", context=NAMED), environ)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert [line.partition("=")[0] for line in lines if line.startswith("export ")] == [
        "export DASK_DASKSCOPE__SERVER",
        "export DASK_DASKSCOPE__INGEST_TOKEN",
        "export DASK_DASKSCOPE__TOKEN",
    ]
    exported = dict(line.removeprefix("export ").split("=", 1) for line in lines if line.startswith("export "))
    address, reading = exported["DASK_DASKSCOPE__SERVER"], exported["DASK_DASKSCOPE__TOKEN"]
    (link,) = (line for line in lines if line.startswith(f"{address}/login?code="))
    root = f"{emulator.url}/_aws/execute-api/{httpx.URL(address).host.partition('.')[0]}/$default"
    signed_in = httpx.post(f"{root}/login", data={"code": link.partition("=")[2]}, trust_env=False, timeout=60)
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "acme/analytics")
    assert scopes(emulator, address, reading) == ["read"]
    assert scopes(emulator, address, exported["DASK_DASKSCOPE__INGEST_TOKEN"]) == ["ingest"]
    (admin,) = (line for line in lines if line.startswith("dks_"))
    assert scopes(emulator, address, admin) == ["admin", "control", "ingest", "read", "report"]
    assert done.stdout.count(admin) == 1


def test_a_change_is_shown_and_not_made_without_a_yes(
    deployed: Done, environ: dict[str, str], client: Callable[[str], Any]
) -> None:
    done = run(command("deploy", context=(*NAMED, "daskscope:write-window-s=5")), environ, answer="n\n")
    assert (done.returncode, done.stderr) == (1, "\nStopped. Nothing was changed in AWS.\n")
    assert "EventSourceMapping" in done.stdout
    (mapping,) = [
        found
        for found in client("lambda").list_event_source_mappings()["EventSourceMappings"]
        if NAME in found["FunctionArn"]
    ]
    assert mapping["MaximumBatchingWindowInSeconds"] == 60


def exists(client: Callable[[str], Any], kind: str, name: str) -> bool:
    """Whether a bucket or table is there."""
    try:
        if kind == "bucket":
            client("s3").head_bucket(Bucket=name)
        else:
            client("dynamodb").describe_table(TableName=name)
    except exceptions.ClientError:
        return False
    return True


def test_destroy_takes_all_data_where_it_was_deployed_so(
    deployed: Done, home: Path, environ: dict[str, str], client: Callable[[str], Any]
) -> None:
    name = "destroy-all"
    context = (*CONTEXT, f"daskscope:name={name}", "daskscope:remove-data=true")
    made = run(command("deploy", "--yes", "--outputs", str(home / name), context=context), environ)
    assert made.returncode == 0, made.stdout + made.stderr
    outputs = json.loads((home / name).read_text())["outputs"]
    client("ssm").put_parameter(Name=f"{outputs['Keys']}/main", Value="k", Type="SecureString")
    client("s3").put_object(Bucket=outputs["Bucket"], Key="open/samples/day=2026-11-21/a.parquet", Body=b"x")

    # What it was deployed with counts, and not what is said now.
    done = run(command("destroy", "--yes", context=context[:-1]), environ)
    assert done.returncode == 0, done.stdout + done.stderr
    bucket, table = f"S3 Bucket {outputs['Bucket']}", f"DynamoDB Table {outputs['Table']}"
    (said,) = [line for line in done.stdout.splitlines() if bucket in line]
    assert said.startswith("ALL DATA GOES, FOR GOOD: ")
    assert table in said
    assert outputs["Keys"] in said
    left = client("ssm").get_parameters_by_path(Path=outputs["Keys"])["Parameters"]
    there = [exists(client, "bucket", outputs["Bucket"]), exists(client, "table", outputs["Table"]), bool(left)]
    assert there == [False] * 3
    again = run(command("destroy", "--yes", context=context), environ)
    assert (again.returncode, "nothing to destroy" in again.stdout) == (0, True)


def test_ctrl_c_at_the_question_leaves_all_as_it_is(deployed: Done, environ: dict[str, str]) -> None:
    argv = command("destroy", context=NAMED)
    with subprocess.Popen(
        argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        asked = ""
        while not asked.endswith("[y/N]: "):
            letter = process.stdout.read(1)
            assert letter, asked
            asked += letter
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (1, "\nStopped. Nothing was changed in AWS.\n")


def test_a_deploy_that_fails_says_how_things_stand(emulator: Emulator, environ: dict[str, str], deployed: Done) -> None:
    """A region where the parameter says that it was prepared, and nothing is there but what failed before."""
    region = "eu-south-1"
    put_bootstrap(emulator, region, "30")
    bucket = little_stacks.make(emulator, NAME, stays=True, fails=True, region=region)
    done = run(
        command("deploy", "--yes", context=NAMED), environ | {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}
    )
    assert done.returncode == 1
    assert "It is in state ROLLBACK_COMPLETE: an earlier deploy failed or goes on." in done.stdout
    assert "\nError: The deploy failed: above is why." in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    for said in (done.stdout, done.stderr):
        assert f"The first deploy failed and left behind, as data always stays: S3 Bucket {bucket}." in said
        assert f"\n  aws s3 rb s3://{bucket} --region {region}\n" in said


def put_bootstrap(emulator: Emulator, region: str, version: str) -> None:
    session = boto3.Session("test", "test", region_name=region)
    ssm: Any = session.client("ssm", endpoint_url=emulator.url)
    ssm.put_parameter(Name=account.BOOTSTRAP, Value=version, Type="String", Overwrite=True)


# What follows ends before anything is built.


@pytest.mark.parametrize(
    ("context", "said"),
    [
        (("daskscope:architecure=x86_64",), "daskscope:architecure is no setting of daskscope; allowed: "),
        (("daskscope:architecture=riscv",), "daskscope:architecture is 'riscv'; allowed: arm64, x86_64"),
        (("architecture=x86_64",), "architecture is no key of ours: they start with daskscope:"),
        (("daskscope:name",), "'daskscope:name' is no context: say KEY=VALUE"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["deploy", "destroy"])
def test_bad_context_is_named(environ: dict[str, str], name: str, context: tuple[str, ...], said: str) -> None:
    done = run(command(name, "--yes", context=context), environ)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert said in done.stderr


def test_the_oldest_python_is_for_the_emulator(emulator: Emulator, home: Path) -> None:
    in_aws = environment(emulator, home, AWS_ENDPOINT_URL=None)
    done = run(command("deploy", context=("daskscope:python=3.11",)), in_aws)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: daskscope:python is '3.11'; allowed on AWS: 3.13, 3.12.")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--account", "A B"), "'A B' is no account name"),
        (("--outputs", "/no/such/folder/file.json"), "no file can be written in /no/such/folder"),
    ],
)
def test_bad_options_are_named(environ: dict[str, str], options: tuple[str, ...], said: str) -> None:
    done = run(command("deploy", *options), environ)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert said in done.stderr


@pytest.mark.parametrize("name", ["bootstrap", "deploy", "destroy"])
def test_no_credentials(emulator: Emulator, home: Path, name: str) -> None:
    environ = environment(emulator, home, AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None)
    done = run(command(name), environ)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: There are no AWS credentials: run `aws configure`")
    assert done.stderr.count("\n") == 1


def test_no_region(emulator: Emulator, home: Path) -> None:
    done = run(command("deploy"), environment(emulator, home, AWS_REGION=None, AWS_DEFAULT_REGION=None))
    assert (done.returncode, done.stderr.partition(":")[2][:27]) == (1, " No AWS region is chosen: s")


def test_nobody_answers(emulator: Emulator, home: Path) -> None:
    done = run(
        command("deploy"), environment(emulator, home, AWS_ENDPOINT_URL="http://127.0.0.1:1", AWS_MAX_ATTEMPTS="1")
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: AWS could not be asked: Could not connect to the endpoint URL")


def test_an_account_that_was_not_prepared(emulator: Emulator, home: Path) -> None:
    done = run(command("deploy"), environment(emulator, home, AWS_REGION="eu-central-1"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not prepared for the CDK in eu-central-1: run `make bootstrap` once." in done.stderr


def test_an_account_that_was_prepared_long_ago(emulator: Emulator, home: Path) -> None:
    put_bootstrap(emulator, "eu-north-1", "3")
    done = run(command("deploy"), environment(emulator, home, AWS_REGION="eu-north-1"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "has version 3, and 6 is needed: run `make bootstrap`" in done.stderr


def test_nothing_to_destroy(environ: dict[str, str]) -> None:
    done = run(command("destroy", context=("daskscope:name=nowhere",)), environ)
    assert done.returncode == 0
    assert "There is no stack nowhere in account 000000000000, region eu-west-1: nothing to destroy." in done.stdout


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("ExpiredToken", "have expired"),
        ("InvalidClientTokenId", "does not know these credentials"),
        ("SignatureDoesNotMatch", "does not know these credentials"),
        ("AccessDenied", r"could not be asked: An error occurred \(AccessDenied\)"),
    ],
)
def test_what_aws_refuses_becomes_a_sentence(code: str, said: str) -> None:
    refused = exceptions.ClientError({"Error": {"Code": code, "Message": "no"}}, "GetCallerIdentity")
    with pytest.raises(click.ClickException, match=said), account.told():
        raise refused


def test_a_login_that_ran_out_becomes_a_sentence() -> None:
    with pytest.raises(click.ClickException, match="have expired: log in again"), account.told():
        raise exceptions.UnauthorizedSSOTokenError

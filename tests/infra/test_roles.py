"""Each function under its own role, in an emulator that asks who may: what it was given is enough, and is all.

The policies that refuse what is not encrypted on its way are left out, for here everything comes as plain HTTP. The
emulator does not look at the keys of DynamoDB's items: what each function asked for is held against its role here.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from tempfile import TemporaryFile
from typing import Any, get_args

import boto3
import pytest
from botocore.exceptions import ClientError

from daskscope import wire
from daskscope.testing import message
from daskscope_lambdas.env import AwsEnv
from daskscope_lambdas.ports import Deletion, Scope, TokenRow
from daskscope_lambdas.service.people import People
from daskscope_lambdas.service.price_store import PriceKeeper
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import connect
from daskscope_query import layout
from tests.aws_world import point_at
from tests.emulator import REGION, ROOT, Emulator
from tests.infra.child import Asked
from tests.infra.people_and_reports import (
    asking,
    change_their_role_and_take_them_out,
    keep_reports,
    leave_what_is_due,
    let_somebody_in,
    request,
    want_something,
)
from tests.infra.template import Template

STACK = "roles"
NOT_HERE = ("AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy", "AWS::Lambda::EventSourceMapping")


@dataclass(frozen=True, slots=True)
class House:
    """The stack in the emulator. The operator may everything, a function what its role says.

    `asked` is what each function has asked DynamoDB for.
    """

    emulator: Emulator
    template: Template
    outputs: dict[str, str]
    functions: dict[str, dict[str, Any]]
    asked: dict[str, set[Asked]] = field(default_factory=dict[str, set[Asked]])

    def credentials(self, function: str | None) -> dict[str, str]:
        """As environment variables; of the operator if there is no function."""
        if function is None:
            return self.emulator.environment
        taken = self.client("sts").assume_role(RoleArn=self.functions[function]["Role"], RoleSessionName="test")
        return self.emulator.environment | {
            "AWS_ACCESS_KEY_ID": taken["Credentials"]["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": taken["Credentials"]["SecretAccessKey"],
            "AWS_SESSION_TOKEN": taken["Credentials"]["SessionToken"],
        }

    def client(self, service: str, function: str | None = None) -> Any:
        return client(self.credentials(function), service)

    def call(self, function: str, *events: dict[str, Any]) -> list[Any]:
        """What the handler answers, in a process of its own, as in Lambda."""
        with self.talk(function) as say:
            return [say(event) for event in events]

    @contextmanager
    def talk(self, function: str) -> Generator[Callable[[dict[str, Any]], Any]]:
        """As `call`, for who knows the next event only from an answer."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DASKSCOPE_"))}
        told: dict[str, str] = self.functions[function]["Environment"]["Variables"]
        asked = self.asked.setdefault(function, set())
        with TemporaryFile("w+") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.infra.child", function],
                env=clean | told | self.credentials(function),
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

            def logged() -> str:
                log.seek(0)
                return log.read()

            def say(event: dict[str, Any]) -> Any:
                assert child.stdin
                assert child.stdout
                child.stdin.write(json.dumps(event) + "\n")
                child.stdin.flush()
                line = child.stdout.readline()
                assert line, logged()
                assert "Traceback" not in logged(), logged()
                heard = json.loads(line)
                asked.update((*rest, tuple(keys), tuple(named)) for *rest, keys, named in heard["asked"])
                return heard["answer"]

            with child:
                try:
                    yield say
                finally:
                    assert child.stdin
                    child.stdin.close()
            assert "AccessDenied" not in logged(), logged()

    def files(self) -> set[str]:
        """Of reports that are kept."""
        found = self.client("s3").list_objects_v2(Bucket=self.outputs["ReportsBucket"])["Contents"]
        return {each["Key"] for each in found if not each["Key"].startswith("shown/")}

    def objects(self) -> list[str]:
        found = self.client("s3").list_objects_v2(Bucket=self.outputs["Bucket"])
        return [each["Key"] for each in found.get("Contents", [])]


_SESSION: Any = boto3.Session()
"""One for all: most of what a session's first client costs is reading what its service looks like."""


def client(credentials: dict[str, str], service: str) -> Any:
    return _SESSION.client(
        service,
        region_name=REGION,
        endpoint_url=credentials["AWS_ENDPOINT_URL"],
        aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=credentials.get("AWS_SESSION_TOKEN"),
    )


@pytest.fixture(scope="module", params=["plain", "chosen"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    template: Template = request.getfixturevalue(request.param)
    body = template.body | {
        "Resources": {name: r for name, r in template.body["Resources"].items() if r["Type"] not in NOT_HERE}
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTH", "true")
        with Emulator(tmp_path_factory.mktemp("strict")) as emulator:
            # What the template asks of an account that it is deployed to.
            ssm = client(emulator.environment, "ssm")
            ssm.put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String")
            formation = client(emulator.environment, "cloudformation")
            formation.create_stack(StackName=STACK, TemplateBody=json.dumps(body), Capabilities=["CAPABILITY_IAM"])
            formation.get_waiter("stack_create_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1})
            outputs = formation.describe_stacks(StackName=STACK)["Stacks"][0]["Outputs"]
            functions = client(emulator.environment, "lambda").list_functions()["Functions"]
            yield House(
                emulator,
                template,
                {output["OutputKey"]: output["OutputValue"] for output in outputs},
                {function["Handler"].split(".")[2]: function for function in functions},
            )


def test_each_function_does_its_work_with_what_it_was_given(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    out = house.outputs
    point_at(house.emulator, monkeypatch)
    env = AwsEnv(
        bucket=out["Bucket"], table=out["Table"], queue_url=out["QueueUrl"], keys=out["Keys"], keys_kms_key="",
        reports_bucket=out["ReportsBucket"], reports=out["Reports"], endpoint_url=house.emulator.url,
    )  # fmt: skip
    with closing(connect(env)) as world:
        People(world.users, world.clock).put("acme", "root", "admin", "test")
        token, _ = mint(world.tokens, world.clock, "acme", get_args(Scope), "test", user="root")
        long_ago = world.clock.now() - 3 * 86_400
        world.clusters.enrol("acme", "0" * 32, long_ago, long_ago)
        PriceKeeper(world.objects, world.clock).set(None, b"core_hour: 0.02", "test")
    headers = {"authorization": f"Bearer {token}", "content-type": wire.CONTENT_TYPE}

    # Whose next message is far off: however slow this machine is, it is not lost when the sweep comes.
    told = message(next_s=3600.0, codes=[wire.Code(hash=hashlib.sha256(b"x = 1").hexdigest()[:32], text="x = 1")])
    later = replace(told, seq=told.seq + 1, codes=[])
    posts = [request("POST", wire.PATH, headers, wire.encode(each)) for each in (told, later)]
    assert [answer["statusCode"] for answer in house.call("ingest", *posts)] == [200, 200]

    batch = house.client("sqs", "write").receive_message(QueueUrl=out["QueueUrl"], MaxNumberOfMessages=10)["Messages"]
    batch.append({"MessageId": "1", "ReceiptHandle": "1", "Body": "poison"})
    assert house.call("write", {"Records": [_record(each) for each in batch]}) == [{"batchItemFailures": []}]
    assert {key.split("/")[0] for key in house.objects()} == {"code", "dead", "open", "prices"}

    with house.talk("api") as say:
        ask = asking(say, headers)
        want_something(ask)
        cookie = let_somebody_in(ask)
        keep_reports(ask, cookie)
        change_their_role_and_take_them_out(ask)
    with closing(connect(env)) as world:
        leave_what_is_due(world, time.time() - 30 * 86_400)
    assert house.call("sweep", {}) == [{"living": 1, "idle": 0, "lost": 1}]

    with closing(connect(env)) as world:
        (hidden,) = world.reports.page("acme", 10)
        assert hidden.private
        assert list(world.reports.page("initech", 10)) == []
    assert house.files() == {f"private/{hidden.link}.html", f"public/{'globex'.rjust(22, '0')}.html"}
    _make_old_and_many(house)
    gone = _ask_to_delete(house, env)
    house.call("compact", {}, {})
    kept = house.objects()
    assert {key.split("/")[0] for key in kept} == {
        "catalog", "code", "dead", "open", "prices", "sealed", "seals", "rollups", "unused",
    }  # fmt: skip
    assert [key for key in kept if "/gathered-1-" in key]
    assert not [key for key in kept if key in gone or "account=globex" in key]
    with closing(connect(env)) as world:
        assert world.deletions.pending() == []
        assert list(world.tokens.list("globex")) == []
        assert (list(world.users.list("globex")), list(world.reports.page("globex", 1))) == ([], [])
        # One that is not done yet, so that the pages have something to leave out.
        world.deletions.ask(Deletion(account="acme", cluster="9" * 32, asked_at=world.clock.now(), by="test"))

    asked = ("/api/v1/acme/clusters", "/api/v1/acme/clusters/2", "/api/v1/acme/clusters/2/computations")
    answers = house.call("api", *(request("GET", path, headers) for path in asked))
    assert [answer["statusCode"] for answer in answers] == [200, 200, 200]
    (prices,) = house.call("api", request("GET", "/api/v1/acme/prices", headers))
    assert json.loads(prices["body"])["core_hour"] == 0.02
    (asked_to_close,) = house.call("api", request("POST", "/api/v1/acme/clusters/2/close", headers))
    assert asked_to_close["statusCode"] == 202
    wanted = json.dumps({"name": "ann", "scopes": ["read"]}).encode()
    (made,) = house.call("api", request("POST", "/api/v1/acme/tokens", headers, wanted))
    key_id = json.loads(made["body"])["key_id"]
    listed, revoked = house.call(
        "api",
        request("GET", "/api/v1/acme/tokens", headers),
        request("DELETE", f"/api/v1/acme/tokens/{key_id}", headers),
    )
    assert key_id in {row["key_id"] for row in json.loads(listed["body"])["items"]}
    assert json.loads(revoked["body"])["revoked"]
    (told,) = house.call("ingest", request("POST", wire.PATH, headers, wire.encode(replace(later, seq=later.seq + 1))))
    assert json.loads(told["body"])["wish"] == ["close"]

    assert house.asked.keys() == house.functions.keys()
    for function, asked in house.asked.items():
        assert {table for _, table, *_ in asked} == {out["Table"]}
        used = {each: house.template.rights_used(function, each) for each in asked}
        assert not [each for each, rights in used.items() if not rights], f"AWS would refuse this to {function}"
        assert set().union(*used.values()) == house.template.registry_rights(function), f"{function} needs no more"


@pytest.mark.parametrize(
    ("function", "operation", "index", "keys"),
    [
        ("ingest", "PutItem", "", ("token/1",)),
        ("ingest", "UpdateItem", "", ("accounts/acme",)),
        ("ingest", "Query", "listing", ()),
        ("write", "GetItem", "", ("seals/acme",)),
        ("write", "PutItem", "", ("seals",)),
        ("ingest", "GetItem", "", ("user/ann",)),
        ("api", "DeleteItem", "", ("token/1",)),
        ("api", "DeleteItem", "", ("user/ann",)),
        ("api", "PutItem", "", ("cluster/1",)),
        ("sweep", "BatchGetItem", "", ("cluster/1", "token/1")),
        ("sweep", "PutItem", "", ("report/acme/1",)),
        ("compact", "UpdateItem", "", ("cluster/1",)),
        ("compact", "DeleteItem", "", ("seals",)),
        ("api", "DeleteItem", "", ("deletion/acme/1",)),
        ("compact", "Scan", "", ()),
    ],
)
def test_a_function_that_asked_for_what_is_not_its_own_would_be_found(
    plain: Template, function: str, operation: str, index: str, keys: tuple[str, ...]
) -> None:
    assert not plain.rights_used(function, (operation, "registry", index, keys, ()))


@pytest.mark.parametrize("attributes", [("key", "revoked_at"), ("key", "used_on", "*"), ("account",), ("scopes",)])
def test_ingest_changes_of_a_token_nothing_but_when_it_was_used(plain: Template, attributes: tuple[str, ...]) -> None:
    def rights(*attributes: str) -> set[tuple[str, str]]:
        return plain.rights_used("ingest", ("UpdateItem", "registry", "", ("token/1",), attributes))

    assert rights("key", "used_on")
    assert not rights(*attributes)


def test_the_keys_of_a_stack_lie_where_no_other_looks(house: House) -> None:
    (stack,) = house.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
    _, name, uuid = stack["StackId"].split("/")
    assert house.outputs["Keys"] == f"/daskscope/{name}/{uuid}/keys"


def _record(received: dict[str, Any]) -> dict[str, Any]:
    return {
        "messageId": received["MessageId"], "receiptHandle": received["ReceiptHandle"], "body": received["Body"],
        "attributes": {"ApproximateReceiveCount": "1"}, "messageAttributes": {}, "eventSource": "aws:sqs",
        "eventSourceARN": "", "awsRegion": REGION,
    }  # fmt: skip


def _make_old_and_many(house: House) -> None:
    """Of each file that is there, one of a day that is over, and so many of this one that they are gathered."""
    s3, bucket = house.client("s3"), house.outputs["Bucket"]
    for key in (key for key in house.objects() if key.startswith("open/")):
        body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        for number in range(16):
            s3.put_object(Bucket=bucket, Key=key.replace(".parquet", f"-{number}.parquet"), Body=body)
        today = layout.day_in(key)
        assert today is not None
        s3.put_object(Bucket=bucket, Key=key.replace(f"{today}", f"{today - timedelta(3)}"), Body=body)


def _ask_to_delete(house: House, env: AwsEnv) -> list[str]:
    """A cluster and an account, so long ago that all that is to be done of it is due. Returns keys of what is to go."""
    long_ago = time.time() - 30 * 86_400
    old = layout.day_of(long_ago - 86_400)
    keys = [
        layout.sealed_key("samples", "globex", old, 0),
        layout.rollup_key("clusters_daily", "globex", old, 0),
        layout.code_key("globex", "ab" * 16),
        layout.prices_key("globex", long_ago, "ab"),
        layout.code_key("acme", "cd" * 16),
        layout.unused_key("acme", old),
        layout.dead_key("globex", "1" * 32, "letter", "message"),
    ]
    for key in keys:
        body = json.dumps([layout.code_key("acme", "cd" * 16)]).encode() if key.startswith("unused/") else b"{}"
        house.client("s3").put_object(Bucket=env.bucket, Key=key, Body=body)
    with closing(connect(env)) as world:
        world.clusters.enrol("globex", "1" * 32, long_ago, long_ago)
        token = TokenRow(
            key_id="globex", secret_sha256="0" * 64, account="globex", scopes=frozenset({"read"}), name="old",
            created_at=long_ago,
        )  # fmt: skip
        world.tokens.add(token)
        world.policies.set_wish("globex", "retention", {"logs": 7})
        world.policies.set_wish("acme", "retention", {"logs": 7, "clusters": 7})
        world.clusters.enrol("acme", "2" * 32, long_ago, long_ago)
        world.vault.seal("globex", {"x": b"x"})
        world.deletions.ask(Deletion(account="acme", cluster="0" * 32, asked_at=long_ago, by="test"))
        world.deletions.ask(Deletion(account="globex", cluster=None, asked_at=long_ago, by="test"))
    return keys


@pytest.mark.parametrize(
    ("function", "service", "operation", "arguments"),
    [
        ("api", "s3", "put_object", {"Bucket": "Bucket", "Key": "open/x", "Body": b""}),
        ("api", "s3", "put_object", {"Bucket": "Bucket", "Key": "open/clusters/x", "Body": b""}),
        ("api", "s3", "delete_object", {"Bucket": "Bucket", "Key": "open/audit/x"}),
        ("ingest", "s3", "get_object", {"Bucket": "ReportsBucket", "Key": "public/x"}),
        ("sweep", "s3", "put_object", {"Bucket": "ReportsBucket", "Key": "public/x", "Body": b""}),
        ("compact", "s3", "get_object", {"Bucket": "ReportsBucket", "Key": "private/x"}),
        ("api", "ssm", "put_parameter", {"Name": "Keys", "Value": "x", "Type": "SecureString"}),
        ("api", "s3", "put_object", {"Bucket": "Bucket", "Key": "prices/all/x", "Body": b""}),
        ("compact", "s3", "delete_object", {"Bucket": "Bucket", "Key": "late/x"}),
        ("compact", "ssm", "get_parameter", {"Name": "Keys"}),
        ("compact", "s3", "get_object", {"Bucket": "Bucket", "Key": "code/x"}),
        ("ingest", "s3", "get_object", {"Bucket": "Bucket", "Key": "code/x"}),
        ("ingest", "sqs", "receive_message", {"QueueUrl": "QueueUrl"}),
        ("ingest", "dynamodb", "scan", {"TableName": "Table"}),
        ("sweep", "s3", "list_objects_v2", {"Bucket": "Bucket"}),
        ("write", "s3", "put_object", {"Bucket": "Bucket", "Key": "sealed/x", "Body": b""}),
        ("write", "s3", "get_object", {"Bucket": "Bucket", "Key": "dead/x"}),
        ("write", "sqs", "send_message", {"QueueUrl": "QueueUrl", "MessageBody": "x"}),
    ],
)
def test_what_a_function_was_not_given_it_is_refused(
    house: House, function: str, service: str, operation: str, arguments: dict[str, Any]
) -> None:
    told = {
        name: house.outputs.get(value, value) if isinstance(value, str) else value for name, value in arguments.items()
    }
    with pytest.raises(ClientError) as refused:
        getattr(house.client(service, function), operation)(**told)
    assert refused.value.response.get("Error", {}).get("Code", "").startswith("AccessDenied")

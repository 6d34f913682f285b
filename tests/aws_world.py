"""Resources of a test's own in the emulator, shaped like the stack's."""

from __future__ import annotations

import itertools
import json
from contextlib import closing

import boto3
import pytest
from botocore.config import Config
from botocore.loaders import create_loader

from daskscope_lambdas import registry
from daskscope_lambdas.adapters.aws import clients
from daskscope_lambdas.env import AwsEnv
from tests.emulator import REGION, Emulator

_NUMBERS = itertools.count(1)
_LOADER = create_loader()


def point_at(emulator: Emulator, patch: pytest.MonkeyPatch) -> None:
    """Until `patch` is undone, boto3, botocore and pyarrow in this process find the emulator and nothing else."""
    for name, value in emulator.environment.items():
        patch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        patch.delenv(name, raising=False)
    # A busy machine is no lost answer: a try that is repeated may meet its own work, and then nobody wins a race.
    patient = clients._CONFIG.merge(Config(connect_timeout=60, read_timeout=60))
    patch.setattr(clients, "_CONFIG", patient)
    # One loader for all sessions: most of what a session's first client costs is reading what S3 looks like.
    patch.setattr("botocore.session.create_loader", lambda *_: _LOADER)


def make_world(emulator: Emulator) -> AwsEnv:
    """A bucket and one for reports, a table, a queue and one for its dead letters, and a path for keys, that no other
    test has. `point_at` comes first.
    """
    name = f"world-{next(_NUMBERS)}"
    session = boto3.session.Session()
    with closing(session.client("s3", endpoint_url=emulator.url)) as s3:
        for bucket in (name, f"{name}-reports"):
            s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    with closing(session.client("sqs", endpoint_url=emulator.url)) as sqs:
        dead = sqs.create_queue(QueueName=dead_letters(name))["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "10"})
        queue = sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": policy})
    _make_table(session, emulator.url, name)
    return AwsEnv(
        bucket=name,
        table=name,
        queue_url=queue["QueueUrl"],
        keys=f"/{name}/keys",
        reports_bucket=f"{name}-reports",
        endpoint_url=emulator.url,
        region=REGION,
    )


def dead_letters(queue: str) -> str:
    """The name, or the URL, of the queue in which dead letters of a `make_world` queue end."""
    return f"{queue}-dead"


def _make_table(session: boto3.session.Session, url: str, name: str) -> None:
    """As registry.py says and the stack makes it."""
    with closing(session.client("dynamodb", endpoint_url=url)) as dynamodb:
        dynamodb.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": registry.KEY, "KeyType": "HASH"}],
            AttributeDefinitions=[
                {"AttributeName": attribute, "AttributeType": "S"}
                for attribute in (registry.KEY, registry.LISTED_IN, registry.LISTED_AT, registry.LIVES_IN)
            ],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": registry.LISTING,
                    "KeySchema": [
                        {"AttributeName": registry.LISTED_IN, "KeyType": "HASH"},
                        {"AttributeName": registry.LISTED_AT, "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                },
                {
                    "IndexName": registry.LIVING,
                    "KeySchema": [{"AttributeName": registry.LIVES_IN, "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                },
            ],
        )
        dynamodb.update_time_to_live(
            TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": registry.FORGET_AT}
        )

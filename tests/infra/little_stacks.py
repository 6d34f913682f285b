"""Stacks as CloudFormation knows them, of two resources: what commands do with a stack needs no more, and no CDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import boto3

from daskscope_infra.settings import DESCRIPTION
from tests.emulator import REGION, Emulator

OUTPUTS: dict[str, str] = dict.fromkeys(("Address", "Bucket", "Table", "QueueUrl", "Keys"), "of a test")


def client(emulator: Emulator, service: str, region: str = REGION) -> Any:
    session: Any = boto3.Session("test", "test", region_name=region)
    return session.client(service, endpoint_url=emulator.url)


def make(
    emulator: Emulator,
    name: str,
    outputs: Mapping[str, str] = OUTPUTS,
    *,
    description: str = DESCRIPTION,
    stays: bool = False,
    fails: bool = False,
    export: str | None = None,
    protected: bool = False,
    region: str = REGION,
) -> str:
    """A stack of a queue and a bucket with one object in it; the bucket's name. `fails`: creating it, at the end."""
    bucket = f"bucket-of-{name}-{region}"
    policy = {"DeletionPolicy": "Retain"} if stays else {}
    # Nobody knows the function that would make the third.
    broken = {"ServiceToken": f"arn:aws:lambda:{region}:000000000000:function:none"}
    template = {
        "Description": description,
        "Resources": {
            "Queue": {"Type": "AWS::SQS::Queue"},
            "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": bucket}, **policy},
        }
        | ({"Broken": {"Type": "Custom::Broken", "DependsOn": "Bucket", "Properties": broken}} if fails else {}),
        "Outputs": {key: {"Value": value} for key, value in outputs.items()}
        | ({"Exported": {"Value": "a", "Export": {"Name": export}}} if export else {}),
    }
    formation = client(emulator, "cloudformation", region)
    formation.create_stack(StackName=name, TemplateBody=json.dumps(template), EnableTerminationProtection=protected)
    if not fails:
        formation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
        client(emulator, "s3", region).put_object(Bucket=bucket, Key="held", Body=b"x")
    return bucket


def names(emulator: Emulator, region: str = REGION) -> set[str]:
    """Of the stacks that are there."""
    return {s["StackName"] for s in client(emulator, "cloudformation", region).describe_stacks()["Stacks"]}


def holds(emulator: Emulator, bucket: str, region: str = REGION) -> bool:
    """Whether the bucket still has its object."""
    return "Contents" in client(emulator, "s3", region).list_objects_v2(Bucket=bucket)

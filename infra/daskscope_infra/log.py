"""A log that forgets."""

from __future__ import annotations

from typing import cast

from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct


class Log(Construct):
    """Goes with the stack: what it says is about the stack."""

    def __init__(self, scope: Construct, id: str, *, days: int, key: kms.IKey | None) -> None:
        super().__init__(scope, id)
        self.group = logs.LogGroup(self, "Log", encryption_key=key, removal_policy=RemovalPolicy.DESTROY)
        # The CDK has names for the numbers that CloudWatch takes; settings.py has the numbers.
        cast(logs.CfnLogGroup, self.group.node.default_child).retention_in_days = days

"""The key of one's own, where AWS's are not wanted: one for all that is kept, renewed every year."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from aws_cdk import ArnFormat, Aws, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from daskscope_infra.policies import allow, service


class CustomerKey(Construct):
    """Stays behind with the data that it opens, unless that goes too."""

    def __init__(self, scope: Construct, id: str, *, removal: RemovalPolicy) -> None:
        super().__init__(scope, id)
        key = kms.Key(
            self,
            "Key",
            description="daskscope: the lake, the registry, the queues, the logs and the accounts' keys",
            enable_key_rotation=True,
            removal_policy=removal,
        )
        groups = Stack.of(self).format_arn(
            service="logs", resource="log-group", resource_name="*", arn_format=ArnFormat.COLON_RESOURCE_NAME
        )
        key.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[service(f"logs.{Aws.REGION}.amazonaws.com")],
                actions=["kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
                resources=["*"],
                conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
            )
        )
        self.key = cast(kms.IKey, key)

    def lend(self, role: iam.IRole, services: Sequence[str]) -> None:
        """Let `role` use the key, but only through these services (`s3`, `sqs`, `dynamodb`, `ssm`)."""
        through = [f"{name}.{Aws.REGION}.amazonaws.com" for name in services]
        allow(
            role,
            ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey"],
            [self.key.key_arn],
            {"StringEquals": {"kms:ViaService": through}},
        )

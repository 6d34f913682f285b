"""The registry: one DynamoDB table, shaped as daskscope_lambdas.registry says, paid by request."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from daskscope_lambdas import registry


class Table(Construct):
    """Any second of the last 35 days can be restored."""

    def __init__(self, scope: Construct, id: str, *, key: kms.IKey | None, removal: RemovalPolicy) -> None:
        super().__init__(scope, id)
        # Not TableV2: with a key of one's own that wants to know the region before it is deployed.
        self.table = dynamodb.Table(
            self,
            "Table",
            partition_key=_text(registry.KEY),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=registry.FORGET_AT,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED if key else None,
            encryption_key=key,
            deletion_protection=removal is RemovalPolicy.RETAIN,
            removal_policy=removal,
        )
        self.table.add_global_secondary_index(
            index_name=registry.LISTING,
            partition_key=_text(registry.LISTED_IN),
            sort_key=_text(registry.LISTED_AT),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )
        self.table.add_global_secondary_index(
            index_name=registry.LIVING,
            partition_key=_text(registry.LIVES_IN),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)

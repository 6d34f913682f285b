"""The lake: one private bucket, each table with what becomes of its days."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Validations
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from daskscope_infra.lake_tables import BULKY, ROLLUPS, TABLES, prefix

RARELY_READ_DAYS = 60
SHORTEST_RARELY_READ_DAYS = 30
"""An object that goes earlier is paid for as long."""
_RARELY_READ = s3.Transition(
    storage_class=s3.StorageClass.INFREQUENT_ACCESS, transition_after=Duration.days(RARELY_READ_DAYS)
)


class Bucket(Construct):
    """`retention_days`: see Settings. Open days, seals, marks and code never expire by rule: functions keep them.

    Where it may go with the stack, `make destroy` empties it: no function that can delete all of it stands by for that.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        retention_days: Mapping[str, int],
        key: kms.IKey | None,
        removal: RemovalPolicy,
    ) -> None:
        super().__init__(scope, id)
        # No versions: an object is written once and never replaced, and code that somebody had deleted must be gone.
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=key,
            bucket_key_enabled=key is not None,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            lifecycle_rules=_rules(retention_days),
            # Smaller objects would cost as much as these.
            transition_default_minimum_object_size=s3.TransitionDefaultMinimumObjectSize.ALL_STORAGE_CLASSES_128_K,
            removal_policy=removal,
        )
        reason = "Access logs would need a second bucket. Only the functions read this one; CloudTrail can log that."
        Validations.of(self.bucket).acknowledge(Acknowledgment(id="AwsSolutions-S1", reason=reason))


def _rules(retention_days: Mapping[str, int]) -> list[s3.LifecycleRule]:
    rules = [s3.LifecycleRule(id="broken-off-uploads", abort_incomplete_multipart_upload_after=Duration.days(1))]
    for name in (*TABLES, *ROLLUPS):
        kept_days = retention_days.get(name)
        worth_moving = kept_days is None or kept_days >= RARELY_READ_DAYS + SHORTEST_RARELY_READ_DAYS
        rarely_read = [_RARELY_READ] if name in BULKY and worth_moving else None
        if rarely_read or kept_days is not None:
            end = None if kept_days is None else Duration.days(kept_days)
            rules.append(s3.LifecycleRule(id=name, prefix=prefix(name), transitions=rarely_read, expiration=end))
    return rules

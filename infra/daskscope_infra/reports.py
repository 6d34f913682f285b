"""Reports that somebody keeps here: a bucket of their own, and an origin of their own to look at them."""

from __future__ import annotations

from aws_cdk import Acknowledgment, ArnFormat, Aws, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from daskscope_infra.origin import make_origin
from daskscope_infra.policies import service

INCOMING, PUBLIC, PRIVATE, SHOWN = "incoming/", "public/", "private/", "shown/"
"""What was brought; what is kept; copies of private ones, for who was let see them."""
_LEFT = Duration.days(1)


class Reports(Construct):
    """`bucket`, and `address`: a URL without a slash at its end. Where the bucket may go with the stack, `make destroy`
    empties it."""

    def __init__(self, scope: Construct, id: str, *, key: kms.IKey | None, removal: RemovalPolicy) -> None:
        super().__init__(scope, id)
        self.bucket = _bucket(self, key, removal)
        distribution = make_origin(self, self.bucket, shortly=PUBLIC)
        self.address = f"https://{distribution.distribution_domain_name}"
        of_it = {"StringEquals": {"AWS:SourceArn": distribution.distribution_arn}}
        reader = service("cloudfront.amazonaws.com")
        shown = [self.bucket.arn_for_objects(f"{prefix}*") for prefix in (PUBLIC, SHOWN)]
        self.bucket.add_to_resource_policy(
            iam.PolicyStatement(principals=[reader], actions=["s3:GetObject"], resources=shown, conditions=of_it)
        )
        if key:
            _lend(key, reader)


def _bucket(scope: Construct, key: kms.IKey | None, removal: RemovalPolicy) -> s3.Bucket:
    # No versions: a report that was deleted must be gone.
    bucket = s3.Bucket(
        scope,
        "Bucket",
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
        encryption_key=key,
        bucket_key_enabled=key is not None,
        enforce_ssl=True,
        minimum_tls_version=1.2,
        lifecycle_rules=[
            s3.LifecycleRule(id="broken-off-uploads", abort_incomplete_multipart_upload_after=_LEFT),
            s3.LifecycleRule(id="never-kept", prefix=INCOMING, expiration=_LEFT),
            s3.LifecycleRule(id="shown", prefix=SHOWN, expiration=_LEFT),
        ],
        removal_policy=removal,
    )
    reason = "Access logs would need one more bucket. What is in this one is said in the registry; CloudTrail can log."
    Validations.of(bucket).acknowledge(Acknowledgment(id="AwsSolutions-S1", reason=reason))
    return bucket


def _lend(key: kms.IKey, reader: iam.IPrincipal) -> None:
    """Of any distribution of this account: one by name would have to be there before the key that its bucket needs."""
    distributions = Stack.of(key).format_arn(
        service="cloudfront", region="", resource="distribution", resource_name="*",
        arn_format=ArnFormat.SLASH_RESOURCE_NAME,
    )  # fmt: skip
    conditions = {"ArnLike": {"AWS:SourceArn": distributions}, "StringEquals": {"AWS:SourceAccount": Aws.ACCOUNT_ID}}
    key.add_to_resource_policy(
        iam.PolicyStatement(principals=[reader], actions=["kms:Decrypt"], resources=["*"], conditions=conditions)
    )

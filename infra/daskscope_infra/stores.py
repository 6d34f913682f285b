"""What is kept where: buckets, table, queues, the accounts' keys; and how a role is let to each of them."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import ArnFormat, Aws, Fn, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from daskscope_infra.bucket import Bucket
from daskscope_infra.key import CustomerKey
from daskscope_infra.policies import allow
from daskscope_infra.queues import Queues
from daskscope_infra.reports import Reports
from daskscope_infra.settings import Settings
from daskscope_infra.table import Table
from daskscope_lambdas.env import AwsEnv


class Stores(Construct):
    """All that outlives a call. `hidden_s`: see Queues."""

    def __init__(self, scope: Construct, id: str, settings: Settings, *, hidden_s: int) -> None:
        super().__init__(scope, id)
        removal = RemovalPolicy.DESTROY if settings.remove_data else RemovalPolicy.RETAIN
        self.customer_key = CustomerKey(self, "CustomerKey", removal=removal) if settings.customer_key else None
        key = self.customer_key.key if self.customer_key else None
        self.key = key
        self.bucket = Bucket(self, "Lake", retention_days=settings.retention_days, key=key, removal=removal).bucket
        self.table = Table(self, "Registry", key=key, removal=removal).table
        self.queues = Queues(self, "Queues", hidden_s=hidden_s, key=key)
        self.reports = Reports(self, "Reports", key=key, removal=removal)
        self.env = AwsEnv(
            bucket=self.bucket.bucket_name,
            table=self.table.table_name,
            queue_url=self.queues.queue.queue_url,
            keys=_keys_path(),
            keys_kms_key=key.key_arn if key else "",
            reports_bucket=self.reports.bucket.bucket_name,
            reports=self.reports.address,
        )

    def objects(self, role: iam.IRole, actions: Sequence[str], prefixes: Sequence[str]) -> None:
        """`actions` on objects under these prefixes of the lake."""
        allow(role, actions, [self.bucket.arn_for_objects(f"{prefix}*") for prefix in prefixes])

    def names(self, role: iam.IRole) -> None:
        """The names of all objects: for lists, and because S3 calls a missing one forbidden to whoever may not list."""
        allow(role, ["s3:ListBucket"], [self.bucket.bucket_arn])

    def files(self, role: iam.IRole, actions: Sequence[str], prefixes: Sequence[str]) -> None:
        """`actions` on files of reports under these prefixes."""
        allow(role, actions, [self.reports.bucket.arn_for_objects(f"{prefix}*") for prefix in prefixes])

    def file_names(self, role: iam.IRole) -> None:
        """As `names`, of the files of reports."""
        allow(role, ["s3:ListBucket"], [self.reports.bucket.bucket_arn])

    def items(
        self, role: iam.IRole, actions: Sequence[str], keys: Sequence[str], attributes: Sequence[str] | None = None
    ) -> None:
        """`actions` on items with such keys, in which `*` stands for anything; `attributes`: if no others are named."""
        where = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(keys)}}
        if attributes is not None:
            where["ForAllValues:StringEquals"] = {"dynamodb:Attributes": list(attributes)}
        allow(role, actions, [self.table.table_arn], where)

    def index(self, role: iam.IRole, name: str) -> None:
        """Which items an index of the registry holds."""
        allow(role, ["dynamodb:Query"], [f"{self.table.table_arn}/index/{name}"])

    def send(self, role: iam.IRole) -> None:
        """Messages into the queue."""
        allow(role, ["sqs:SendMessage"], [self.queues.queue.queue_arn])

    def keys(self, role: iam.IRole) -> None:
        """Reading the accounts' keys."""
        allow(role, ["ssm:GetParameter"], [self._keys_arn()])

    def new_keys(self, role: iam.IRole) -> None:
        """A key for an account that has none. With another in its place, its code could never be read again."""
        allow(role, ["ssm:PutParameter"], [self._keys_arn()], {"StringNotEquals": {"ssm:Overwrite": "true"}})

    def no_keys(self, role: iam.IRole) -> None:
        """Forgetting the key of an account that was deleted: who may not read one may still do that."""
        allow(role, ["ssm:DeleteParameter"], [self._keys_arn()])

    def unlock(self, role: iam.IRole, services: Sequence[str]) -> None:
        """The customer's key, if that is what these services (`s3`, `sqs`, `dynamodb`, `ssm`) encrypt with."""
        if self.customer_key:
            self.customer_key.lend(role, services)

    def _keys_arn(self) -> str:
        path = f"{self.env.keys.removeprefix('/')}/*"
        form = ArnFormat.SLASH_RESOURCE_NAME
        return Stack.of(self).format_arn(service="ssm", resource="parameter", resource_name=path, arn_format=form)


def _keys_path() -> str:
    """Not by the name alone: keys may stay when a stack goes, and are then no business of a later one of its name."""
    uuid = Fn.select(2, Fn.split("/", Aws.STACK_ID))
    return f"/daskscope/{Aws.STACK_NAME}/{uuid}/keys"

"""The stack: everything that daskscope is in an AWS account."""

from __future__ import annotations

from aws_cdk import App, CfnOutput, Stack, Validations
from cdk_nag import AwsSolutionsChecks
from constructs import Construct

from daskscope_infra.functions import Code, Functions, hidden_s
from daskscope_infra.http_api import HttpApi
from daskscope_infra.schedules import Schedules
from daskscope_infra.settings import DESCRIPTION, Settings
from daskscope_infra.stores import Stores


class DaskscopeStack(Stack):
    """For any account and region: nothing is asked of AWS before it is deployed."""

    def __init__(self, scope: Construct, settings: Settings, code: Code) -> None:
        super().__init__(scope, settings.name, description=DESCRIPTION, analytics_reporting=False)
        stores = Stores(self, "Stores", settings, hidden_s=hidden_s(settings))
        functions = Functions(self, "Functions", settings, stores, code)
        http_api = HttpApi(
            self,
            "HttpApi",
            ingest=functions.ingest.function,
            api=functions.api.function,
            log_days=settings.log_days,
            key=stores.key,
        )
        Schedules(self, "Schedules", sweep=functions.sweep, compact=functions.compact)
        self._tell("Address", http_api.address)
        self._tell("Bucket", stores.env.bucket)
        self._tell("Reports", stores.env.reports)
        self._tell("ReportsBucket", stores.env.reports_bucket)
        self._tell("Table", stores.env.table)
        self._tell("QueueUrl", stores.env.queue_url)
        self._tell("DeadLetterQueueUrl", stores.queues.dead_letters.queue_url)
        self._tell("Keys", stores.env.keys)
        if stores.key:
            self._tell("KeysKmsKey", stores.env.keys_kms_key)

    def _tell(self, name: str, value: str) -> None:
        CfnOutput(self, name, value=value)


def check(app: App) -> None:
    """Have cdk-nag look at all that is made: what it finds, and nobody gave a reason for, ends `app.synth()`."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))

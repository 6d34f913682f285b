"""One function: its code, its log, and a role that nobody else has and that may do nothing yet."""

from __future__ import annotations

from typing import cast

from aws_cdk import Acknowledgment, Duration, Size, Validations
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from daskscope_infra.log import Log
from daskscope_infra.policies import make_role, service
from daskscope_infra.settings import Architecture, Python, Settings

_ARCHITECTURES: dict[Architecture, lambda_.Architecture] = {
    "arm64": lambda_.Architecture.ARM_64,
    "x86_64": lambda_.Architecture.X86_64,
}
_RUNTIMES: dict[Python, lambda_.Runtime] = {
    "3.13": lambda_.Runtime.PYTHON_3_13,
    "3.12": lambda_.Runtime.PYTHON_3_12,
    "3.11": lambda_.Runtime.PYTHON_3_11,
}


class Function(Construct):
    """`module` of daskscope_lambdas.handlers, with what it needs to know in `environment`."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        settings: Settings,
        *,
        module: str,
        code: lambda_.Code,
        environment: dict[str, str],
        memory_mib: int,
        timeout_s: int,
        scratch_mib: int,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, id)
        log = Log(self, "Log", days=settings.log_days, key=key).group
        self.role = make_role(self, "Role", service("lambda.amazonaws.com"))
        log.grant_write(self.role)
        function = lambda_.Function(
            self,
            "Function",
            description=f"daskscope: {module}",
            handler=f"daskscope_lambdas.handlers.{module}.handler",
            runtime=_RUNTIMES[settings.python],
            architecture=_ARCHITECTURES[settings.architecture],
            code=code,
            environment=environment,
            memory_size=memory_mib,
            timeout=Duration.seconds(timeout_s),
            ephemeral_storage_size=Size.mebibytes(scratch_mib),
            role=self.role,
            log_group=log,
            logging_format=lambda_.LoggingFormat.JSON,
            # Three lines a call of Lambda's own cost more than what they are about; metrics tell the same.
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
        )
        reason = "3.13 is the newest Python that daskscope is tested with; Lambda has a newer one."
        Validations.of(function).acknowledge(Acknowledgment(id="AwsSolutions-L1", reason=reason))
        self.function = cast(lambda_.IFunction, function)

"""The environment of a stack that `make deploy` made, as its outputs tell it."""

from __future__ import annotations

import os
from collections.abc import Mapping

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from daskscope.errors import NotFound, NotLoggedIn, ServerError, SettingsError
from daskscope_lambdas import env

_VARIABLES = {env.BUCKET: "Bucket", env.TABLE: "Table", env.QUEUE_URL: "QueueUrl", env.KEYS: "Keys"}
"""Variable to the output that says it."""
_MAY_BE = {env.KEYS_KMS_KEY: "KeysKmsKey", env.REPORTS_BUCKET: "ReportsBucket", env.REPORTS: "Reports"}
"""Of these, what the stack has: one that an earlier release made keeps no reports."""


def environment(stack: str, environ: Mapping[str, str] = os.environ) -> env.Env:
    """Asks CloudFormation, with boto3's credentials and region. Raises DaskscopeError that says what to do."""
    told = _outputs(stack, environ)
    if missing := [name for name in _VARIABLES.values() if not told.get(name)]:
        raise SettingsError("--stack", stack, f"a stack of `make deploy`; this one has no output {missing[0]}")
    named = {variable: told.get(output, "") for variable, output in (_VARIABLES | _MAY_BE).items()}
    return env.read({**environ, env.WORLD: "aws", **named})


def address(stack: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Where the stack is reached; None if it does not tell. Raises as `environment`."""
    return _outputs(stack, environ).get("Address")


def _outputs(stack: str, environ: Mapping[str, str]) -> dict[str, str]:
    # boto3 reads the one, all other tools of AWS the other.
    if region := environ.get("AWS_REGION"):
        os.environ["AWS_DEFAULT_REGION"] = region
    try:
        # Not the default session, which would keep the credentials that it met first.
        found = boto3.Session().client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in str(error):
            raise NotFound(f"There is no stack {stack} in this account and region: is AWS_REGION right?") from error
        raise NotLoggedIn(f"AWS did not let us read the stack {stack}: {error}") from error
    except BotoCoreError as error:
        wanted = "Credentials and region come from `aws configure`, AWS_PROFILE, or AWS_REGION and its kin."
        raise ServerError(f"AWS could not be asked about the stack {stack}: {error} {wanted}") from error
    return {output.get("OutputKey", ""): output.get("OutputValue", "") for output in found.get("Outputs", [])}

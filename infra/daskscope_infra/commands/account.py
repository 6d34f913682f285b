"""The AWS account and region that a command works in, and what it says when it cannot."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

import boto3
import click
from botocore import exceptions

BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
"""The SSM parameter by which `cdk bootstrap` leaves its version."""
OLDEST_BOOTSTRAP = 6
"""What the stack's synthesizer asks for."""

_NO_CREDENTIALS = (
    "There are no AWS credentials: run `aws configure` or `aws sso login`, or set AWS_PROFILE, "
    "or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
)
_EXPIRED = "The AWS credentials have expired: log in again (`aws sso login`), or get new ones."
_WRONG = "AWS does not know these credentials: is the right AWS_PROFILE set, and were key and secret copied whole?"
_SENTENCES = {
    "NoCredentialsError": _NO_CREDENTIALS,
    "PartialCredentialsError": _NO_CREDENTIALS,
    "SSOTokenLoadError": _EXPIRED,
    "TokenRetrievalError": _EXPIRED,
    "UnauthorizedSSOTokenError": _EXPIRED,
    "ExpiredToken": _EXPIRED,
    "ExpiredTokenException": _EXPIRED,
    "InvalidClientTokenId": _WRONG,
    "SignatureDoesNotMatch": _WRONG,
    "UnrecognizedClientException": _WRONG,
}
"""Code of AWS's answer, or name of botocore's exception, to what to do. Any other error speaks for itself."""


@dataclass(frozen=True, slots=True)
class Account:
    """Where commands work. `session` makes boto3's clients."""

    id: str
    region: str
    session: boto3.Session = field(repr=False)

    def check_bootstrap(self) -> None:
        """Raises ClickException unless `cdk bootstrap` prepared this account and region."""
        with told():
            ssm = self.session.client("ssm")
            try:
                version = int(ssm.get_parameter(Name=BOOTSTRAP)["Parameter"].get("Value", "0"))
            except ssm.exceptions.ParameterNotFound:
                raise click.ClickException(
                    f"Account {self.id} is not prepared for the CDK in {self.region}: run `make bootstrap` once."
                ) from None
        if version < OLDEST_BOOTSTRAP:
            raise click.ClickException(
                f"What prepared account {self.id} for the CDK in {self.region} has version {version}, and "
                f"{OLDEST_BOOTSTRAP} is needed: run `make bootstrap`, which renews it."
            )


def find() -> Account:
    """Asks AWS whose credentials these are. Raises ClickException that says what to do."""
    with told():
        session = boto3.Session(region_name=os.environ.get("AWS_REGION"))
        region = session.region_name
        if not region:
            raise click.ClickException(
                "No AWS region is chosen: set AWS_REGION, like AWS_REGION=eu-west-1, or run `aws configure`."
            )
        # boto3 reads the one and the CDK both: what they start in our name works where we do.
        os.environ |= {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}
        return Account(session.client("sts").get_caller_identity()["Account"], region, session)


@contextmanager
def told() -> Generator[None]:
    """What AWS or the way to it has against a call becomes a sentence."""
    try:
        yield
    except exceptions.ClientError as error:
        _tell(error.response.get("Error", {}).get("Code", ""), error)
    except exceptions.BotoCoreError as error:
        _tell(type(error).__name__, error)


def _tell(what: str, error: Exception) -> NoReturn:
    raise click.ClickException(_SENTENCES.get(what, f"AWS could not be asked: {error}")) from error

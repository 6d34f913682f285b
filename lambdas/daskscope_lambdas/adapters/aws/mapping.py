"""What botocore raises, turned into the ports' errors at this one place.

    ClientError              by its code, as _CODES says; any other StoreError
    any BotoCoreError        StoreError: no answer, no credentials, a call that could not be made

The cause is always kept. What was sent is in no text: validation repeats it, so its words are left out.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from daskscope_lambdas.adapters.aws.again import BusyError
from daskscope_lambdas.ports import Conflict, Missing, StoreError, Taken

_CODES: dict[str, type[StoreError]] = {
    # S3
    "NoSuchKey": Missing,
    "404": Missing,  # HEAD has no body to say more
    "PreconditionFailed": Taken,
    "412": Taken,  # nor here
    "ConditionalRequestConflict": BusyError,
    # DynamoDB
    "ConditionalCheckFailedException": Conflict,
    "TransactionCanceledException": Conflict,
    "TransactionConflictException": BusyError,
    # SSM
    "ParameterNotFound": Missing,
    "ParameterAlreadyExists": Taken,
}


@contextmanager
def mapped(where: str) -> Generator[None]:
    """Within, botocore's errors become ports errors that name `where`: what the call was about."""
    try:
        yield
    except ClientError as error:
        told = error.response.get("Error", {})
        code, words = told.get("Code", "unknown"), told.get("Message", "")
        text = f"{where}: {code} ({error.operation_name})"
        if words and "Validation" not in code:
            text += f": {words}"
        raise _CODES.get(code, StoreError)(text) from error
    except BotoCoreError as error:
        raise StoreError(f"{where}: {type(error).__name__}") from error

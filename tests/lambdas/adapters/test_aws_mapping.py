"""What botocore may raise, each as one of the ports' errors."""

import inspect

import pytest
from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError

from daskscope_lambdas.adapters import aws
from daskscope_lambdas.adapters.aws.again import BusyError
from daskscope_lambdas.adapters.aws.mapping import mapped
from daskscope_lambdas.env import AwsEnv
from daskscope_lambdas.ports import Conflict, Missing, StoreError, Taken

FOREIGN = [
    kind
    for _, kind in inspect.getmembers(exceptions, inspect.isclass)
    if issubclass(kind, Exception) and not issubclass(kind, Warning) and kind.__module__ == exceptions.__name__
]
# Raised while a client is made or a paginator is looked up by a name that does not exist: mistakes of ours.
PROGRAMMING = {"UndefinedModelAttributeError", "MissingServiceIdError"}
CODES = [
    ("NoSuchKey", Missing),
    ("ParameterNotFound", Missing),
    ("PreconditionFailed", Taken),
    ("ParameterAlreadyExists", Taken),
    ("ConditionalCheckFailedException", Conflict),
    ("TransactionCanceledException", Conflict),
    ("ConditionalRequestConflict", BusyError),
    ("TransactionConflictException", BusyError),
    ("NoSuchBucket", StoreError),
    ("ResourceNotFoundException", StoreError),
    ("AccessDenied", StoreError),
    ("SlowDown", StoreError),
    ("InternalError", StoreError),
    ("a code of tomorrow", StoreError),
]


def test_all_of_botocores_exceptions_are_met_here() -> None:
    assert {ClientError, BotoCoreError, exceptions.EndpointConnectionError, exceptions.ReadTimeoutError} <= set(FOREIGN)
    assert len(FOREIGN) > 60


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: kind.__name__)
def test_every_botocore_exception_becomes_a_ports_error(kind: type[Exception]) -> None:
    if kind.__name__ in PROGRAMMING:
        assert not issubclass(kind, (BotoCoreError, ClientError))
        return
    error = kind.__new__(kind)
    if isinstance(error, ClientError):
        error = kind({"Error": {"Code": "Odd", "Message": "broken"}}, "PutItem")
    with pytest.raises(StoreError, match="the row: ") as caught, mapped("the row"):
        raise error
    assert type(caught.value) is StoreError
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(("code", "kind"), CODES, ids=[code for code, _ in CODES])
def test_a_code_says_which(code: str, kind: type[StoreError]) -> None:
    error = ClientError({"Error": {"Code": code, "Message": "in AWS's words"}}, "PutItem")
    with pytest.raises(StoreError) as caught, mapped("the row"):
        raise error
    assert type(caught.value) is kind
    assert str(caught.value) == f"the row: {code} (PutItem): in AWS's words"


def test_an_answer_without_a_code_is_a_store_error() -> None:
    with pytest.raises(StoreError, match="unknown"), mapped("the row"):
        raise ClientError({}, "PutItem")


def test_what_was_sent_is_in_no_text() -> None:
    errors = [
        ClientError({"Error": {"Code": "ValidationException", "Message": "Value 'hunter2' at 'value' ..."}}, "X"),
        exceptions.ParamValidationError(report="Invalid type for parameter Value, value: hunter2"),
    ]
    for error in errors:
        with pytest.raises(StoreError) as caught, mapped("the key"):
            raise error
        assert "hunter2" not in str(caught.value)


def test_other_errors_are_let_through() -> None:
    with pytest.raises(KeyError), mapped("the row"):
        raise KeyError


def test_resources_that_are_not_there_are_store_errors(clients: aws.Clients) -> None:
    """And not Missing: who asks for a key must not take a wrong bucket for an empty one."""
    objects = aws.S3Objects(clients.s3, "no-such-bucket")
    registry = aws.DynamoClusters(clients.dynamodb, "no-such-table")
    calls = [
        lambda: objects.get("a"),
        lambda: objects.put_new("a", b""),
        lambda: list(objects.list("")),
        lambda: objects.delete("a"),
        lambda: registry.find("acme", "u1"),
        lambda: registry.enrol("acme", "u1", 1.0, 2.0),
        lambda: list(registry.living()),
        lambda: aws.DynamoSeals(clients.dynamodb, "no-such-table").boundary(),
        lambda: aws.DynamoTokens(clients.dynamodb, "no-such-table").list("acme"),
        lambda: aws.SqsQueue(clients.sqs, "http://127.0.0.1/000000000000/no-such-queue").send("x"),
    ]
    for call in calls:
        with pytest.raises(StoreError) as caught:
            call()
        assert type(caught.value) is StoreError
        assert isinstance(caught.value.__cause__, ClientError)


def test_no_answer_is_a_store_error(aws_env: AwsEnv, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    clients = aws.Clients(f"http://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(StoreError, match="EndpointConnectionError") as caught:
        aws.S3Objects(clients.s3, aws_env.bucket).get("a")
    assert isinstance(caught.value.__cause__, exceptions.EndpointConnectionError)
    clients.close()


def test_without_credentials_that_is_said(aws_env: AwsEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    clients = aws.Clients(aws_env.endpoint_url)
    with pytest.raises(StoreError, match="NoCredentialsError"):
        aws.S3Objects(clients.s3, aws_env.bucket).get("a")
    clients.close()

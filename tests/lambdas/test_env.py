import pytest

from daskscope_lambdas.env import AwsEnv, FunctionEnv, LocalEnv, read

AWS = AwsEnv(bucket="b", table="t", queue_url="https://q", keys="/k")


@pytest.mark.parametrize(
    "env",
    [
        LocalEnv(data="/d", pages="open"),
        LocalEnv(data="/d"),
        AWS,
        AwsEnv(bucket="b", table="t", queue_url="https://q", keys="/k", keys_kms_key="arn:key"),
    ],
    ids=repr,
)
def test_what_a_function_is_told_it_reads(env: FunctionEnv) -> None:
    assert read(env.variables()) == env


def test_endpoint_and_region_come_from_the_machine() -> None:
    env = read(AWS.variables() | {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "AWS_REGION": "eu-west-1"})
    assert isinstance(env, AwsEnv)
    assert (env.endpoint_url, env.region) == ("http://127.0.0.1:4566", "eu-west-1")
    assert env.lake == "s3://b?region=eu-west-1&endpoint_override=127.0.0.1%3A4566&scheme=http"
    assert "4566" not in str(env.variables())


def test_the_lake_is_a_path_or_a_uri() -> None:
    assert LocalEnv(data="/d").lake == "/d/lake"
    assert AWS.lake == "s3://b"


def test_a_world_that_is_none_and_a_variable_that_is_not_there_are_named() -> None:
    with pytest.raises(ValueError, match="'gcp'; allowed: local, aws"):
        read({"DASKSCOPE_WORLD": "gcp"})
    with pytest.raises(ValueError, match="'shut'; allowed: open, login"):
        read(LocalEnv(data="/d").variables() | {"DASKSCOPE_PAGES": "shut"})
    for name in AWS.variables():
        told = {other: value for other, value in AWS.variables().items() if other != name}
        with pytest.raises(KeyError, match=name):
            read(told)

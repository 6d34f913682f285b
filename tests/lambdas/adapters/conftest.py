from collections.abc import Iterator

import pytest

from daskscope_lambdas.adapters import aws
from daskscope_lambdas.env import AwsEnv
from tests.aws_world import make_world, point_at
from tests.emulator import Emulator


@pytest.fixture
def aws_env(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> AwsEnv:
    point_at(emulator, monkeypatch)
    monkeypatch.setattr("daskscope_lambdas.adapters.aws.again.PAUSES_S", (0.0,) * 5)
    return make_world(emulator)


@pytest.fixture
def clients(aws_env: AwsEnv) -> Iterator[aws.Clients]:
    made = aws.Clients(aws_env.endpoint_url)
    yield made
    made.close()

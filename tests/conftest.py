from collections.abc import Iterator
from pathlib import Path

import pytest

from daskscope_lambdas.env import Env
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters, connect


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def env(tmp_path: Path) -> Env:
    return Env(world="local", data=str(tmp_path / "data"), pages="login")


@pytest.fixture
def adapters(env: Env, clock: FakeClock) -> Iterator[Adapters]:
    """An empty embedded world."""
    world = connect(env, clock)
    yield world
    world.close()

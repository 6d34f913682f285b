from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters, connect
from tests.emulator import Emulator

if TYPE_CHECKING:
    from tests.deployed import Deployed

# How long an example takes is this machine's business.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A test is called the same in every process, which gzip's bytes with their time in them are not; and shortly."""
    unreadable = isinstance(val, bytes) or (isinstance(val, str) and len(val) > 200)
    return argname if unreadable else None


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def env(tmp_path: Path) -> LocalEnv:
    return LocalEnv(data=str(tmp_path / "data"), pages="login")


@pytest.fixture
def adapters(env: LocalEnv, clock: FakeClock) -> Iterator[LocalAdapters]:
    """An empty embedded world."""
    world = connect(env, clock)
    yield world
    world.close()


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """AWS on this machine, for the whole run: tests that use it make resources of their own names."""
    with Emulator(tmp_path_factory.mktemp("emulator")) as running:
        yield running


@pytest.fixture(scope="session")
def deployed(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    """The stack in it, for the whole run: tests that use it have accounts of their own."""
    from tests.deployed import deploy  # needs the CDK, which the oldest environment has not

    return deploy(emulator, tmp_path_factory.mktemp("deployed"))

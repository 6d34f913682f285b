"""The worlds that every contract test runs in. A new one is one entry in WORLDS and nothing in the tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.ports import Clusters, ObjectStore, Queue, QueueFeed, Seals, Tokens, Vault
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters, connect

Connect = Callable[[], Adapters]


def local(folder: Path, clock: FakeClock) -> Adapters:
    return connect(LocalEnv(data=str(folder / "data"), pages="login"), clock)


WORLDS: dict[str, Callable[[Path, FakeClock], Adapters]] = {"local": local}
"""How to connect to the world that belongs to one test; each call makes adapters of its own over the same stores."""


@pytest.fixture(params=list(WORLDS))
def connect_again(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Connect]:
    """As another process would: new adapters over what the test's others use."""
    made: list[Adapters] = []

    def again() -> Adapters:
        made.append(WORLDS[request.param](tmp_path, clock))
        return made[-1]

    yield again
    for adapters in made:
        adapters.close()


@pytest.fixture
def world(connect_again: Connect) -> Adapters:
    return connect_again()


@pytest.fixture
def object_store(world: Adapters) -> ObjectStore:
    return world.objects


@pytest.fixture
def queue(world: Adapters) -> Queue:
    return world.queue


@pytest.fixture
def feed(world: Adapters) -> QueueFeed:
    return world.feed


@pytest.fixture
def clusters(world: Adapters) -> Clusters:
    return world.clusters


@pytest.fixture
def seals(world: Adapters) -> Seals:
    return world.seals


@pytest.fixture
def tokens(world: Adapters) -> Tokens:
    return world.tokens


@pytest.fixture
def vault(world: Adapters) -> Vault:
    return world.vault

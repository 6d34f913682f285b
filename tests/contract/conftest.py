"""The worlds that every contract test runs in. A new one is one entry in WORLDS and nothing in the tests."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest

from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.ports import Clusters, ObjectStore, Queue, Seals, Tokens, Vault
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters, connect
from tests.aws_world import dead_letters, make_world, point_at
from tests.emulator import Emulator

Connect = Callable[[], Adapters]


@dataclass(frozen=True)
class World:
    """What belongs to one test. `connect` makes adapters anew over the same stores, as another process would."""

    connect: Connect
    queued: Callable[[], list[str]]
    """Takes all bodies out of the queue, past the ports: its other end is no port in every world."""
    delivered: Callable[[], dict[str, str]]
    """Receipts of what is in the queue, by body; others may have it, too."""
    bury: Callable[[str], None]
    """Has the queue give up on a message with that body."""


def local(request: pytest.FixtureRequest) -> World:
    folder: Path = request.getfixturevalue("tmp_path")
    clock: FakeClock = request.getfixturevalue("clock")
    env = LocalEnv(data=str(folder / "data"), pages="login")

    def queued() -> list[str]:
        adapters = connect(env, clock)
        deliveries = adapters.feed.receive(100, 30.0)
        adapters.feed.delete([delivery.receipt for delivery in deliveries])
        adapters.close()
        return [delivery.body for delivery in deliveries]

    def delivered() -> dict[str, str]:
        adapters = connect(env, clock)
        found = {delivery.body: delivery.receipt for delivery in adapters.feed.receive(100, 0.0)}
        adapters.close()
        return found

    def bury(body: str) -> None:
        adapters = connect(env, clock)
        adapters.queue.send(body)
        (delivery,) = adapters.feed.receive(1, 30.0)
        adapters.feed.bury(delivery.receipt, "for this test")
        adapters.close()

    return World(lambda: connect(env, clock), queued, delivered, bury)


def aws(request: pytest.FixtureRequest) -> World:
    emulator: Emulator = request.getfixturevalue("emulator")
    clock: FakeClock = request.getfixturevalue("clock")
    patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    point_at(emulator, patch)
    # What was made a moment ago is to be seen at once here: nobody has to wait for it.
    patch.setattr("daskscope_lambdas.adapters.aws.again.PAUSES_S", (0.0,) * 5)
    env = make_world(emulator)

    def queued() -> list[str]:
        bodies: list[str] = []
        with closing(boto3.client("sqs", endpoint_url=emulator.url)) as sqs:
            while messages := sqs.receive_message(QueueUrl=env.queue_url, MaxNumberOfMessages=10).get("Messages"):
                for message in messages:
                    bodies.append(message.get("Body", ""))
                    sqs.delete_message(QueueUrl=env.queue_url, ReceiptHandle=message.get("ReceiptHandle", ""))
        return bodies

    def delivered() -> dict[str, str]:
        found: dict[str, str] = {}
        with closing(boto3.client("sqs", endpoint_url=emulator.url)) as sqs:
            while messages := sqs.receive_message(QueueUrl=env.queue_url, MaxNumberOfMessages=10).get("Messages"):
                found |= {message.get("Body", ""): message.get("ReceiptHandle", "") for message in messages}
            for receipt in found.values():
                sqs.change_message_visibility(QueueUrl=env.queue_url, ReceiptHandle=receipt, VisibilityTimeout=0)
        return found

    def bury(body: str) -> None:
        # As SQS does after the last try: there is no call for it.
        with closing(boto3.client("sqs", endpoint_url=emulator.url)) as sqs:
            sqs.send_message(QueueUrl=dead_letters(env.queue_url), MessageBody=body)

    return World(lambda: connect(env, clock), queued, delivered, bury)


WORLDS: dict[str, Callable[[pytest.FixtureRequest], World]] = {"local": local, "aws": aws}


@pytest.fixture(params=list(WORLDS))
def here(request: pytest.FixtureRequest) -> World:
    return WORLDS[request.param](request)


@pytest.fixture
def connect_again(here: World) -> Iterator[Connect]:
    """As another process would: new adapters over what the test's others use."""
    made: list[Adapters] = []

    def again() -> Adapters:
        made.append(here.connect())
        return made[-1]

    yield again
    for adapters in made:
        adapters.close()


@pytest.fixture
def queued(here: World) -> Callable[[], list[str]]:
    return here.queued


@pytest.fixture
def delivered(here: World) -> Callable[[], dict[str, str]]:
    return here.delivered


@pytest.fixture
def bury(here: World) -> Callable[[str], None]:
    return here.bury


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

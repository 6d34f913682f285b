"""The trial of stores that fail, with AWS's own client between the services and what fails."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import boto3
import pytest

from daskscope_lambdas.env import AwsEnv
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import connect
from tests.aws_world import make_world, point_at
from tests.emulator import Emulator
from tests.faults.sqs_feed import SqsFeed
from tests.faults.store_proxy import store_proxy
from tests.faults.store_trial import Outcome, Place, Trial
from tests.faults.stores import Trouble, opened

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient


@contextmanager
def aws(emulator: Emulator) -> Generator[AwsEnv]:
    """A world of its own there; nobody waits between two tries."""
    with pytest.MonkeyPatch.context() as patch:
        point_at(emulator, patch)
        patch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _s: None))
        patch.setattr("daskscope_lambdas.adapters.aws.again.PAUSES_S", (0.0,) * 5)
        yield make_world(emulator)


def in_aws(emulator: Emulator, share: float, n: int, clusters: int) -> Outcome:
    """What compaction reads it reads past the proxy: that is another client's way."""
    trouble, clock = Trouble(seed=1), FakeClock()
    with aws(emulator) as env, store_proxy(emulator.url, trouble) as url:
        sound = connect(env, clock)
        weak = replace(connect(replace(env, endpoint_url=url), clock), lake_root=env.lake)
        with opened(sound), opened(weak):
            feed = SqsFeed(sqs(emulator), env.queue_url)
            place = Place(
                env=env, sound=sound, weak=weak, feed=feed, trouble=trouble, clock=clock, wait=feed.show_all
            )  # fmt: skip
            return Trial(place, share).run(n, clusters)


def sqs(emulator: Emulator) -> SQSClient:
    """AWS's own client of the queue."""
    return boto3.client("sqs", endpoint_url=emulator.url)

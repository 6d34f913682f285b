"""The writer: a batch out of the queue, into the lake, off the queue; in a process that may die."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import TypeVar

from daskscope_lambdas.embedded.schedule import sqs_event
from daskscope_lambdas.env import AwsEnv, LocalEnv
from daskscope_lambdas.handlers import write
from daskscope_lambdas.ports import Delivery
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import connect
from tests.faults.killed import Dying, die_amid_writes
from tests.faults.stores import opened

HIDDEN_S = 120.0

T = TypeVar("T")


def drain(env: LocalEnv, now: float, limit: int, seed: int, at: int, after_bytes: int) -> int:
    """One batch of at most `limit` messages, written in parts as `seed` has it.

    Dies at step `at`, or where a file grows over `after_bytes` (0: no such end). Returns the steps it took.
    """
    os.environ |= env.variables()

    def work() -> None:
        with opened(connect(env, FakeClock(now))) as world:
            batch = list(world.feed.receive(limit, HIDDEN_S))
            if after_bytes:
                die_amid_writes(after_bytes)
            for part in parts(batch, seed):
                failed = failures(part)
                world.feed.delete([each.receipt for each in part if each.id not in failed])

    return Dying(at)(work)


def deliver(env: AwsEnv, environ: Mapping[str, str], part: Sequence[Delivery], at: int) -> tuple[int, set[str]]:
    """What AWS does with a batch: the function alone. Dies at step `at`; the steps it took, and what failed."""
    os.environ |= env.variables() | dict(environ)
    failed = set[str]()
    steps = Dying(at)(lambda: failed.update(failures(part)))
    return steps, failed


def failures(part: Sequence[Delivery]) -> set[str]:
    """Through the function; the ids of what is to come again."""
    answer = write.handler(sqs_event(part), None)
    return {item["itemIdentifier"] for item in answer["batchItemFailures"]}


def parts(batch: Sequence[T], seed: int) -> Iterator[list[T]]:
    """Batches of any size and order, seldom those that were before."""
    random = Random(seed)
    left = random.sample(batch, len(batch))
    while left:
        size = random.choice((1, 3, 10, len(left)))
        yield left[:size]
        del left[:size]

"""C3: a message that cannot be kept stands in a batch of a hundred: all others are kept, it is put aside."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from daskscope_lambdas.embedded.function import FunctionDiedError
from daskscope_lambdas.embedded.schedule import HIDDEN_S, Schedule
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import ingest, sweep, write
from daskscope_lambdas.service.envelope import Envelope, pack
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters, connect
from daskscope_query import layout
from tests.faults import killed
from tests.faults.functions import Here, functions
from tests.faults.poster import Poster
from tests.faults.row import Row
from tests.faults.scratch import scratch
from tests.faults.stores import opened
from tests.faults.telemetry import ACCOUNT, made, owed

GOOD = 99
ROUNDS = 12
"""More than the tries that a message gets."""
KILLER = "killer"


def run(short: bool) -> Row:
    kinds = {"no envelope": "no-envelope", "fits no table": unfit(), "ends the process": KILLER}
    times = 1 if short else 20
    lost = doubled = aside = 0
    for _ in range(times):
        for poison in kinds.values():
            with scratch() as folder:
                missing, twice, dead = batch(Path(folder), poison)
            lost, doubled, aside = lost + missing, doubled + twice, aside + dead
    return Row(
        id="C3",
        what="messages in batches of a hundred, one of which cannot be kept",
        tried=GOOD * len(kinds) * times,
        lost=lost,
        doubled=doubled,
        held=not lost and not doubled and aside == len(kinds) * times,
        figures={"batches": len(kinds) * times, "dead letters": aside},
    )


def unfit() -> str:
    """An envelope with a number that no column takes."""
    message = made("d" * 32, 0)
    message.workers.cpu_pct[0] = 1 << 40
    return pack(Envelope(account=ACCOUNT, cluster_id=1, received_at=FakeClock().now(), message=message))


def batch(folder: Path, poison: str) -> tuple[int, int, int]:
    """Good messages lost, and there twice; and how many letters are dead."""
    env, clock = LocalEnv(data=str(folder / "data")), FakeClock()
    with opened(connect(env, clock)) as world:
        poster = Poster(world, env)
        poster.send(GOOD // 2)
        world.queue.send(poison)
        poster.send(GOOD - GOOD // 2)
        mortal = Mortal(write.handler)
        schedule = Schedule(world.feed, mortal, mortal, ingest.handler, sweep.handler, "token", folder / "no-spool")
        with functions(world, env):
            for _ in range(ROUNDS):
                asyncio.run(schedule.drain_once())
                clock.advance(HIDDEN_S + 1)
        assert not world.feed.receive(1, 0.0)
        lost, doubled = owed(poster.kept, world.lake_root, None, layout.day_of(FakeClock().now()))
        return lost, doubled, dead_letters(world)


def dead_letters(world: LocalAdapters) -> int:
    put_aside = sum(1 for _ in world.objects.list(layout.DEAD))
    return put_aside + sum(1 for _ in world.dead_letters.list())


class Mortal(Here):
    """`write`; an event that ends its process has one of its own."""

    async def __call__(self, event: dict[str, Any]) -> Any:
        if any(record["body"] == KILLER for record in event["Records"]):
            assert killed.outcome(end) is None
            raise FunctionDiedError("killed")
        return await super().__call__(event)


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

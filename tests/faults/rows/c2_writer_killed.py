"""C2: the writer is killed at random points, and what it had is delivered again in other batches."""

from __future__ import annotations

from pathlib import Path
from random import Random

from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import connect
from daskscope_query import layout
from tests.faults import killed
from tests.faults.poster import Poster
from tests.faults.row import Row
from tests.faults.scratch import scratch
from tests.faults.stores import opened
from tests.faults.telemetry import owed
from tests.faults.writing import HIDDEN_S, drain

LIMIT = 60
"""Messages of a batch."""
AMID_A_WRITE = 4
"""Every so many deaths come in the middle of a file."""
LARGEST = 24_000
"""Bytes of the largest file of such a batch, or so."""


def run(short: bool) -> Row:
    with scratch() as folder:
        return on_disk(Path(folder), 12 if short else 200)


def on_disk(folder: Path, kills: int) -> Row:
    env, clock, random = LocalEnv(data=str(folder / "data")), FakeClock(), Random(2)
    first = layout.day_of(clock.now())
    with opened(connect(env, clock)) as world:
        poster = Poster(world, env)
        poster.send(LIMIT)
        steps: int = killed.outcome(drain, env, clock.now(), LIMIT, 0, killed.NEVER, 0)
        deaths = rounds = amid = 0
        while deaths < kills:
            poster.send(random.randrange(LIMIT))
            torn = random.randrange(1, LARGEST) if rounds % AMID_A_WRITE == 0 else 0
            at = killed.NEVER if torn else random.randrange(1, steps)
            died = killed.outcome(drain, env, clock.now(), random.randrange(1, 2 * LIMIT), rounds, at, torn) is None
            deaths, rounds, amid = deaths + died, rounds + 1, amid + (died and torn > 0)
            clock.advance(HIDDEN_S + 1)
        while world.feed.receive(1, 0.0):
            killed.outcome(drain, env, clock.now(), 10 * LIMIT, rounds, killed.NEVER, 0)
        lost, doubled = owed(poster.kept, world.lake_root, world.seals.boundary(), first)
        files = sum(1 for _ in world.objects.list("open/samples/"))
        clock.advance(86_400 + 3 * 3600)
        Compactor(world.objects, world.seals, clock, world.lake_root).run()
        assert world.seals.boundary() is not None
        lost_sealed, doubled_sealed = owed(poster.kept, world.lake_root, world.seals.boundary(), first)
    lost, doubled = lost + lost_sealed, doubled + doubled_sealed
    return Row(
        id="C2",
        what="messages, with the writer killed at random points and all it had delivered again in other batches",
        tried=len(poster.kept),
        lost=lost,
        doubled=doubled,
        held=not lost and not doubled and deaths >= kills,
        figures={"kills": deaths, "steps of a run": steps, "of them amid a file": amid, "runs": rounds, "files": files},
    )

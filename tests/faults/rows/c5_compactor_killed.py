"""C5: compaction is killed at random points, and somebody asks all the time: the answers stay the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

from daskscope_lambdas.env import Env, LocalEnv
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters, connect
from daskscope_query import layout
from tests.faults import killed, sealing
from tests.faults.reader import Reader, Reads
from tests.faults.row import Row
from tests.faults.scratch import scratch
from tests.faults.stores import opened

CLUSTERS = [f"{n:032x}" for n in range(2)]
AMID_A_WRITE = 5
LARGEST = 15_000
"""Bytes of the largest file of such a day, or so."""


@dataclass(slots=True)
class Deaths:
    n: int = 0
    amid: int = 0
    runs: int = 0


def run(short: bool) -> Row:
    kills, n_days, together = (2, 1, 1) if short else (200, 20, 4)
    with scratch() as folder:
        env = LocalEnv(data=str(Path(folder) / "data"))
        with opened(connect(env, FakeClock())) as world:
            return row(env, world, kills, n_days, together)


def row(env: Env, world: Adapters, kills: int, n_days: int, together: int) -> Row:
    """`together`: deaths before a run may come to its end; with each the next one finds something else."""
    start = midnight()
    first = layout.day_of(start)
    last = sealing.fill(world, start, n_days, CLUSTERS, seed=5)
    deaths = Deaths()
    with Reader(env, first, last, CLUSTERS) as reader:
        reader.begin_anew()
        steps = [1_000] * len(sealing.HOURS)
        random = Random(5)
        for day in range(n_days):
            for kind, hour in enumerate(sealing.HOURS):
                reader.begin_anew()
                now = start + day * sealing.DAY_S + hour * 3600
                for _ in range(together if deaths.n < kills else 0):
                    _die(env, now, random, steps[kind], deaths)
                done: int = killed.outcome(sealing.run, env, now, killed.NEVER, 0)
                steps[kind] = max(steps[kind], done)
        reader.begin_anew()
    assert world.seals.boundary() == last
    left = sum(1 for _ in world.objects.list("open/"))
    return _row(reader.reads, deaths, left, kills)


def midnight() -> float:
    """The midnight that begins the first day."""
    at = FakeClock().now()
    return at - at % sealing.DAY_S


def _die(env: Env, now: float, random: Random, steps: int, deaths: Deaths) -> None:
    torn = random.randrange(1, LARGEST) if deaths.runs % AMID_A_WRITE == 0 else 0
    at = killed.NEVER if torn else random.randrange(1, steps)
    died = killed.outcome(sealing.run, env, now, at, torn) is None
    deaths.runs, deaths.n, deaths.amid = deaths.runs + 1, deaths.n + died, deaths.amid + (died and torn > 0)


def _row(reads: Reads, deaths: Deaths, left: int, kills: int) -> Row:
    return Row(
        id="C5",
        what="answers while the compactor is killed at random points",
        tried=reads.n,
        lost=len(reads.odd),
        doubled=0,
        held=not reads.odd and not reads.moved and deaths.n >= kills and not left,
        figures={
            "kills": deaths.n,
            "of them amid a file": deaths.amid,
            "answers that changed": len(reads.odd),
            "questions without an answer": reads.moved,
            "open files left": left,
        },
    )

"""C5: compaction is killed at random points, and somebody asks all the time: the answers stay the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from daskscope_lambdas.env import FunctionEnv as Told
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters, connect
from daskscope_query import layout
from tests.faults import killed, sealing
from tests.faults.reader import Reader
from tests.faults.row import Row
from tests.faults.scratch import scratch
from tests.faults.stores import opened

KILLS = 200
AMID_A_WRITE = 5
LARGEST = 15_000
"""Bytes of the largest file of such a day, or so."""


@dataclass(frozen=True, slots=True)
class Size:
    """`per_day`: files of each table, of which it takes 17 for one to be gathered of most of them. `together`: deaths
    before a run may come to its end; with each the next one finds something else."""

    n_days: int
    per_day: int
    n_clusters: int
    together: int
    hours: tuple[float, ...] = (sealing.SEALING, sealing.SWEEPING)


SMALL, LARGE = Size(1, 4, 1, 1), Size(2, 17, 2, 4, (sealing.GATHERING, sealing.SEALING, sealing.SWEEPING))


@dataclass(slots=True)
class Found:
    kills: int = 0
    amid: int = 0
    runs: int = 0
    reads: int = 0
    odd: int = 0
    moved: int = 0
    left: int = 0


def run(short: bool, most: int = KILLS) -> Row:
    """In small on disk alone; tests/faults/test_aws_faults.py has AWS's share of it."""
    found = Found()
    if short:
        on_disk(found, SMALL, seed=5)
        return row(found, 1)
    seed = 0
    while found.kills < min(KILLS, most):
        seed += 1
        on_disk(found, LARGE, seed)
    return row(found, min(KILLS, most))


def on_disk(found: Found, size: Size, seed: int) -> None:
    with scratch() as folder:
        env = LocalEnv(data=str(Path(folder) / "data"))
        with opened(connect(env, FakeClock())) as world:
            days(found, Lived(env, world, {}), size, seed)


@dataclass(frozen=True, slots=True)
class Lived:
    """Where it is; `environ`: what leads there beside `env`."""

    env: Told
    world: Adapters
    environ: Mapping[str, str]


def days(found: Found, where: Lived, size: Size, seed: int) -> None:
    """Days that become past, one after another, until all are sealed and swept."""
    random, start = Random(seed), midnight()
    clusters = [f"{n:032x}" for n in range(size.n_clusters)]
    last = sealing.fill(where.world, start, size.n_days, size.per_day, clusters, seed)
    steps = [1_000] * len(size.hours)
    with Reader(where.env, where.environ, layout.day_of(start), last, clusters) as reader:
        for day in range(size.n_days):
            for kind, hour in enumerate(size.hours):
                # An hour and more goes by, and nobody who asks takes that long.
                reader.begin_anew()
                now = start + day * sealing.DAY_S + hour * 3600
                for _ in range(size.together):
                    die(found, where, now, random, steps[kind])
                done: int = killed.outcome(sealing.run, where.env, where.environ, now, killed.NEVER, 0)
                steps[kind] = max(steps[kind], done)
        reader.begin_anew()
    assert where.world.seals.boundary() == last
    found.reads, found.odd = found.reads + reader.reads.n, found.odd + len(reader.reads.odd)
    found.moved += reader.reads.moved
    found.left += sum(1 for _ in where.world.objects.list("open/"))


def midnight() -> float:
    """That begins the first day."""
    at = FakeClock().now()
    return at - at % sealing.DAY_S


def die(found: Found, where: Lived, now: float, random: Random, steps: int) -> None:
    on_a_disk = isinstance(where.env, LocalEnv)
    torn = random.randrange(1, LARGEST) if on_a_disk and found.runs % AMID_A_WRITE == 0 else 0
    at = killed.NEVER if torn else random.randrange(1, steps)
    died = killed.outcome(sealing.run, where.env, where.environ, now, at, torn) is None
    found.runs, found.kills, found.amid = found.runs + 1, found.kills + died, found.amid + (died and torn > 0)


def row(found: Found, kills: int) -> Row:
    return Row(
        id="C5",
        what="answers while the compactor is killed at random points, with a deletion under way",
        tried=found.reads,
        lost=found.odd,
        doubled=0,
        held=not found.odd and not found.moved and found.kills >= kills and not found.left,
        figures={
            "kills": found.kills,
            "of them amid a file": found.amid,
            "answers that changed": found.odd,
            "questions without an answer": found.moved,
            "open files left": found.left,
        },
    )

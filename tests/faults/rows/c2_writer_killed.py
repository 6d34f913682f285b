"""C2: the writer is killed at random points, and what it had is delivered again in other batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import connect
from daskscope_query import layout
from tests.emulator import Emulator
from tests.faults import killed
from tests.faults.aws_trial import aws, sqs
from tests.faults.poster import Poster
from tests.faults.row import Figure, Row
from tests.faults.scratch import scratch
from tests.faults.sqs_feed import SqsFeed
from tests.faults.stores import opened
from tests.faults.telemetry import owed
from tests.faults.writing import HIDDEN_S, deliver, drain

LIMIT = 60
"""Messages of a batch."""
AMID_A_WRITE = 4
"""Every so many deaths come in the middle of a file."""
LARGEST = 24_000
"""Bytes of the largest file of such a batch, or so."""


@dataclass(frozen=True, slots=True)
class Written:
    tried: int
    lost: int
    doubled: int
    figures: Mapping[str, Figure]
    enough: bool
    """As many deaths as there were to be."""


def run(short: bool) -> Row:
    """In small on disk alone; tests/faults/test_aws_faults.py has AWS's share of it."""
    with scratch() as folder:
        if short:
            return row(on_disk(Path(folder), 12))
        with Emulator(Path(folder)) as emulator:
            return row(on_disk(Path(folder), 200), in_aws(emulator, 40))


def row(*all: Written) -> Row:
    """The first is that of disk and SQLite, the second that of AWS."""
    lost, doubled = sum(each.lost for each in all), sum(each.doubled for each in all)
    return Row(
        id="C2",
        what="messages, with the writer killed at random points and all it had delivered again in other batches",
        tried=sum(each.tried for each in all),
        lost=lost,
        doubled=doubled,
        held=not lost and not doubled and [each.enough for each in all] == [True] * len(all),
        figures={
            f"{place}: {name}": figure
            for place, each in zip(("disk", "AWS"), all, strict=False)
            for name, figure in each.figures.items()
        },
    )


def on_disk(folder: Path, kills: int) -> Written:
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
    figures = {"kills": deaths, "of them amid a file": amid, "steps of a run": steps, "runs": rounds, "files": files}
    return Written(len(poster.kept), lost + lost_sealed, doubled + doubled_sealed, figures, deaths >= kills)


def in_aws(emulator: Emulator, kills: int) -> Written:
    """Batches as AWS hands them to the function; what died, or ended while others were still to die, comes again."""
    clock, random = FakeClock(), Random(3)
    first = layout.day_of(clock.now())
    with aws(emulator) as env, opened(connect(env, clock)) as world:
        poster = Poster(world, env)
        poster.send(LIMIT)
        feed = SqsFeed(sqs(emulator), env.queue_url)
        waiting = list(feed.receive(LIMIT, HIDDEN_S))
        steps, _ = killed.outcome(deliver, env, emulator.environment, waiting, killed.NEVER)
        deaths = rounds = 0
        while waiting:
            part = random.sample(waiting, random.randrange(1, len(waiting) + 1))
            at = random.randrange(1, steps) if deaths < kills else killed.NEVER
            answer = killed.outcome(deliver, env, emulator.environment, part, at)
            deaths, rounds = deaths + (answer is None), rounds + 1
            if answer is not None and deaths >= kills:
                done = {each.id for each in part} - answer[1]
                waiting = [each for each in waiting if each.id not in done]
        lost, doubled = owed(poster.kept, world.lake_root, None, first)
        files = sum(1 for _ in world.objects.list("open/samples/"))
    return Written(len(poster.kept), lost, doubled, {"kills": deaths, "runs": rounds, "files": files}, deaths >= kills)

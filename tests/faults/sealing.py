"""What `compact` does of a day, in processes that may die; and a lake of days for it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from datetime import date, timedelta
from random import Random

from daskscope.testing import event, exception, groups, message, workers
from daskscope_lambdas.env import FunctionEnv as Told
from daskscope_lambdas.service.deletion import Deleter
from daskscope_lambdas.service.envelope import Envelope
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters, connect
from daskscope_query import layout
from tests.faults.functions import functions
from tests.faults.killed import Dying, die_amid_writes
from tests.faults.stores import opened
from tests.faults.telemetry import ACCOUNT, BOOT

DAY_S = 86_400.0
GATHERING, SEALING, SWEEPING = 23.5, 26.5, 27.75
"""Hours of a day, from its beginning, at which there is such work to do."""


def run(env: Told, environ: Mapping[str, str], now: float, at: int, after_bytes: int) -> int:
    """One run at `now`. Dies at step `at`, or where a file grows over `after_bytes` (0: no such end). Returns the
    steps it took."""
    os.environ |= env.variables() | dict(environ)
    compact = importlib.import_module("daskscope_lambdas.handlers.compact")
    if after_bytes:
        die_amid_writes(after_bytes)
    with opened(connect(env, FakeClock(now))) as world, functions(world, env):
        return Dying(at)(lambda: compact.handler({}, None))


DOOMED = "d" * 32
"""A cluster that is deleted before the first day is sealed: nobody may see it again."""


def fill(world: Adapters, start: float, n_days: int, per_day: int, clusters: list[str], seed: int) -> date:
    """Days with `per_day` messages of clusters that live through all of them, some twice; the last of these days. One
    cluster more is deleted when all is there."""
    random, writer = Random(seed), Writer(world.objects, world.seals)
    told = list[Envelope]()
    for seq in range(n_days * per_day):
        at = start + seq * DAY_S / per_day
        for cluster in (*clusters, DOOMED):
            told.append(_envelope(cluster, seq, at))
        again = random.sample(told, min(2, len(told)))
        writer.write([*told[-len(clusters) - 1 :], *again], f"batch-{seq:06d}")
    Deleter(world).delete_cluster(world.clusters.enrol(ACCOUNT, DOOMED, start, start), "somebody")
    return layout.day_of(start) + timedelta(n_days - 1)


def _envelope(cluster: str, seq: int, at: float) -> Envelope:
    return Envelope(
        account=ACCOUNT,
        cluster_id=int(cluster[-4:], 16) + 1,
        received_at=at,
        message=message(
            cluster=cluster,
            boot=BOOT,
            seq=seq,
            made_at_ms=int(at * 1000),
            workers=workers([]),
            events=[event(no=seq)],
            groups=groups({"no": 0, "n_tasks": 4 * (seq + 1)}),
            exceptions=[exception(no=0, count=seq + 1)],
        ),
    )

"""What a fleet of clusters sends, as the queue delivers it."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import NAMESPACE_OID, uuid5

from bench.fleet import Fleet
from bench.watched import Watched
from daskscope import wire
from daskscope.testing import boot_at
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.service.envelope import Envelope
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters, connect

N_WORKERS = 12
DAY_S = 86_400.0


def messages(n_clusters: int, n_each: int) -> list[wire.Message]:
    """Steady state of clusters of 12 workers and 8 busy groups; all clusters report in turn, as they would."""
    run = asyncio.run(_run(n_clusters * n_each))
    of_cluster = [run[n * n_each : (n + 1) * n_each] for n in range(n_clusters)]
    found: list[wire.Message] = []
    for seq in range(n_each):
        for cluster, own in enumerate(of_cluster):
            boot = boot_at(own[0].made_at_ms, cluster)
            addresses = [address.replace("10.0.", f"10.{cluster + 1}.") for address in own[seq].workers.address]
            workers = replace(own[seq].workers, address=addresses)
            found.append(
                replace(own[seq], cluster=uuid5(NAMESPACE_OID, str(cluster)).hex, boot=boot, seq=seq, workers=workers)
            )
    return found


async def _run(n: int) -> list[wire.Message]:
    watched = Watched(await Fleet.of(N_WORKERS), n_tasks_per_interval=40)
    watched.interval()  # carries the identity, which comes once
    return [watched.interval() for _ in range(n)]


def envelopes(messages: Sequence[wire.Message], clock: FakeClock) -> list[Envelope]:
    """As ingest would wrap them, all on the clock's day."""
    start = clock.now() // DAY_S * DAY_S
    ids = {cluster: n for n, cluster in enumerate(dict.fromkeys(m.cluster for m in messages), 1)}
    return [
        Envelope(account="bench", cluster_id=ids[m.cluster], received_at=start + n * 0.5, message=m)
        for n, m in enumerate(messages)
    ]


@contextmanager
def world() -> Generator[tuple[Adapters, FakeClock, Path]]:
    """An embedded server's stores in a folder that goes away, and its lake's root."""
    clock = FakeClock()
    with TemporaryDirectory() as folder:
        env = LocalEnv(data=folder, pages="open")
        adapters = connect(env, clock)
        try:
            yield adapters, clock, Path(env.lake)
        finally:
            adapters.close()

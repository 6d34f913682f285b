"""One run of a real cluster: what the watch sent of it, and Dask's own report of the same."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.watched import Kept


@dataclass(frozen=True, slots=True)
class Ran:
    """`sent`: bodies of all messages, each with its Content-Encoding. `html_bytes`: of `performance_report`, without
    BokehJS in it."""

    sent: list[tuple[bytes, str | None]]
    html_bytes: int
    n_tasks: int


def one_run(work: Callable[[Any], None], *, processes: bool, **settings: Any) -> Ran:
    """`work` is given the client. `processes`: workers are some, as only then they can be looked at for a profile.
    `settings`: fields that differ from what is in force."""
    from distributed import Client, LocalCluster, performance_report

    from daskscope.settings import load
    from daskscope.watch import Watch

    kept = Kept()
    started: Any = LocalCluster(
        n_workers=2,
        threads_per_worker=2,
        processes=processes,
        dashboard_address="127.0.0.1:0",
        protocol="tcp://" if processes else "inproc://",
        silence_logs=logging.CRITICAL,
    )
    with tempfile.TemporaryDirectory() as folder, started as cluster, Client(cluster) as client:
        running: Any = client
        scheduler = cluster.scheduler

        async def watch() -> Watch:
            watched = Watch(scheduler, replace(load(), **settings), kept)
            watched.start()
            return watched

        watched = running.sync(watch)
        report = Path(folder, "report.html")
        with performance_report(str(report), mode="cdn"):
            work(client)
        html_bytes = report.stat().st_size

        async def close() -> int:
            watched.teardown()
            return watched.readers._groups.n_tasks

        n_tasks = running.sync(close)
    return Ran(list(zip(kept.bodies, kept.encodings, strict=True)), html_bytes, n_tasks)

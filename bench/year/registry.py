"""The registry of a year: every cluster as its last message left it, and the day up to which all is sealed."""

from __future__ import annotations

from typing import Any

import msgspec

from bench.year import words
from bench.year.plan import ACCOUNT, Clusters
from bench.year.size import Size
from daskscope import wire
from daskscope_lambdas.ports import Beat
from daskscope_lambdas.wiring import Adapters

LOST = 20
"""One cluster in so many never said that it closed."""


def register(adapters: Adapters, clusters: Clusters, size: Size) -> None:
    """Enrol all clusters that are not there yet, in the order in which they started; then move the boundary."""
    known = adapters.clusters.page(ACCOUNT, None, 1, None).rows
    done = known[0].id if known else 0
    order, boots = clusters.number.argsort()[done:], clusters.boot.tolist()
    for place in order.tolist():
        uuid, last = str(clusters.uuid[place]), int(clusters.n_messages[place]) - 1
        began = float(clusters.start_ms[place]) / 1e3
        first_s, last_s = (float(clusters.received_ms(place, seq)) / 1e3 for seq in (0, last))
        adapters.clusters.enrol(ACCOUNT, uuid, began, first_s)
        beat = Beat(
            boot=boots[place],
            seq=last,
            received_at=last_s,
            made_at=float(clusters.made_ms(place, last)) / 1e3,
            next_s=10.0,
            phase="running" if clusters.number[place] % LOST == 0 else "closed",
            reason=None if clusters.number[place] % LOST == 0 else "asked",
            identity=_identity(clusters, place),
            totals=_totals(clusters, place),
            lost={},
            uptime_s=last * 10.0 + 2.0,
            skew_s=0.01,
        )
        adapters.clusters.beat(ACCOUNT, uuid, beat)
    if adapters.seals.boundary() != size.last_day:
        adapters.seals.advance(adapters.seals.boundary(), size.last_day)


def _identity(clusters: Clusters, place: int) -> dict[str, Any]:
    user = int(clusters.user[place])
    told = wire.Identity(
        scheduler_id=f"Scheduler-{clusters.uuid[place]}",
        name=words.JOBS[clusters.job[place]],
        user=words.USERS[user],
        host=f"login{user % 8}",
        address="tcp://10.0.0.1:8786",
        started_at_ms=int(clusters.start_ms[place]),
        python="3.12.4",
        platform="Linux x86_64",
        kind=words.KINDS[clusters.kind[place]],
        tags={"project": words.PROJECTS[user % len(words.PROJECTS)]},
        plugin_version="0.1.0",
    )
    return msgspec.to_builtins(told)


def _totals(clusters: Clusters, place: int) -> dict[str, Any]:
    """As `samples` has them in the cluster's last row."""
    n_workers, n_threads = int(clusters.n_workers[place]), int(clusters.n_threads[place])
    seq, user = int(clusters.n_messages[place]) - 1, int(clusters.user[place])
    thread_us = (seq * 10_000 + 2_000) * 1_000 * n_workers * n_threads
    used_us = int(thread_us * (0.35 + 0.4 * (user % 7) / 7))
    n_tasks = seq * n_workers * 9
    memory_bytes = n_workers * int(clusters.memory_mib[place]) << 20
    told = wire.Totals(
        n_workers=n_workers,
        n_threads=n_workers * n_threads,
        n_clients=1,
        memory_bytes=memory_bytes // 2,
        memory_limit_bytes=memory_bytes,
        n_tasks=n_tasks,
        n_tasks_erred=n_tasks // 500 if clusters.n_exceptions[place] else 0,
        n_computations=int(clusters.n_computations[place]),
        n_groups=int(clusters.n_groups[place]),
        thread_us=thread_us,
        action_us={"compute": used_us, "transfer": used_us // 7, "disk-write": used_us // 40},
        peak_memory_bytes=memory_bytes // 4 * 3,
        peak_workers=n_workers,
    )
    return msgspec.to_builtins(told)

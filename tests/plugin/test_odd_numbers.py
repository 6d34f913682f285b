"""Whatever numbers users give Dask to keep, what is sent is of the format, and the server takes it."""

import math
from typing import Any

import pytest
from dask.sizeof import sizeof
from dask.utils import Dispatch
from distributed import wait

from daskscope import wire
from daskscope.watch import Watch
from daskscope_lambdas.service.check import check
from tests.plugin.rig import Cluster, Inbox, inc, settings, silent

pytestmark = pytest.mark.asyncio

ODD: list[Any] = [1.5e6, 0.1, math.nan, math.inf, -math.inf, -7, 1e305, 10**400, True]


class Sized:
    def __init__(self, nbytes: Any) -> None:
        self.nbytes = nbytes


@pytest.fixture
def odd_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    lookup: Any = dict(sizeof._lookup)
    monkeypatch.setattr(sizeof, "_lookup", lookup)
    assert isinstance(sizeof, Dispatch)
    sizeof.register(Sized, lambda it: it.nbytes)


async def next_message(watching: Watch) -> wire.Message:
    message = watching._message("running", None)
    check(message)
    assert wire.decode(wire.encode(message)) == message, "what is made is of the format"
    return message


@pytest.mark.usefixtures("odd_sizes")
@pytest.mark.parametrize(("nbytes", "told"), [(1.5e6, 1_500_000), (96.7, 96), (7, 7)])
async def test_results_of_odd_sizes(cluster: Cluster, nbytes: float, told: int) -> None:
    watching = Watch(cluster.scheduler, settings(), Inbox())
    kept = cluster.client.submit(Sized, nbytes, key="mine-1")
    await wait(kept)
    message = await next_message(watching)
    assert (message.totals.held_bytes, message.groups.nbytes) == (told, [told])
    assert not message.lost
    del kept


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: str(odd)[:8])
async def test_odd_numbers_everywhere(cluster: Cluster, odd: Any) -> None:
    scheduler = cluster.scheduler
    watching = Watch(scheduler, settings(), Inbox())
    kept = cluster.client.map(inc, range(3))
    await wait(kept)
    for worker in cluster.workers:
        await silent(worker)
    scheduler.periodic_callbacks.clear()
    state: Any = scheduler.workers[cluster.workers[0].address]
    group: Any = next(iter(scheduler.task_groups.values()))
    totals: Any = scheduler.cumulative_worker_metrics
    limits = state.memory_limit, state.nthreads, state.nbytes, scheduler.total_nthreads
    try:
        state.metrics = dict.fromkeys(state.metrics, odd) | {
            "mine": odd,
            "spilled_bytes": {"memory": odd, "disk": odd},
        }
        state.memory_limit = state.nthreads = scheduler.total_nthreads = odd
        state.nbytes = group.nbytes_total = odd
        totals["mine", "of", "mine", "count"] = odd
        message = await next_message(watching)
    finally:
        state.memory_limit, state.nthreads, state.nbytes, scheduler.total_nthreads = limits
    assert (message.totals.n_workers, message.totals.n_tasks) == (1, 3)
    assert not [
        reason for reason in message.lost if reason in ("unreadable-totals", "unreadable-workers", "unreadable-groups")
    ]
    is_number = isinstance(odd, int) or math.isfinite(odd)
    assert message.lost.get("unreadable-sizes", 0) == (0 if is_number else 4)


async def test_the_sum_of_many_threads_is_no_more_than_a_column_holds(cluster: Cluster) -> None:
    watching = Watch(cluster.scheduler, settings(), Inbox())
    before, cluster.scheduler.total_nthreads = cluster.scheduler.total_nthreads, 1 << 40
    message = await next_message(watching)
    cluster.scheduler.total_nthreads = before
    assert message.totals.n_threads == (1 << 31) - 1

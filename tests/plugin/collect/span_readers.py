"""The readers that spans need, asked as a watch asks them."""

from __future__ import annotations

import gc
from typing import Any

from distributed import Scheduler
from distributed.metrics import context_meter

from daskscope import wire
from daskscope.collect.computations import ComputationReader
from daskscope.collect.groups import GroupReader
from daskscope.collect.memory import LongMemory
from daskscope.collect.spans import SpanReader
from tests.plugin.rig import Cluster, until

Key = tuple[str | None, str, str, str, str]


class Readers:
    """The three readers that spans need, asked in the order in which a watch asks them; what was told adds up."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler: Any = scheduler
        self.groups = GroupReader(scheduler)
        self.computations = ComputationReader(scheduler, self.groups, transmit_code=False)
        self.spans = SpanReader(scheduler, self.groups)
        self.scheduler.computations = LongMemory(self.scheduler.computations, lambda: None)
        self.now_s = 2e9
        self.latest: dict[str, wire.Span] = {}
        self.stops: dict[int, int | None] = {}
        self.metrics: dict[Key, float] = {}
        self.group_tasks: dict[int, tuple[str, int]] = {}

    def __call__(self, *, last: bool = False) -> tuple[list[wire.Span], wire.Metrics]:
        self.now_s += 1
        first_new = self.groups.n_groups
        self.computations.discover()
        self.groups.track_others(first_new)
        groups = self.groups.read(last=last)
        self.group_tasks |= dict(zip(groups.no, zip(groups.name, groups.n_tasks, strict=True), strict=True))
        computations, _ = self.computations.read(self.now_s)
        self.stops |= {computation.no: computation.stop_ms for computation in computations}
        spans, told = self.spans.read(self.now_s, last=last)
        self.latest |= {told_span.id: told_span for told_span in spans}
        self.metrics |= dict(zip(keys(told), told.value, strict=True))
        message = wire.Message(v=1, cluster="c" * 32, boot="b" * 24, seq=0, made_at_ms=0, uptime_us=0, next_s=1.0)
        message.spans, message.metrics = spans, told
        assert wire.decode(wire.encode(message)) == message, "what is made is of the format"
        return spans, told


def keys(told: wire.Metrics) -> list[Key]:
    return list(zip(told.span, told.context, told.prefix, told.activity, told.unit, strict=True))


def spans_of(scheduler: Scheduler) -> dict[str, Any]:
    return scheduler.extensions["spans"].spans


async def beaten(cluster: Cluster) -> None:
    """Until the workers have told what they measured so far."""
    for worker in cluster.workers:
        await worker.heartbeat()


async def forgotten(cluster: Cluster, *, keep: int = 0) -> None:
    """Until the scheduler has forgotten all tasks whose futures were let go."""
    gc.collect()
    await until(lambda: len(cluster.scheduler.tasks) == keep)


def boomerang(x: int) -> int:
    context_meter.digest_metric("thrown", 3, "times")
    return x


def idle(span_id: str) -> Key:
    return span_id, "execute", "N/A", "idle or other spans", "seconds"

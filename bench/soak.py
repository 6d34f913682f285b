"""A watch over a cluster that lives for a day in minutes: its sender driven by hand, no timer, no network.

`python -m bench.soak VARIANT N_ROUNDS` lives so, in a process of its own, and prints what it holds, as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
import tracemalloc
from dataclasses import replace
from typing import Any

import dask.config
import psutil
from distributed import SchedulerPlugin

from bench.churn import Churn, Life
from bench.fleet import Fleet

N_WORKERS = 10
"""Those that stay."""
BARE, UP, DOWN, PEER = "bare", "server up", "server down", "a dict per group"
VARIANTS = (BARE, UP, DOWN, PEER)


class PerGroup(SchedulerPlugin):
    """Counts by group and state: the least that a plugin would keep that tells of groups."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self.groups: dict[str, dict[str, int]] = {}

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        del start, args, kwargs
        ts = self._scheduler.tasks.get(key)
        if ts is not None:
            counts = self.groups.setdefault(ts.group.name, {})
            counts[finish] = counts.get(finish, 0) + 1


class Soak:
    """Each `interval()` is one of the cluster's life, and the message of it."""

    def __init__(self, fleet: Fleet, life: Life, *, up: bool = True, **changes: Any) -> None:
        # Not before they are needed: a bare scheduler has none of it in memory.
        from daskscope import settings
        from daskscope.agent import TOPIC
        from daskscope.compression import Encoding
        from daskscope.transport import Outcome
        from daskscope.watch import Watch

        class Transport:
            def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
                del name, body, encoding, is_own
                return Outcome("kept" if up else "again", "")

            def close(self) -> None:
                pass

        # All that can be told without a network.
        given = {"events": ("progress",), "tasks": True, "hardware": False, "budget_pct": None} | changes
        self.watch = Watch(fleet.scheduler, replace(settings.load(), **given), Transport())
        self.watch.sender.start = lambda: None
        agents: Any = self.watch.readers._agents
        agents._ask = _agree
        self.watch.start()
        self.watch._timer.stop()
        self._churn = Churn(fleet, life, TOPIC)

    async def interval(self) -> None:
        await self._churn.round()
        self.report()

    def report(self) -> None:
        self.watch.poll()
        self.watch.sender._step()

    def peak_bytes(self) -> int:
        """Most that one more report takes beside what is held."""
        tracemalloc.start()
        try:
            self.report()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


async def _agree(address: str, **message: Any) -> dict[str, str]:
    """A worker that takes whatever it is given."""
    del address, message
    return {"status": "OK"}


async def live(variant: str, life: Life) -> dict[str, float]:
    """RSS at the end; of a watch what it held half way and at the end, and what a report takes besides."""
    from bench.held import held_bytes, size_of

    found: dict[str, float] = {}
    with dask.config.set({"distributed.scheduler.events-cleanup-delay": "1ms"}):
        fleet = await Fleet.of(N_WORKERS)
        soak = Soak(fleet, life, up=variant == UP) if variant in (UP, DOWN) else None
        peer = PerGroup(fleet.scheduler)
        if variant == PEER:
            fleet.scheduler.add_plugin(peer, name="bench-peer")
        churn = Churn(fleet, life)
        for n in range(1, life.n_rounds + 1):
            await (soak.interval() if soak else churn.round())
            if soak and n in (life.n_rounds // 2, life.n_rounds):
                found["held" if n == life.n_rounds else "held_half_way"] = held_bytes(soak.watch)
        gc.collect()
        found["rss"] = psutil.Process().memory_info().rss
        if soak:
            found["peak"] = soak.peak_bytes()
        if variant == PEER:
            found["held"] = size_of(peer.groups)
    return found


if __name__ == "__main__":
    for part in ("core", "scheduler", "worker", "daskscope", "http.proxy"):
        logging.getLogger(f"distributed.{part}").setLevel(logging.CRITICAL)
    n_rounds = int(sys.argv[2])
    day = Life()
    one = Life(n_rounds, *(day.so_far(n, n_rounds) for n in (day.n_groups, day.n_workers, day.n_clients)))
    print(json.dumps(asyncio.run(live(sys.argv[1], one))))

"""A scheduler whose clock is off, drifts, or is set while it runs: what is told of times and durations is true."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from daskscope.compression import compress
from daskscope.watch import Watch
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.service.answers import Depth, answers
from daskscope_lambdas.service.completeness import completeness
from daskscope_lambdas.service.cost import priced
from daskscope_lambdas.service.envelope import unpack
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.service.price_file import packaged
from daskscope_lambdas.service.records import cluster, last_sign_at, up_s
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters, connect
from tests.plugin.rig import Inbox, quiet_scheduler, settings

TRUE_START_S = 1_795_248_000.0
"""2026-11-21T08:00:00Z, by the server's clock: when the plugin starts."""
BEFORE_S = 5.0
"""The scheduler started so long before the plugin."""
LIFE_S = 3600.0
IDLE_AT_S, SET_AT_S = 1500.0, 1830.0
"""After the plugin's start: from when the scheduler idles, and when its clock is set."""
RIGHT_S = 2.0
WAY_S = 0.05

CLOCKS: Mapping[str, Callable[[float], float]] = {
    "right": lambda _: 0.0,
    "an hour ahead": lambda _: 3600.0,
    "an hour behind": lambda _: -3600.0,
    "set forward by an hour": lambda t: 3600.0 * (t >= SET_AT_S),
    "set back by an hour": lambda t: -3600.0 * (t >= SET_AT_S),
    "gains 5 minutes": lambda t: 300.0 * t / LIFE_S,
    "loses 5 minutes": lambda t: -300.0 * t / LIFE_S,
    "1970": lambda _: 10.0 - TRUE_START_S,
    "1970 until it is set": lambda t: (10.0 - TRUE_START_S) * (t < SET_AT_S),
    "a leap second": lambda t: -1.0 * (t >= SET_AT_S),
}
"""By name, seconds before the true time, by seconds since the plugin's start."""


@dataclass(frozen=True, slots=True)
class Made:
    """A message, and when it was made, in seconds since the plugin's start."""

    plain: bytes
    at_s: float


@dataclass(slots=True)
class Tally:
    messages: int = 0
    negative_durations: int = 0
    out_of_order: int = 0
    worst_error_s: float = 0.0
    states: int = 0

    def err(self, found: float, true: float) -> None:
        self.worst_error_s = max(self.worst_error_s, abs(found - true))


def run(n: int, seed: int = 0, interval_s: float = 60.0) -> dict[str, int | float]:
    """The hour of a scheduler by each clock, told in order and in `n` other orders. `states` is how many final states
    a clock made at most, errors are those of times and durations."""
    tally, random = Tally(), Random(seed)
    for name, ahead in CLOCKS.items():
        made = asyncio.run(_life(ahead, interval_s))
        tally.messages += len(made)
        states = {_told(made, ahead, tally, in_order=True)}
        for _ in range(n):
            states.add(_told(random.sample(made, len(made)), ahead, tally, in_order=False))
        tally.states = max(tally.states, len(states))
        logging.getLogger(__name__).info("%s: worst error so far %.3f s", name, tally.worst_error_s)
    return {
        "clocks": len(CLOCKS),
        "messages": tally.messages,
        "orders": (n + 1) * len(CLOCKS),
        "negative_durations": tally.negative_durations,
        "out_of_order": tally.out_of_order,
        "worst_error_s": round(tally.worst_error_s, 3),
        "states": tally.states,
    }


async def _life(ahead: Callable[[float], float], interval_s: float) -> list[Made]:
    """What the plugin makes of a scheduler that has this clock."""
    at_s, inbox, made = 0.0, Inbox(), list[Made]()

    def shown(then_s: float) -> float:
        return TRUE_START_S + then_s + ahead(then_s)

    async with quiet_scheduler() as scheduler:
        for callback in scheduler.periodic_callbacks.values():
            callback.stop()  # Dask's own look at its idleness is by the machine's clock
        scheduler.time_started, scheduler.idle_since = shown(-BEFORE_S), None
        scheduler.total_nthreads_history[:] = [(shown(-BEFORE_S), 4)]
        watch = Watch(
            scheduler,
            settings(interval_s=interval_s),
            inbox,
            now=lambda: shown(at_s),
            monotonic=lambda: 1e6 + at_s,
            cpu=lambda: 0.0,
        )
        watch.start()
        made.append(await _next(inbox, at_s))
        while at_s + interval_s < LIFE_S:
            at_s += interval_s
            if at_s >= IDLE_AT_S:
                scheduler.idle_since = shown(IDLE_AT_S)
            watch.poll()
            made.append(await _next(inbox, at_s))
        at_s = LIFE_S
        watch.teardown()
        made.append(await _next(inbox, at_s))
    return made


async def _next(inbox: Inbox, at_s: float) -> Made:
    await inbox.next()
    return Made(inbox.bodies[-1], at_s)


def _told(made: list[Made], ahead: Callable[[float], float], tally: Tally, *, in_order: bool) -> str:
    """Post it, and hold what can be asked against the truth. The final state, but for what depends on the moment at
    which a message came: receipts, and the skew of the newest."""
    clock = FakeClock(TRUE_START_S)
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(os, "fsync"):  # no power is cut here
        world = connect(LocalEnv(data=folder, pages="open"), clock)
        try:
            ingest = Ingest.over(world)
            for each in made:
                # Each is sent when it is made: what another order stands for are ways of another length.
                clock.at = TRUE_START_S + each.at_s + WAY_S
                sent_ms = round((TRUE_START_S + each.at_s + ahead(each.at_s)) * 1e3)
                ingest.take("acme", *compress(each.plain), sent_ms)
                if in_order:
                    _hold_running(world, each.at_s, tally)
            return _hold_ended(world, Path(folder), made, ahead, tally)
        finally:
            world.close()


def _hold_running(world: LocalAdapters, at_s: float, tally: Tally) -> None:
    row, now = world.clusters.get("acme", 1), world.clock.now() + 7.0
    found = answers(row, now, Depth(), priced(row, None, packaged()))
    running = found["finished"]["verdict"] == "running"
    tally.err(up_s(row, now), BEFORE_S + at_s + (7.0 if running else 0.0))
    tally.err(last_sign_at(row), TRUE_START_S + at_s)
    if running and at_s >= IDLE_AT_S:
        tally.err(found["running"]["idle_seconds"], at_s - IDLE_AT_S + 7.0)
    tally.err(row.totals["thread_us"] / 1e6, 4 * (BEFORE_S + at_s))
    tally.negative_durations += _negative(found) + _negative(cluster(row, now))


def _hold_ended(
    world: LocalAdapters, folder: Path, made: list[Made], ahead: Callable[[float], float], tally: Tally
) -> str:
    row, end_s = world.clusters.get("acme", 1), max(each.at_s for each in made)
    tally.err(row.started_at, TRUE_START_S - BEFORE_S)
    tally.err(up_s(row, world.clock.now()), BEFORE_S + end_s)
    tally.err(last_sign_at(row), TRUE_START_S + end_s)
    deliveries = world.feed.receive(1000, 60.0)
    Writer(world.objects, world.seals).write([unpack(each.body) for each in deliveries], "all")
    asker = Asker(world.lake_root, world.seals, world.deletions)
    told = completeness(asker, row, TRUE_START_S + 86_400.0)
    assert told["missing"] == 0, f"{folder}: {told}"
    for name, most in (("least", min), ("most", max)):
        tally.err(told["clock_skew_s"][name], most(-ahead(each.at_s) for each in made))
    samples = asker.ask_of(row, "samples").records()
    ups = [sample["uptime_us"] for sample in samples]
    tally.out_of_order += ups != sorted(ups)
    record = cluster(row, TRUE_START_S + 86_400.0)
    tally.negative_durations += _negative(record) + (record["stopped"] < record["created"])
    return repr(replace(row, first_received_at=0.0, last_received_at=0.0, started_at=round(row.started_at)))


def _negative(found: Any, name: str = "") -> int:
    """Durations below 0 in a record, wherever they stand."""
    return sum(n < 0 for n in _durations(found, name))


def _durations(found: Any, name: str) -> Iterator[float]:
    if isinstance(found, Mapping):
        for key, value in found.items():
            yield from _durations(value, name if name.endswith("seconds") else str(key))
    elif isinstance(found, int | float) and name.endswith("seconds"):
        yield float(found)

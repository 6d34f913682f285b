"""How long a scheduler waits for the plugin when it closes."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace

from bench.fleet import Fleet
from bench.rows import Budget, Row, progress
from bench.sink import BEHAVIOURS, Behaviour, sink
from daskscope import settings
from daskscope.transport import Http
from daskscope.watch import Watch


def close(tiny: bool) -> Iterator[Row]:
    """A row a kind of server."""
    for behaviour in BEHAVIOURS[:2] if tiny else BEHAVIOURS:
        waits = [asyncio.run(_wait_s(behaviour)) for _ in range(1 if tiny else 5)]
        progress(f"{behaviour}: {', '.join(f'{wait:.2f}' for wait in waits)} s")
        usual = behaviour == "up"
        yield Row(
            name=f"close/{behaviour.replace(' ', '-')}",
            value=statistics.median(waits) if usual else max(waits),
            unit="s",
            budget=Budget("at most", 0.5 if usual else 5.0),
            how=f"wall clock of Watch.teardown, {'median' if usual else 'longest'} of {len(waits)}, with three "
            "messages on their way; real sockets, real threads. Nothing else of a scheduler's close is in it.",
        )


async def _wait_s(behaviour: Behaviour) -> float:
    fleet = await Fleet.of(2)
    with sink(behaviour) as server:
        configured = replace(settings.load(), server=server.url, token="bench")
        watch = Watch(fleet.scheduler, configured, Http(server.url, "bench"))
        watch.start()
        for _ in range(3):
            watch.poll()
        await asyncio.sleep(0.2)  # the sender is in the middle of it
        begun_s = time.perf_counter()
        watch.teardown()
        return time.perf_counter() - begun_s

"""CPU that masking secrets takes of the sender's thread."""

from __future__ import annotations

import asyncio
import inspect
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import distributed.scheduler

from bench.fleet import Fleet
from bench.rows import Budget, Row
from bench.watched import Watched
from daskscope import settings, wire
from daskscope.privacy.scrubber import Scrubber

LINE = (
    "2026-11-21 10:00:00,123 - distributed.worker.memory - WARNING - Unmanaged memory use is high. This may be a leak; "
    "see https://distributed.dask.org/en/latest/worker-memory.html#memory-not-released-back-to-the-os -- Unmanaged "
    "memory: 11.50 GiB -- Worker memory limit: 16.00 GiB. "
)
HOSTILE = ("password=", "Authorization: a", "password=" + "(" * 50, "//a:", "eyJaaaaaaaaaaaa.", "@")


def scrub(tiny: bool) -> Iterator[Row]:
    """Messages of steady state, and texts: a line, a long piece of code, the slowest of some hostile ones."""
    in_force = replace(settings.load(), token="a-token-of-30-characters-or-so")
    for n_workers in (2, 3) if tiny else (10, 100):
        value, encoding = asyncio.run(_messages(n_workers, 3 if tiny else 41, Scrubber(in_force)))
        yield Row(
            name=f"scrub/message/{n_workers}-workers",
            value=value,
            unit="ms CPU",
            budget=Budget("at most", 0.1) if n_workers == 10 else None,
            peers={"JSON of the same message": encoding},
            how="thread CPU of Scrubber.message, median of messages in steady state, none with a secret; sender's "
            "thread.",
        )
    n_characters = 2_000 if tiny else 100_000
    line = (LINE * 4)[:1000]
    code = inspect.getsource(distributed.scheduler)[: 64 << 10]
    for name, text, what in (
        ("line", line, "a log line of 1,000 characters whose words were logged before"),
        ("code", code, "64 KiB of Dask's scheduler, which speaks of keys and tokens; once for each new piece of code"),
    ):
        scrubber = Scrubber(in_force)
        scrubber.text(text)
        yield Row(
            name=f"scrub/{name}",
            value=_cpu_ms(lambda scrubber=scrubber, text=text: scrubber.text(text), 3 if tiny else 41),
            unit="ms CPU",
            how=f"thread CPU of Scrubber.text, median: {what}.",
        )
    texts = [(part * (n_characters // len(part) + 1))[:n_characters] for part in HOSTILE]
    yield Row(
        name=f"scrub/hostile/{n_characters // 1000}-kB",
        value=max(_cpu_ms(lambda text=text: Scrubber(in_force).text(text), 1) for text in texts),
        unit="ms CPU",
        how=f"the slowest of {len(texts)} texts that are one beginning of a secret over and over.",
    )


async def _messages(n_workers: int, rounds: int, scrubber: Scrubber) -> tuple[float, float]:
    """Scrubbing and encoding."""
    watched = Watched(await Fleet.of(n_workers), n_tasks_per_interval=4 * n_workers)
    for _ in range(3):
        scrubber.message(watched.interval())
    scrubbing: list[float] = []
    encoding: list[float] = []
    for _ in range(rounds):
        message = watched.interval()
        scrubbing.append(_cpu_ms(lambda message=message: scrubber.message(message), 1))
        encoding.append(_cpu_ms(lambda message=message: wire.encode(message), 1))
    return statistics.median(scrubbing), statistics.median(encoding)


def _cpu_ms(call: Callable[[], object], rounds: int) -> float:
    values: list[float] = []
    for _ in range(rounds):
        begun_s = time.thread_time()
        call()
        values.append((time.thread_time() - begun_s) * 1e3)
    return statistics.median(values)

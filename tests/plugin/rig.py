"""What the plugin's tests share: a small real cluster in this process, and a place where messages arrive."""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import dask.config
from distributed import Client, Scheduler, Worker, scheduler

from daskscope import settings as options
from daskscope import wire
from daskscope.compression import Encoding, decompress
from daskscope.settings import Settings
from daskscope.transport import Outcome
from daskscope.watch import Watch

KEPT = Outcome("kept", "")
REPLY = b'{"id": 7, "url": "/acme/clusters/7"}'
"""Of a server that has the message, as it comes."""
TAKES_ANY_KEY = "validate" in signature(getattr(scheduler, "_materialize_graph", lambda: None)).parameters
"""Whether this release's schedulers take keys with objects of the user's in them, for what nobody asks for."""

UNHURRIED: dict[str, Any] = {f"distributed.worker.memory.{name}": False for name in ("target", "spill", "pause")}
"""A worker in this process counts as its memory what all tests before have left, and would pause for it."""


class Inbox:
    """A transport that keeps what it gets; `answer(name)` decides, and only what is kept can be taken out."""

    def __init__(self, answer: Callable[[str], Outcome] = lambda _: KEPT) -> None:
        self.answer = answer
        self.bodies: list[bytes] = []
        self._kept: queue.SimpleQueue[wire.Message] = queue.SimpleQueue()

    def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
        outcome = self.answer(name)
        if outcome.verdict == "kept":
            self.bodies.append(decompress(body, encoding))
            self._kept.put(wire.decode(self.bodies[-1]))
        return outcome

    def close(self) -> None:
        """Nothing is held open."""

    def take(self) -> wire.Message:
        return self._kept.get(timeout=20)

    async def next(self) -> wire.Message:
        """The next message; the event loop goes on meanwhile."""
        return await asyncio.to_thread(self.take)


def settings(**changes: Any) -> Settings:
    """What is configured, with an interval at which nothing happens during a test unless the test asks for it."""
    return replace(options.load(), **{"interval_s": 3600.0, **changes})


@dataclass
class Cluster:
    scheduler: Scheduler
    client: Any
    workers: list[Worker]


@contextlib.asynccontextmanager
async def running(n_workers: int = 1, *, worker: dict[str, Any] | None = None, **options: Any
                  ) -> AsyncGenerator[Cluster]:  # fmt: skip
    """A scheduler, its workers (one thread each) and an asynchronous client, all on this event loop."""
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(dask.config.set(UNHURRIED))
        scheduler = await stack.enter_async_context(quiet_scheduler(**options))
        workers = [
            await stack.enter_async_context(
                Worker(scheduler.address, nthreads=1, name=f"w{n}", dashboard=False, memory_limit="1 GiB",
                       heartbeat_interval="50ms", **(worker or {}))
            )
            for n in range(n_workers)
        ]  # fmt: skip
        client = await stack.enter_async_context(Client(scheduler.address, asynchronous=True))
        yield Cluster(scheduler, client, workers)


def quiet_scheduler(**options: Any) -> Scheduler:
    return Scheduler(dashboard=False, dashboard_address="127.0.0.1:0", port=0, host="127.0.0.1", **options)


def watch(scheduler: Scheduler, inbox: Inbox, **changes: Any) -> Watch:
    """A watch that has started; its first message is on its way as soon as the loop gets to it."""
    started = Watch(scheduler, settings(**changes), inbox)
    started.start()
    return started


async def until(condition: Callable[[], object]) -> None:
    """Let the event loop go on until something is so; pytest-timeout ends it if it never is."""
    while not condition():
        await asyncio.sleep(0)


async def silent(worker: Worker) -> None:
    """It tells its metrics no more; one that was under way while a test sets others would undo them."""
    worker.periodic_callbacks["heartbeat"].stop()
    await worker.heartbeat()


def spooled(data: Path) -> list[wire.Message]:
    """The messages in a spool, in the order of their making."""
    files = sorted((data / "spool").glob("*.msg"))
    encodings: dict[str, Encoding] = {".zst": "zstd", ".gz": "gzip"}
    return [wire.decode(decompress(file.read_bytes(), encodings[file.suffixes[-2]])) for file in files]


class Look:
    """A watch that has started and sent its first message; each call is what one more interval would send."""

    def __init__(self, watching: Watch, first: wire.Message) -> None:
        self.watch, self.first = watching, first

    def __call__(self) -> wire.Message:
        message = self.watch._message("running", None)
        assert wire.decode(wire.encode(message)) == message, "what is made is of the format"
        assert not self.watch.readers.attempt.unreadable, "no reader failed"
        return message


async def look_at(scheduler: Scheduler, **changes: Any) -> Look:
    inbox = Inbox()
    watching = watch(scheduler, inbox, **changes)
    first = await inbox.next()
    assert not first.lost
    return Look(watching, first)


def group_rows(message: wire.Message) -> list[dict[str, Any]]:
    """The groups of a message, one dict each; states and actions without their zeros."""
    groups = message.groups
    rows: list[dict[str, Any]] = []
    for n in range(len(groups.no)):
        row: dict[str, Any] = {}
        for name in groups.__slots__:
            column: Any = getattr(groups, name)
            row[name] = {k: v[n] for k, v in column.items() if v[n]} if isinstance(column, dict) else column[n]
        rows.append(row)
    return rows


def inc(x: int) -> int:
    return x + 1


def boom(x: object) -> None:
    raise ValueError(f"no {x}")


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 1e6

    def __call__(self) -> float:
        return self.now_s


def fails(*args: Any, **kwargs: Any) -> Any:
    """In place of a reader's method."""
    raise RuntimeError("the reader is broken")

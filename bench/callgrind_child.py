"""The work that callgrind counts: `python -m bench.callgrind_child N_TASKS VARIANT ...`, run under valgrind.

Everything is imported and made once; then each variant runs in forks, so all start from the same memory: one fork makes
ready and stops, another makes ready and works. What the second executed more is the work. Prints VARIANT and both
process ids, with tabs between, a line each; callgrind's files are named by them.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from distributed import SchedulerPlugin

from bench.fleet import Fleet
from bench.watched import Watched
from daskscope import wire

ROUNDS = 4


class Idle(SchedulerPlugin):
    """Overrides nothing."""


class Counting(SchedulerPlugin):
    """Counts transitions by prefix and states, and seconds by prefix: the least that a telemetry hook would do."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._seconds: Counter[str] = Counter()

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        del args
        ts = self._scheduler.tasks.get(key)
        if ts is None:
            return
        self._counts[ts.prefix.name, start, finish] += 1
        for span in kwargs.get("startstops") or ():
            self._seconds[ts.prefix.name] += span["stop"] - span["start"]


def _nothing() -> None:
    pass


def _bare(fleet: Fleet) -> Callable[[], None]:
    del fleet
    return _nothing


def _plugin(make: Callable[[Any], SchedulerPlugin]) -> Callable[[Fleet], Callable[[], None]]:
    def install(fleet: Fleet) -> Callable[[], None]:
        fleet.scheduler.add_plugin(make(fleet.scheduler), name="bench-peer")
        return _nothing

    return install


def _watch(fleet: Fleet, *, tasks: bool = False, packs: bool = True) -> Callable[[], None]:
    """`packs`: with what the sender's thread does to a message."""
    watched = Watched(fleet, tasks=tasks)
    sender = watched.watch.sender

    def put(message: wire.Message) -> None:
        """Mask, encode and compress here, so that they are counted too."""
        if packs:
            sender._pack(message)

    sender.put = put
    # The first polls of a cluster's life read who it is, and packing their messages makes what is made once.
    watched.watch.poll()
    keys = fleet.submit_stages(80)
    fleet.finish(40)
    watched.watch.poll()
    fleet.finish(80)
    fleet.release(keys)
    watched.watch.poll()
    return watched.watch.poll


VARIANTS: dict[str, Callable[[Fleet], Callable[[], None]]] = {
    "bare": _bare,
    "bare again": _bare,
    "watched": _watch,
    "of it on the event loop": partial(_watch, packs=False),
    "watched, a row per task": partial(_watch, tasks=True),
    "plugin that overrides nothing": _plugin(lambda _: Idle()),
    "counting hook": _plugin(Counting),
}


def _work(fleet: Fleet, n_tasks: int, poll: Callable[[], None]) -> None:
    for number in range(ROUNDS):
        keys = fleet.submit_stages(n_tasks // ROUNDS)
        fleet.finish(n_tasks // ROUNDS // 2)
        if number == ROUNDS // 2:
            poll()
        fleet.finish(n_tasks)
        fleet.release(keys)


def _fork(fleet: Fleet, variant: str, n_tasks: int) -> int:
    """The process id of a fork that made a variant ready and did the work, if `n_tasks` is not 0."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            poll = VARIANTS[variant](fleet)
            if n_tasks:
                _work(fleet, n_tasks, poll)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)  # not into the parent's event loop
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise SystemExit(f"The variant {variant!r} failed.")
    return pid


async def _main(n_tasks: int, variants: list[str]) -> None:
    fleet = await Fleet.of(10)
    fleet.release(fleet.submit_stages(80))
    gc.collect()
    gc.disable()
    for variant in variants:
        ready, worked = _fork(fleet, variant, 0), _fork(fleet, variant, n_tasks)
        print(variant, ready, worked, sep="\t", flush=True)


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), sys.argv[2:]))

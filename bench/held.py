"""What a watch holds: its own objects, byte by byte, and Dask's objects that are alive for its sake alone."""

from __future__ import annotations

import gc
import sys
import types
from collections import Counter
from collections.abc import Iterable
from typing import Any

from distributed.scheduler import ClientState, Computation, ErredTask, TaskGroup, TaskState, WorkerState

KINDS = (WorkerState, ClientState, TaskState, TaskGroup, Computation, ErredTask)
_HOSTS = ("distributed", "dask", "tornado", "asyncio", "_asyncio", "concurrent", "logging", "_thread", "threading")
"""What belongs to these, in the first part of its type's module, is the host's and not ours."""
_CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.FrameType)


def held_bytes(watch: Any) -> int:
    """Of a `daskscope.watch.Watch`, with the memories of Dask that it lengthened."""
    scheduler = watch._scheduler
    return size_of(watch, scheduler.erred_tasks, scheduler.computations)


def size_of(*things: object) -> int:
    """Size of all that can be reached without a step through the host's objects: texts that both have count as ours,
    so it is rather too much than too little."""
    seen: set[int] = set()
    ahead = [*things]
    n_bytes = 0
    while ahead:
        thing = ahead.pop()
        if id(thing) in seen or isinstance(thing, _CODE) or type(thing).__module__.partition(".")[0] in _HOSTS:
            continue
        seen.add(id(thing))
        n_bytes += sys.getsizeof(thing)
        ahead += gc.get_referents(thing)
    return n_bytes


def there_before() -> list[object]:
    """Objects of Dask's kinds that are there before a scheduler is made: of another one, in the same process. Hold
    them until the end, for their places in memory not to be taken."""
    gc.collect()
    return [thing for thing in gc.get_objects() if type(thing) in KINDS]


def kept_alive(scheduler: Any, others: Iterable[object] = ()) -> Counter[str]:
    """Objects of each of Dask's kinds that Dask itself has no more, by the name of their type; but for `others`."""
    gc.collect()
    known = {id(thing) for thing in _of_dask(scheduler)} | set(map(id, others))
    return Counter(
        type(thing).__name__ for thing in gc.get_objects() if type(thing) in KINDS and id(thing) not in known
    )


def _of_dask(scheduler: Any) -> Iterable[object]:
    """All that Dask holds itself. Its spans keep their groups for ever, and its groups what they depended on."""
    yield from scheduler.workers.values()
    yield from scheduler.clients.values()
    yield from scheduler.tasks.values()
    yield from scheduler.computations
    yield from scheduler.erred_tasks
    for tasks in scheduler.extensions["stealing"].unknown_durations.values():
        yield from tasks
    ahead: list[TaskGroup] = [*scheduler.task_groups.values()]
    for span in scheduler.extensions["spans"].spans.values():
        ahead += span.groups
    for computation in scheduler.computations:
        ahead += computation.groups
    seen: set[int] = set()
    while ahead:
        group = ahead.pop()
        if id(group) not in seen:
            seen.add(id(group))
            yield group
            ahead += group.dependencies

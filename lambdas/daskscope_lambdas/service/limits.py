"""How large the numbers of a message may be, so that no sum and no product of what the lake keeps can overflow.

A number is bounded by what it counts. One above its bound is no measurement, whatever made it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from operator import attrgetter
from typing import Any

from daskscope import wire

MAX_VALUE = 1e300
"""Of a metric, either side of 0: a hundred million of them have a sum."""


@dataclass(frozen=True, slots=True)
class Limit:
    low: int
    high: int
    told: str


SMALL = Limit(-(1 << 31), (1 << 31) - 1, "The number is too large: it must fit into 32 bits.")
"""What the lake keeps in 32 bits (a test holds it against the tables), and all that is said of a worker: its columns
are summed over all workers as the rows are made."""
PLACE = Limit(0, 1 << 30, "The number is too large or negative: allowed are 0 to 2^30.")
"""Where a list begins, of which each place must fit into 32 bits."""
WHOLE = Limit(0, SMALL.high, "The number is no count of 32 bits: allowed are 0 to 2^31 - 1.")
COUNT = Limit(0, 1 << 53, "The number is no count: allowed are 0 to 2^53.")
GROWN = Limit(0, 1 << 60, "The number is too large or negative: allowed are 0 to 2^60.")
"""Bytes and microseconds of a whole cluster: 10,000 threads offer 2^53 us in ten days."""
EITHER = Limit(-(1 << 60), 1 << 60, "The number is too large: allowed are 2^60 either side of 0.")
"""What a clock that was set back, or a user's own `sizeof`, can make negative."""

_COLUMNS: dict[str, dict[str, Limit]] = {
    "workers": dict.fromkeys(
        ("n_threads", "memory_limit_mib", "memory_mib", "managed_mib", "spilled_mib", "cpu_pct", "executing", "ready",
         "in_memory", "net_read_kib_s", "net_write_kib_s", "disk_read_kib_s", "disk_write_kib_s", "loop_interval_ms",
         "gpu_pct", "gpu_memory_mib"),
        SMALL,
    ),
    "groups": {"no": SMALL, "computation": SMALL, "n_tasks": COUNT, "nbytes": EITHER},
    "tasks": {"group": SMALL, "duration_us": COUNT, "nbytes": EITHER, "erred": SMALL},
    "logs": {"no": COUNT, "level": SMALL, "dropped": COUNT},
}  # fmt: skip
_OBJECTS: dict[str, dict[str, Limit]] = {
    "computations": {"no": SMALL},
    "exceptions": {"no": SMALL, "group": SMALL, "count": COUNT},
    "events": {"no": SMALL},
    "members": {"no": SMALL, "n_threads": SMALL, "memory_limit_bytes": GROWN},
    "hardware": {"cores": SMALL, "memory_bytes": GROWN},
    "deaths": {
        "no": SMALL, "memory_bytes": GROWN, "memory_limit_bytes": GROWN, "memory_slope_bytes_s": EITHER,
        "n_processing": COUNT, "n_results_lost": COUNT,
    },
    "profiles": {"n_workers": SMALL, "first_no": PLACE, "sample_us": COUNT, "cut": COUNT},
}  # fmt: skip
_SMALL_TOTALS = (
    "n_workers", "n_threads", "n_clients", "desired_workers", "adaptive_minimum", "adaptive_maximum",
    "scheduler_cpu_pct", "scheduler_loop_ms",
)  # fmt: skip
_GROWN = tuple(f.name for f in fields(wire.Totals) if f.name.endswith(("_bytes", "_us")) and f.name != "action_us")
_COUNTS = tuple(
    f.name
    for f in fields(wire.Totals)
    if f.name not in {*_SMALL_TOTALS, *_GROWN, "action_us", "idle_since_ms"}
)  # fmt: skip
_LIVE = ((_SMALL_TOTALS, SMALL), (_COUNTS, COUNT), (_GROWN, GROWN))
_ITSELF = tuple(f.name for f in fields(wire.Itself))
_ALL_OF = {names: attrgetter(*names) for names in (_SMALL_TOTALS, _COUNTS, _GROWN, _ITSELF)}
_COLUMNS_OF = {part: attrgetter(*names) for part, names in _COLUMNS.items()}

Bounded = tuple[str, Sequence[int | None], Limit]
"""A place, the numbers that stand there, and what they may be."""


def exceeded(message: wire.Message) -> Iterator[tuple[str, Limit]]:
    """Places with a number over its limit."""
    return ((place, limit) for place, numbers, limit in _bounded(message) if not _fits(numbers, limit))


def _fits(numbers: Sequence[int | None], limit: Limit) -> bool:
    try:
        if limit is SMALL:  # Four times as fast as to compare.
            struct.pack(f"{len(numbers)}i", *numbers)
            return True
        return min(numbers) >= limit.low and max(numbers) <= limit.high  # type: ignore[type-var,operator]  # or it is caught
    except (struct.error, TypeError):
        known = [number for number in numbers if number is not None]
        return not known or (min(known) >= limit.low and max(known) <= limit.high)


def _bounded(message: wire.Message) -> Iterator[Bounded]:
    """Parts that a message lacks, as most do, are passed over."""
    yield "$.uptime_us", (message.uptime_us,), GROWN
    for name in ("part", "halved", "merged"):
        yield f"$.{name}", (getattr(message, name),), WHOLE
    yield from _mapped("$.sums", message.sums, COUNT)
    for names, limit in _LIVE:
        yield from _named("$.totals", message.totals, names, limit)
    yield from _named("$.itself", message.itself, _ITSELF, COUNT)
    yield from _mapped("$.totals.action_us", message.totals.action_us, GROWN)
    yield from _mapped("$.lost", message.lost, COUNT)
    for part, limits in _COLUMNS.items():
        columns = _COLUMNS_OF[part](getattr(message, part))
        for (name, limit), column in zip(limits.items(), columns, strict=True):
            if column:
                yield f"$.{part}.{name}", column, limit
    for part, limits in _OBJECTS.items():
        if found := getattr(message, part):
            for name, limit in limits.items():
                yield f"$.{part}.{name}", [getattr(each, name) for each in found], limit
    yield from _work(message)


def _work(message: wire.Message) -> Iterator[Bounded]:
    groups, tasks = message.groups, message.tasks
    if groups.no:
        yield "$.groups.dependencies", list(chain.from_iterable(groups.dependencies)), SMALL
        for state, numbers in groups.states.items():
            yield f"$.groups.states.{state}", numbers, COUNT
        for action, numbers in groups.action_us.items():
            yield f"$.groups.action_us.{action}", numbers, EITHER
    yield "$.tasks.first_no", (tasks.first_no,), COUNT
    yield "$.tasks.weight", (tasks.weight,), SMALL
    for number, profile in enumerate(message.profiles):
        if profile.count:
            yield f"$.profiles[{number}].count", profile.count, COUNT
    if message.computations:
        frames = [frame for computation in message.computations for call in computation.code for frame in call]
        yield "$.computations.code", [line for frame in frames for line in (frame.line, frame.line_in_code)], SMALL


def _named(place: str, part: Any, names: tuple[str, ...], limit: Limit) -> Iterator[Bounded]:
    """All fields at once, and one by one only where that does not fit."""
    if not _fits(_ALL_OF[names](part), limit):
        for name in names:
            yield f"{place}.{name}", (getattr(part, name),), limit


def _mapped(place: str, numbers: dict[str, int], limit: Limit) -> Iterator[Bounded]:
    if numbers and not _fits(list(numbers.values()), limit):
        for name, number in numbers.items():
            yield f"{place}.{name}", (number,), limit

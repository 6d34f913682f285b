"""What is read of a task group, in as few grasps as it takes: of thousands, most were read before and did not change.

Dask counts a group's time in whole microseconds under private names; its releases before 2024.6 or so have seconds
under public ones, which are properties now, and slow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter, itemgetter
from typing import Any

from distributed.scheduler import TaskGroup

from daskscope import wire
from daskscope.collect.bounds import within
from daskscope.collect.payloads import as_key

MAX_TYPES = 20
"""Type names per group; a group rarely has more than one."""

_STATES = ("released", "waiting", "no-worker", "queued", "processing", "memory", "erred", "forgotten")
_counts = itemgetter(*_STATES)
_unfinished = itemgetter("waiting", "no-worker", "queued", "processing")
_IN_US = hasattr(TaskGroup, "_duration_us")
_gist = attrgetter("nbytes_total", "_duration_us" if _IN_US else "duration", "stop", "states")
_types = attrgetter("_types" if hasattr(TaskGroup, "_types") else "types")
_columns = attrgetter("name", "prefix.name", "span_id", "start", "stop", "nbytes_total", "states")


class Tracked:
    """What is remembered of a group between two reads."""

    __slots__ = ("action_us", "added", "computation", "done", "n_tasks", "no", "seen", "span")

    def __init__(self, no: int, computation: int | None, span: str | None) -> None:
        self.no, self.computation, self.span = no, computation, span
        self.seen: tuple[Any, ...] = ()
        """As it was told last."""
        self.added: tuple[Any, ...] = ()
        """As its figures were taken into the running totals since then; empty if they were not."""
        self.done = False
        self.n_tasks = 0
        self.action_us: dict[str, int] = {}


Told = tuple[TaskGroup, Tracked, list[int]]
"""A group as it is told, with the numbers of those that it depends on."""


def look(group: TaskGroup) -> tuple[Any, ...]:
    """Differs whenever anything that is sent of a group differs, and costs little."""
    nbytes, duration, stop, states = _gist(group)
    return (nbytes, duration, stop, *states.values())


def is_done(group: TaskGroup) -> bool:
    """Whether none of its tasks has yet to come to an end."""
    return not any(_unfinished(group.states))


def action_us(group: TaskGroup) -> dict[str, int]:
    """What its tasks took so far, by action."""
    if _IN_US:
        durations_us: Any = group._all_durations_us  # type: ignore[attr-defined]
        return dict(durations_us)
    return {action: round(seconds * 1e6) for action, seconds in group.all_durations.items()}


def table(told: Sequence[Told], lost: Counter[str]) -> wire.Groups:
    """Groups as columns of a message, with the numbers of those that each depended on; sizes that are no numbers are
    0, and `unreadable-sizes` of `lost`."""
    if not told:
        return wire.Groups()
    groups, tracked, dependencies = zip(*told, strict=True)
    names, prefixes, spans, starts_s, stops_s, nbytes, states = zip(*map(_columns, groups), strict=True)
    counts = zip(_STATES, zip(*map(_counts, states), strict=True), strict=True)
    spent_us = [each.action_us for each in tracked]
    return wire.Groups(
        no=[each.no for each in tracked],
        # The first part of a key, whatever a user took for one.
        name=[name if type(name) is str else as_key(name) for name in names],
        prefix=[*prefixes],
        computation=[each.computation for each in tracked],
        span=[*spans],
        start_ms=[round(start_s * 1e3) if start_s else None for start_s in starts_s],
        stop_ms=[round(stop_s * 1e3) if stop_s else None for stop_s in stops_s],
        n_tasks=[each.n_tasks for each in tracked],
        nbytes=_bounded(nbytes, lost),
        states={state: [*column] for state, column in counts if any(column)},
        action_us={
            action: [each.get(action, 0) for each in spent_us] for action in sorted(set[str]().union(*spent_us))
        },
        dependencies=[*dependencies],
        types=[sorted(types)[:MAX_TYPES] for types in map(_types, groups)],
    )


def _bounded(nbytes: Sequence[Any], lost: Counter[str]) -> list[int]:
    if {*map(type, nbytes)} == {int} and min(nbytes) >= -wire.MOST_BYTES and max(nbytes) <= wire.MOST_BYTES:
        return [*nbytes]
    found = [within(each, wire.MOST_BYTES) for each in nbytes]
    lost["unreadable-sizes"] += found.count(None)
    return [each or 0 for each in found]

"""Task groups: which are new, which changed, what they add up to.

`scheduler.task_groups` forgets a group with its last task, so groups are found through the computations that made them
(`Computation.groups` keeps them) and, for those that no computation made (scatter), at the young end of `task_groups`.

One read costs what is active plus a bounded slice of what has settled: a settled group may come to life again, when a
later graph adds tasks under the same name or when a worker is lost with its results.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributed.utils import key_split_group

from daskscope import wire

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Scheduler
    from distributed.scheduler import TaskGroup

SETTLED_PER_READ = 500
"""So many settled groups are looked at again in one read; with more of them, a change shows some reads later."""
MAX_TYPES = 20
"""Type names per group; a group rarely has more than one."""

_STATES = ("released", "waiting", "no-worker", "queued", "processing", "memory", "erred", "forgotten")


class Tracked:
    """What is remembered of a group between two reads."""

    __slots__ = ("action_us", "computation", "done", "fingerprint", "n_tasks", "no")

    def __init__(self, no: int, computation: int | None) -> None:
        self.no, self.computation = no, computation
        self.fingerprint = 0
        self.done = False
        self.n_tasks = 0
        self.action_us: dict[str, int] = {}


@dataclass(slots=True)
class Progress:
    """How far the groups of one computation are."""

    n_open: int = 0
    """Groups with tasks that have not come to an end."""
    n_followed: int = 0
    """Groups that may still change."""
    stop_s: float = 0.0
    """Latest end of a task, epoch seconds; 0 if none succeeded."""


class GroupReader:
    """Reads groups and keeps running totals over all it ever saw."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._tracked: dict[TaskGroup, Tracked] = {}
        self._named: dict[str, TaskGroup] = {}
        self._active: dict[TaskGroup, None] = {}
        self._settled: deque[TaskGroup] = deque()
        self.n_groups = 0
        self.n_tasks = 0
        self.action_us: dict[str, int] = {}
        self.progress: defaultdict[int, Progress] = defaultdict(Progress)

    @property
    def n_active(self) -> int:
        return len(self._active)

    def number(self, key: Key) -> int | None:
        """Number of a task's group, also when the scheduler has forgotten both since the last read."""
        task = self._scheduler.tasks.get(key)
        group = self._named.get(key_split_group(key)) if task is None else task.group
        tracked = None if group is None else self._tracked.get(group)
        return None if tracked is None else tracked.no

    def track(self, group: TaskGroup, computation: int | None) -> None:
        """Follow a group from now on; one that is followed already keeps its number and computation."""
        if group in self._tracked:
            return
        self._tracked[group] = Tracked(self.n_groups, computation)
        self._named[group.name] = group
        self._active[group] = None
        self.n_groups += 1
        if computation is not None:
            progress = self.progress[computation]
            progress.n_open += 1
            progress.n_followed += 1

    def track_others(self, first_new: int) -> None:
        """Follow young groups that no computation made; the walk ends at the first that was known before
        `first_new`."""
        fresh: list[TaskGroup] = []
        for group in reversed(self._scheduler.task_groups.values()):
            tracked = self._tracked.get(group)
            if tracked is None:
                fresh.append(group)
            elif tracked.no < first_new:
                break
        for group in reversed(fresh):
            self.track(group, None)

    def resend(self) -> None:
        """Take all that is still followed as changed: a message with snapshots was lost."""
        for tracked in self._tracked.values():
            tracked.fingerprint = 0

    def read(self) -> wire.Groups:
        """Snapshots of the groups that changed since they were last read."""
        settled = [self._settled.popleft() for _ in range(min(SETTLED_PER_READ, len(self._settled)))]
        changed: dict[TaskGroup, Tracked] = {}
        for group in [*self._active, *settled]:
            tracked = self._tracked[group]
            fingerprint = _fingerprint(group)
            if fingerprint != tracked.fingerprint:
                tracked.fingerprint = fingerprint
                changed[group] = tracked
                self._take(group, tracked)
        columns = self._columns(changed)
        for group in [*self._active, *settled]:
            self._keep(group, self._tracked[group])
        return columns

    def _take(self, group: TaskGroup, tracked: Tracked) -> None:
        """Move a changed group's figures into the running totals."""
        was_done, tracked.done = tracked.done, group.done
        self.n_tasks += len(group) - tracked.n_tasks
        tracked.n_tasks = len(group)
        action_us = {action: round(seconds * 1e6) for action, seconds in group.all_durations.items()}
        for action, spent_us in action_us.items():
            grown_us = spent_us - tracked.action_us.get(action, 0)
            self.action_us[action] = self.action_us.get(action, 0) + grown_us
        tracked.action_us = action_us
        if tracked.computation is not None:
            progress = self.progress[tracked.computation]
            progress.n_open += was_done - tracked.done
            progress.stop_s = max(progress.stop_s, group.stop)

    def _keep(self, group: TaskGroup, tracked: Tracked) -> None:
        alive = self._scheduler.task_groups.get(group.name) is group
        if alive and not tracked.done:
            self._active[group] = None
            return
        self._active.pop(group, None)
        if alive:
            self._settled.append(group)
            return
        # The scheduler has forgotten it: what was read just now is the last there is to read.
        del self._tracked[group]
        if self._named.get(group.name) is group:
            del self._named[group.name]
        if tracked.computation is not None:
            progress = self.progress[tracked.computation]
            progress.n_open -= not tracked.done
            progress.n_followed -= 1

    def _columns(self, changed: dict[TaskGroup, Tracked]) -> wire.Groups:
        columns = wire.Groups()
        actions = sorted({action for tracked in changed.values() for action in tracked.action_us})
        columns.action_us = {a: [tracked.action_us.get(a, 0) for tracked in changed.values()] for a in actions}
        states = {state: [group.states.get(state, 0) for group in changed] for state in _STATES}
        columns.states = {state: column for state, column in states.items() if any(column)}
        for group, tracked in changed.items():
            columns.no.append(tracked.no)
            columns.name.append(group.name)
            columns.prefix.append(group.prefix.name)
            columns.computation.append(tracked.computation)
            columns.span.append(group.span_id)
            columns.start_ms.append(round(group.start * 1e3) if group.start else None)
            columns.stop_ms.append(round(group.stop * 1e3) if group.stop else None)
            columns.n_tasks.append(tracked.n_tasks)
            columns.nbytes.append(group.nbytes_total)
            known = (self._tracked.get(dependency) for dependency in group.dependencies)
            columns.dependencies.append(sorted(other.no for other in known if other))
            columns.types.append(sorted(group.types)[:MAX_TYPES])
        return columns


def _fingerprint(group: TaskGroup) -> int:
    """Differs, but for a chance of 2^-61, whenever anything that is sent of a group differs; never 0."""
    return hash((len(group), group.nbytes_total, group.duration, group.stop, *group.states.values())) or 1

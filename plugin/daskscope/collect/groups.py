"""Task groups: which are new, which changed, what they add up to.

`scheduler.task_groups` forgets a group with its last task, so groups are found through the computations that made them
(`Computation.groups` keeps them) and, for those that no computation made (scatter), at the young end of `task_groups`.

One read looks at a bounded number of groups, in turns: of those with unfinished tasks, and of settled ones, for these
may come to life again, when a later graph adds tasks under the same name or when a worker is lost with its results. Of
those that changed it tells a bounded number. The rest waits for the next read: it is held here, so that nothing is lost
when the scheduler forgets it meanwhile, and the running totals catch up.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count, groupby, islice, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from distributed.utils import key_split_group

from daskscope import wire
from daskscope.collect.bounds import at_once
from daskscope.collect.figures import Told, Tracked, action_us, is_done, look, table

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Scheduler
    from distributed.scheduler import TaskGroup

SNAPSHOTS_PER_READ = 500
"""So many groups are told in one read, or a twentieth of those not told yet, lest these become more and more."""
MAX_SNAPSHOTS = 4_000
"""Never more than that: some 300 kB, which a server takes."""
ACTIVE_PER_READ, SETTLED_PER_READ = 2_000, 300
"""So many groups with and without unfinished tasks are looked at in one read; with more, a change shows some reads
later."""
MAX_KEPT = 2_000
"""So many groups that the scheduler has forgotten are kept, those told last, should a message be lost."""
MAX_GONE = 200
"""Of so many groups that were let go the number is known still: a task that failed may be looked at late."""

T = TypeVar("T")

_span = attrgetter("span_id")


@dataclass(slots=True)
class Progress:
    """How far the groups of one computation or span are."""

    n_open: int = 0
    """Groups with tasks that have not come to an end."""
    n_followed: int = 0
    """Groups that may still change."""
    start_s: float = 0.0
    stop_s: float = 0.0
    """First start and latest end of a task, epoch seconds; 0 if none succeeded: Dask counts no others."""
    erred: bool = False
    """Whether any task failed, so that the end may be later than `stop_s`."""

    def grow(self, n_followed: int, n_open: int | None = None) -> None:
        """So many groups more; all of them with unfinished tasks unless told otherwise."""
        self.n_followed += n_followed
        self.n_open += n_followed if n_open is None else n_open

    def add(self, n_followed: int, n_open: int, start_s: float, stop_s: float, erred: bool) -> None:
        """What was read of a group, or of a span within this one; `n_open`: groups that came to be open, or closed."""
        self.n_followed += n_followed
        self.n_open += n_open
        if start_s and (start_s < self.start_s or not self.start_s):
            self.start_s = start_s
        if stop_s > self.stop_s:
            self.stop_s = stop_s
        self.erred = self.erred or erred

    def ended_s(self, open_at_s: float) -> float:
        """When the last task ended, given when there were unfinished ones; 0 where Dask does not tell."""
        return 0.0 if self.erred and self.stop_s < open_at_s else self.stop_s


def snapshots_at_once(n_waiting: int) -> int:
    """How many of those that wait one read tells."""
    return at_once(n_waiting, SNAPSHOTS_PER_READ, MAX_SNAPSHOTS)


class GroupReader:
    """Reads groups and keeps running totals over all it ever read."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._numbers: dict[TaskGroup, int] = {}
        self._named: dict[str, TaskGroup] = {}
        self._gone: dict[str, int] = {}
        # Each group that is followed stands in one of these four: the first two were not told yet.
        self._unread: dict[TaskGroup, tuple[int | None, str | None]] = {}
        self._added: dict[TaskGroup, Tracked] = {}
        self._active: deque[tuple[TaskGroup, Tracked]] = deque()
        self._settled: deque[tuple[TaskGroup, Tracked]] = deque()
        # Those that the scheduler has forgotten, with what they depended on: told once, and to be told again.
        self._kept: deque[Told] = deque(maxlen=MAX_KEPT)
        self._again: deque[Told] = deque()
        self._n_left = 0
        self.lost: Counter[str] = Counter()
        """`unreadable-sizes`."""
        self.n_groups = 0
        self.n_tasks = 0
        self.action_us: dict[str, int] = {}
        self.progress: defaultdict[int, Progress] = defaultdict(Progress)
        """By number of the computation. Who reads computations takes out what is over."""
        self.spans: defaultdict[str, Progress] = defaultdict(Progress)
        """By id of the span, of its own groups. Who reads spans takes out what is over, and `touched`."""
        self.touched: dict[str, None] = {}
        """Spans whose progress may be another than it was."""

    @property
    def waiting(self) -> Counter[str]:
        """What the last read left for the next: `groups`."""
        return Counter({"groups": self.n_unread + len(self._again) + self._n_left})

    @property
    def behind(self) -> bool:
        """Whether the last read left changes for the next."""
        return self.waiting.total() > 0

    @property
    def n_unread(self) -> int:
        """Groups that were found and not told yet."""
        return len(self._unread) + len(self._added)

    @property
    def n_active(self) -> int:
        return self.n_unread + len(self._active)

    def number(self, key: Key) -> int | None:
        """Number of a task's group, also when the scheduler has forgotten both not long ago."""
        task = self._scheduler.tasks.get(key)
        if task is not None:
            return self._numbers.get(task.group)
        name = key_split_group(key)
        group = self._named.get(name)
        return self._gone.get(name) if group is None else self._numbers.get(group)

    def number_of(self, group: TaskGroup) -> int | None:
        """Number of a group that is followed."""
        return self._numbers.get(group)

    def track(self, groups: Iterable[TaskGroup], computation: int | None) -> None:
        """Follow groups from now on; one that is followed already keeps its number and computation."""
        fresh = [group for group in groups if group not in self._numbers]
        self._numbers.update(zip(fresh, count(self.n_groups)))
        self._named.update(zip([group.name for group in fresh], fresh, strict=True))
        spans = [*map(_span, fresh)]
        self._unread.update(zip(fresh, zip(repeat(computation), spans), strict=False))
        self.n_groups += len(fresh)
        if computation is not None:
            self.progress[computation].grow(len(fresh))
        for span, run in groupby(spans):
            if span is not None:
                self.spans[span].grow(len([*run]))
                self.touched[span] = None

    def track_others(self, first_new: int) -> None:
        """Follow young groups that no computation made; the walk ends at the first that was known before
        `first_new`."""
        fresh: list[TaskGroup] = []
        for group in reversed(self._scheduler.task_groups.values()):
            number = self._numbers.get(group)
            if number is None:
                fresh.append(group)
            elif number < first_new:
                break
        self.track(reversed(fresh), None)

    def resend(self) -> None:
        """Take all that is still followed or kept as changed: a message with snapshots was lost."""
        for _, tracked in [*self._active, *self._settled]:
            tracked.seen = ()
        self._again.extend(self._kept)
        self._kept.clear()

    def read(self, *, last: bool = False) -> wire.Groups:
        """Snapshots of groups that changed since they were last read, as many as fit; `behind` tells of more.

        `last`: look at every group, for no later read will.
        """
        self._n_left = 0
        room = snapshots_at_once(self.n_unread)
        changed = [(group, self._added.pop(group), look(group)) for group in list(islice(self._added, room))]
        for group in list(islice(self._unread, room - len(changed))):
            changed.append((group, self._begin(group), look(group)))
        alive = self._scheduler.task_groups.get
        for queue, limit in (self._active, ACTIVE_PER_READ), (self._settled, SETTLED_PER_READ):
            for followed in _first(queue, len(queue) if last else limit):
                group, tracked = followed
                seen = look(group)
                if seen == tracked.seen and not tracked.added and alive(group.name) is group:
                    queue.append(followed)
                elif len(changed) < room:
                    changed.append((group, tracked, seen))
                else:
                    self._active.appendleft(followed)
                    self._n_left += 1
        again = _first(self._again, room - len(changed))
        # Before any of them is let go, and with it its number.
        told: list[Told] = [(group, tracked, self._dependencies(group)) for group, tracked, _ in changed]
        for one, (group, tracked, seen) in zip(told, changed, strict=True):
            if not self._take(group, tracked, seen):
                self._kept.append(one)
        self._kept.extend(again)
        return table([*told, *again], self.lost)

    def add_up(self) -> None:
        """Bring the running totals up to now and tell nothing: of as many groups as a read looks at, in turns."""
        for group in list(islice(self._unread, snapshots_at_once(len(self._unread)))):
            self._added[group] = self._begin(group)
        for queue, limit in (self._active, ACTIVE_PER_READ), (self._settled, SETTLED_PER_READ):
            for followed in _first(queue, limit):
                self._add_changed(*followed)
                queue.append(followed)
        for followed in self._added.items():
            self._add_changed(*followed)

    def _begin(self, group: TaskGroup) -> Tracked:
        return Tracked(self._numbers[group], *self._unread.pop(group))

    def _add_changed(self, group: TaskGroup, tracked: Tracked) -> None:
        seen = look(group)
        if seen != (tracked.added or tracked.seen):
            tracked.added = seen
            self._add(group, tracked)

    def _add(self, group: TaskGroup, tracked: Tracked) -> None:
        n_tasks = sum(group.states.values())
        self.n_tasks += n_tasks - tracked.n_tasks
        spent_us = action_us(group) if group.duration else tracked.action_us
        for action, each_us in spent_us.items():
            self.action_us[action] = self.action_us.get(action, 0) + each_us - tracked.action_us.get(action, 0)
        tracked.n_tasks, tracked.action_us = n_tasks, spent_us

    def _dependencies(self, group: TaskGroup) -> list[int]:
        before = group.dependencies
        return sorted([self._numbers[d] for d in before if d in self._numbers]) if before else []

    def _take(self, group: TaskGroup, tracked: Tracked, seen: tuple[Any, ...]) -> bool:
        """Move a changed group's figures into the running totals, and put it where the next reads find it; False if
        the scheduler has forgotten it: what was read just now is the last there is to read."""
        done = is_done(group)
        self._add(group, tracked)
        if tracked.span is None and group.span_id is not None:  # scattered, and then part of a graph
            tracked.span = group.span_id
            self.spans[tracked.span].grow(1, n_open=not tracked.done)
        is_there = self._scheduler.task_groups.get(group.name) is group
        # One that is forgotten is open no more, whatever its tasks were.
        n_open = tracked.done - (done or not is_there)
        change = is_there - 1, n_open, group.start, group.stop, group.states["erred"] > 0
        if tracked.computation is not None:
            self.progress[tracked.computation].add(*change)
        if tracked.span is not None:
            self.spans[tracked.span].add(*change)
            self.touched[tracked.span] = None
        tracked.seen, tracked.added, tracked.done = seen, (), done
        if is_there:
            (self._settled if done else self._active).append((group, tracked))
            return True
        self._gone[group.name] = self._numbers.pop(group)
        if len(self._gone) > MAX_GONE:
            del self._gone[next(iter(self._gone))]
        if self._named.get(group.name) is group:
            del self._named[group.name]
        return False


def _first(queue: deque[T], n: int) -> list[T]:
    """Take up to `n` out of a queue."""
    return [queue.popleft() for _ in range(min(max(n, 0), len(queue)))]

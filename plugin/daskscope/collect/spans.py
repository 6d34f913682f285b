"""Spans, and what Dask measured in them.

The stop of a span is our own where Dask has none: no task succeeded, or others failed later. Metrics come with the
heartbeats of workers, also after a span is done, so each span is looked at in turns: unsettled ones soon, settled ones
seldom, the oldest of these no more unless a group of theirs changes.

Spans are an experimental part of Dask: without them, or if they look different, metrics come from the scheduler's own
totals and belong to no span.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from daskscope import wire
from daskscope.collect.groups import GroupReader
from daskscope.collect.metrics import MAX_NAME, Entry, Totals, number
from daskscope.collect.span_tree import ENTRIES_PER_SPAN, Followed, SpanTree, spans_at_once
from daskscope.collect.thread_time import ThreadTime

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.spans import Span

METRICS_PER_READ = 2_500
"""So many are told in one read: some 5 ms of the event loop."""
ENTRIES_PER_LOOK, ENTRIES_PER_SETTLED_LOOK = 40_000, 10_000
"""So many entries of metrics are looked at in one read, of unsettled and of settled spans; with more, a change shows
some reads later."""
SETTLED_AFTER = 3
"""Looks without a change until a span that is done counts as settled."""
SETTLED_KEPT = 5_000
"""So many settled spans are still looked at, those that settled last."""
MAX_TREE = 100
"""The idle time of a span is told if it has no more spans within it."""
MAX_GRAPHS, MAX_COLLECTIONS, MAX_TAGS = 1_000, 20, 50

_OF_SPANS = frozenset({"execute", "p2p"})
"""Contexts of the scheduler's totals that spans tell more exactly."""


class SpanReader:
    """Tells what changed of spans and of their metrics, and of those that belong to no span."""

    def __init__(self, scheduler: Scheduler, groups: GroupReader) -> None:
        self._scheduler = scheduler
        self.lost: Counter[str] = Counter()
        self._tree = SpanTree(groups, self.lost)
        self._thread_time = ThreadTime(scheduler.total_nthreads_history)
        self._totals = Totals(METRICS_PER_READ)
        # Each span that is followed stands in one of these two; its turn to be looked at comes from the lists below.
        self._active: dict[str, Followed] = {}
        self._settled: dict[str, Followed] = {}
        self._turns: dict[str, deque[str]] = {"active": deque(), "settled": deque()}
        self._entries: deque[tuple[str | None, *Entry]] = deque()
        self._n_unseen = 0

    @property
    def waiting(self) -> Counter[str]:
        """What the last read left for the next: `spans`, `metrics`."""
        n_spans = max(len(self._tree.fresh) + len(self._tree.changed), self._n_unseen)
        return Counter({"spans": n_spans, "metrics": len(self._entries)})

    @property
    def behind(self) -> bool:
        """Whether the last read left something for the next."""
        return self.waiting.total() > 0

    def resend(self) -> None:
        """Take all that is still followed as changed: a message with snapshots was lost."""
        self._totals.forget()
        for followed in self._tree.followed.values():
            followed.told, followed.idle_s = (), None
            followed.ledger.forget()
        self._tree.changed.update(self._tree.followed)

    def read(
        self, now_s: float, *, last: bool = False, with_metrics: bool = True
    ) -> tuple[list[wire.Span], wire.Metrics]:
        """What changed, as much as fits; `behind` tells of more. Called after the groups were read.

        `last`: look at every span, for no later read will. Without metrics, only those that wait already are told.
        """
        known = getattr(self._scheduler.extensions.get("spans"), "spans", None)
        if isinstance(known, dict):
            spans: dict[str, Span] = known
            self._tree.read(spans, now_s)
        for followed in self._tree.changed.values():
            self._wake(followed)
        snapshots = self._snapshots(now_s)
        n_unseen = self._look_around(isinstance(known, dict), last) if with_metrics else self._put_off()
        while len(self._settled) > SETTLED_KEPT:
            oldest = next(iter(self._settled))
            del self._settled[oldest]
            self._tree.let_go(oldest)
        told = [self._entries.popleft() for _ in range(min(METRICS_PER_READ, len(self._entries)))]
        self._n_unseen = n_unseen if last else 0
        return snapshots, _columns(told)

    def _look_around(self, has_spans: bool, last: bool) -> int:
        """Look for metrics that changed; returns how many spans it did not come to."""
        totals = self._scheduler.cumulative_worker_metrics
        but = _OF_SPANS if has_spans else frozenset[str]()
        self._entries.extend((None, *entry) for entry in self._totals.changed(totals, self.lost, but))
        n_unseen = self._look("active", self._active, ENTRIES_PER_LOOK, last)
        n_unseen += self._look("settled", self._settled, ENTRIES_PER_SETTLED_LOOK, last)
        return n_unseen + (self._settle_all() if last else 0)

    def _put_off(self) -> int:
        """Nobody looks at metrics: of spans that are done the oldest are let go, and what was new of theirs is lost."""
        n_over = len(self._active) - SETTLED_KEPT
        done = (followed for followed in self._active.values() if followed.stop_s is not None)
        for followed in list(islice(done, max(n_over, 0))):
            del self._active[followed.id]
            self._tree.let_go(followed.id)
            if not followed.broken:
                totals: Any = followed.span._cumulative_worker_metrics
                self.lost["metrics"] += len(followed.ledger.changed(totals, self.lost))
        return 0

    def _wake(self, followed: Followed) -> None:
        followed.quiet = 0
        self._settled.pop(followed.id, None)
        self._active[followed.id] = followed

    def _snapshots(self, now_s: float) -> list[wire.Span]:
        snapshots: list[wire.Span] = []
        changed = self._tree.changed
        for span_id in list(islice(changed, spans_at_once(len(changed)))):
            followed = changed.pop(span_id)
            try:
                snapshot = None if followed.broken else _snapshot(followed, now_s)
            except Exception:  # noqa: BLE001  # experimental: another Dask may have made it otherwise
                self._give_up(followed)
            else:
                snapshots += [snapshot] if snapshot else []
        return snapshots

    def _give_up(self, followed: Followed) -> None:
        followed.broken = True
        self.lost["spans"] += 1

    def _look(self, which: str, queue: dict[str, Followed], room: int, last: bool) -> int:
        """Look for changed metrics in turns; returns how many spans it did not come to."""
        turns = self._turns[which]
        if last or not turns:
            turns = self._turns[which] = deque(queue)
        while turns and (room > 0 or last) and len(self._entries) < METRICS_PER_READ:
            followed = queue.get(turns.popleft())
            if followed is None or followed.broken:
                continue
            try:
                room -= 10 + self._look_at(followed)
            except Exception:  # noqa: BLE001  # as above
                self._give_up(followed)
        return len(turns)

    def _look_at(self, followed: Followed) -> int:
        """Tell what changed of one span's metrics; returns how many entries it has."""
        totals: Any = followed.span._cumulative_worker_metrics
        entries = followed.ledger.changed(totals, self.lost)
        if entries:
            self._entries.extend((followed.id, *entry) for entry in entries)
            node: Followed | None = followed
            while node is not None:  # the idle time of all around it is another now
                self._wake(node)
                node = self._tree.followed.get(node.parent) if node.parent else None
        elif followed.stop_s is not None:
            followed.quiet += 1
            if followed.quiet >= SETTLED_AFTER:
                self._settle(followed)
        return min(len(totals), ENTRIES_PER_SPAN)

    def _settle_all(self) -> int:
        """Settle those that are done, as many as fit; returns how many are left."""
        done = [followed for followed in self._active.values() if followed.stop_s is not None and not followed.broken]
        for n, followed in enumerate(done):
            if len(self._entries) >= METRICS_PER_READ:
                return len(done) - n
            try:
                self._settle(followed)
            except Exception:  # noqa: BLE001  # as above
                self._give_up(followed)
        return 0

    def _settle(self, followed: Followed) -> None:
        if self._active.pop(followed.id, None):
            self._settled[followed.id] = followed
            self._tell_idle(followed)

    def _tell_idle(self, followed: Followed) -> None:
        """Thread time that the cluster offered while the span lasted, without what its tasks used: as Dask's
        `Span.cumulative_worker_metrics` makes it up."""
        spans = [*islice(followed.span.traverse_spans(), MAX_TREE + 1)]
        if len(spans) > MAX_TREE:
            if followed.idle_s is None:
                followed.idle_s = 0.0
                self.lost["idle"] += 1
            return
        items: Any = chain.from_iterable(
            islice(span._cumulative_worker_metrics.items(), ENTRIES_PER_SPAN) for span in spans
        )
        used_s = sum(number(value) or 0 for key, value in items if key[0] == "execute" and key[-1] == "seconds")
        offered_s = self._thread_time.between(followed.span.enqueued, followed.stop_s or 0.0)
        idle_s = round(max(offered_s - used_s, 0.0), 6)
        if idle_s != followed.idle_s:
            followed.idle_s = idle_s
            self._entries.append((followed.id, "execute", "N/A", "idle or other spans", "seconds", idle_s))


def _snapshot(followed: Followed, now_s: float) -> wire.Span | None:
    """None if nothing of it changed."""
    span, tree = followed.span, followed.tree
    followed.stop_s = _stop_s(followed, now_s)
    stop_ms = None if followed.stop_s is None else round(followed.stop_s * 1e3)
    # Workers' clocks are corrected, but not to the millisecond.
    start_ms = round(max(tree.start_s, span.enqueued) * 1e3) if tree.start_s else None
    told = (start_ms, stop_ms, _collections(span))
    if told == followed.told:
        return None
    followed.told = told
    return wire.Span(
        id=followed.id,
        parent=followed.parent,
        name=[_tag(tag) for tag in span.name[:MAX_TAGS]],
        enqueued_ms=round(span.enqueued * 1e3),
        start_ms=start_ms,
        stop_ms=stop_ms,
        collections=told[2],
    )


def _stop_s(followed: Followed, now_s: float) -> float | None:
    enqueued_s = followed.span.enqueued
    if followed.tree.n_open:
        return None
    if ended_s := followed.tree.ended_s(followed.open_at_s):
        return max(ended_s, enqueued_s)
    return max(now_s, enqueued_s) if followed.stop_s is None else followed.stop_s


def _tag(tag: object) -> str:
    """A text, at most MAX_NAME characters; of anything else the type's name, for its `str` is the user's code."""
    return tag[:MAX_NAME] if isinstance(tag, str) else f"<{type(tag).__qualname__[:MAX_NAME]}>"


def _collections(span: Span) -> str:
    """What was computed, each kind once: Dask notes it for every graph, since 2024.5.2."""
    metadata: Any = getattr(span, "metadata", None)
    if not metadata:
        return ""
    kinds: dict[str, None] = {}
    for collection in islice(metadata["collections"], MAX_GRAPHS):
        plain = [item for item in collection.items() if isinstance(item[1], str) and len(item[1]) <= MAX_NAME]
        kinds[_kind(*plain)] = None
    return f"[{', '.join(islice(kinds, MAX_COLLECTIONS))}]"


@lru_cache(100)
def _kind(*items: tuple[str, str]) -> str:
    return json.dumps(dict(items), ensure_ascii=False)


def _columns(told: list[tuple[str | None, *Entry]]) -> wire.Metrics:
    if not told:
        return wire.Metrics()
    columns: Any = map(list, zip(*told, strict=True))
    span, context, prefix, activity, unit, value = columns
    return wire.Metrics(span=span, context=context, prefix=prefix, activity=activity, unit=unit, value=value)

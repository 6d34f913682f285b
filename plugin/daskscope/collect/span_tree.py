"""Spans that are followed, and how far each is.

Dask keeps every span for ever, so new ones are found at the young end of `extensions["spans"].spans`, as many as it
has grown by. Its properties `done`, `start` and `stop` walk all groups of a span and of those within it; here the group
reader tells which spans its groups touched, and what changed is added up the tree.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

from daskscope.collect.bounds import at_once
from daskscope.collect.groups import GroupReader, Progress
from daskscope.collect.metrics import Ledger

if TYPE_CHECKING:
    from distributed.spans import Span

SPANS_PER_READ, MAX_SPANS = 500, 2_000
"""So many spans are followed and told in one read, or a twentieth of those that wait, lest these become more."""
ENTRIES_PER_SPAN = 2_000
"""Further metrics of a span are left out and counted: Dask itself has some twenty a task prefix."""
MAX_GROUPS_RECALLED = 1_000


class Followed:
    """What is remembered of a span between two reads."""

    __slots__ = (
        "broken", "id", "idle_s", "ledger", "open_at_s", "own_open", "parent", "quiet", "span", "stop_s", "told",
        "tree",
    )  # fmt: skip

    def __init__(self, id: str, span: Span) -> None:
        self.id, self.span = id, span
        self.parent: str | None = None
        self.tree = Progress()
        """Of its own groups and those of the spans within it."""
        self.own_open = 0
        self.open_at_s = 0.0
        """When it was last seen with unfinished tasks."""
        self.stop_s: float | None = None
        self.told: tuple[Any, ...] = ()
        self.ledger = Ledger(ENTRIES_PER_SPAN)
        self.idle_s: float | None = None
        self.quiet = 0
        """Looks without a change since it was done."""
        self.broken = False
        """Whether it could not be read: then it is counted as lost, and left alone."""


def spans_at_once(n_waiting: int) -> int:
    """How many of those that wait one read takes."""
    return at_once(n_waiting, SPANS_PER_READ, MAX_SPANS)


class SpanTree:
    """Finds new spans and brings the progress of groups up to all spans around them."""

    def __init__(self, groups: GroupReader, lost: Counter[str]) -> None:
        self._groups, self._lost = groups, lost
        self._n_seen = 0
        self._read_at_s = 0.0
        self.fresh: dict[str, Span] = {}
        """Seen, and not followed yet."""
        self.followed: dict[str, Followed] = {}
        self.changed: dict[str, Followed] = {}
        """Those to tell. Who tells them takes them out."""

    def read(self, known: dict[str, Span], now_s: float) -> None:
        """Follow new spans, as many as fit, and all whose groups changed. Called after the groups were read."""
        n_new = max(len(known) - self._n_seen, 0)
        self._n_seen = len(known)
        newest = [*islice(reversed(known.items()), n_new)]
        self.fresh.update(reversed(newest))
        for span_id in list(islice(self.fresh, spans_at_once(len(self.fresh)))):
            self.changed[span_id] = self._follow(span_id, self.fresh.pop(span_id))
            self._groups.touched[span_id] = None
        touched = [span_id for span_id in self._groups.touched if span_id not in self.fresh]
        self._groups.touched.clear()  # fresh ones are brought up when they are followed
        for span_id in touched:
            self._bring_up(span_id, known)
        self._read_at_s = now_s

    def let_go(self, span_id: str) -> None:
        """Forget a span that is done. A group of it that changes brings it back."""
        del self.followed[span_id]
        self.changed.pop(span_id, None)
        self._groups.spans.pop(span_id, None)

    def _follow(self, span_id: str, span: Span) -> Followed:
        followed = self.followed[span_id] = Followed(span_id, span)
        try:
            parent: Any = span.parent
            followed.parent = parent.id if parent else None
            ids: list[Any] = [span_id, followed.parent or ""]
            if not all(isinstance(one, str) for one in ids):  # a user may have made them
                raise TypeError(span_id)
            if span_id not in self._groups.spans:  # nothing of it is alive, or it was let go before
                for group in islice(span.traverse_groups(), MAX_GROUPS_RECALLED):
                    followed.tree.add(0, 0, group.start, group.stop, group.states["erred"] > 0)
        except Exception:  # noqa: BLE001  # experimental: another Dask may have made it otherwise
            followed.broken = True
            self._lost["spans"] += 1
        return followed

    def _bring_up(self, span_id: str, known: dict[str, Span]) -> None:
        progress = self._groups.spans.get(span_id)
        node = self._find(span_id, known)
        if progress is None or node is None:
            return
        more_open = progress.n_open - node.own_open
        node.own_open = progress.n_open
        while node is not None:
            was_open = node.tree.n_open
            node.tree.add(0, more_open, progress.start_s, progress.stop_s, progress.erred)
            if was_open and not node.tree.n_open:
                node.open_at_s = self._read_at_s
            self.changed[node.id] = node
            node = self._find(node.parent, known)

    def _find(self, span_id: str | None, known: dict[str, Span]) -> Followed | None:
        """A span that is followed, or is again from now on."""
        if span_id is None or span_id in self.followed:
            return None if span_id is None else self.followed[span_id]
        span = self.fresh.pop(span_id, None) or known.get(span_id)
        if span is None:
            return None
        self._groups.touched[span_id] = None
        return self._follow(span_id, span)

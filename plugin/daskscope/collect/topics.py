"""Topics of Dask's events: read by count, never subscribed to.

Dask keeps the last 1,000 messages of each topic, and a counter of all. While a watch runs, the topics that it reads
have longer deques (see `history`), which are cut back to Dask's own length once they are read: whoever logs waits for
nothing of ours but the sizing of the message. Dask 2024.7.0 moved topics into a broker; before, they were two dicts on
the scheduler.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from daskscope.agent import TOPIC as AGENT_TOPIC
from daskscope.collect.history import HISTORY, Excess, History

if TYPE_CHECKING:
    from distributed import Scheduler

SIZE_S = 5e-6
"""CPU time that is charged for the sizing of a message: as measured once."""


@dataclass(slots=True)
class Place:
    """How far one reader has come in one topic."""

    topic: Any
    """Nearly always a text; Dask takes whatever can be a key of a dict."""
    n_read: int
    """Messages of the topic, of all there ever were, that need no more reading."""
    n_missed: int = 0
    """Of these, those that Dask had dropped before they were read."""


class Topics:
    """The topics of one scheduler; all readers of a watch share one of these."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler: Any = scheduler
        self._places: dict[Any, list[Place]] = {}
        self._every = self._started = False
        self._own_factory: Any = None
        self._excess = Excess()

    @property
    def excess_bytes(self) -> int:
        """Of messages that are kept beyond Dask's own memories, roughly."""
        return self._excess.n_bytes

    @property
    def charged_s(self) -> float:
        """CPU time while somebody logs, a running total: an estimate."""
        return SIZE_S * self._excess.n_sized

    def follow(self, topic: Any, *, from_start: bool = False) -> Place:
        """A place in a topic: before what Dask still has of it; or at its very start, so that what overflowed counts as
        missed."""
        count, messages = self._find(topic) or (0, deque[Any]())
        # Before 2024.7.0 a worker that comes again finds its topic empty, and the counter where it was.
        overflowed = len(messages) == messages.maxlen
        place = Place(topic, 0 if from_start and overflowed else count - len(messages))
        self._places.setdefault(topic, []).append(place)
        if self._started:
            self._lengthen(topic)
        return place

    def leave(self, place: Place) -> None:
        """Follow it no longer."""
        others = [other for other in self._places.get(place.topic, ()) if other is not place]
        self._places[place.topic] = others
        if not others:
            del self._places[place.topic]

    def follow_every(self) -> None:
        """Keep more of each topic there will be; called before `start`."""
        self._every = True

    def names(self) -> list[Any]:
        """Every topic that there is, but for our own: its memory is another (see `mailbox`)."""
        return [name for name in self._known() if name != AGENT_TOPIC]

    def read(self, place: Place) -> Iterator[tuple[float, Any]]:
        """Time (epoch seconds of the scheduler) and message, oldest first, of what is new; whoever stops taking goes on
        there the next time."""
        count, messages = self._find(place.topic) or (place.n_read, ())
        oldest = count - len(messages)
        if place.n_read > count:  # begun anew: none of ours is in it
            place.n_read = oldest
        if place.n_read == count:
            return
        missed = max(oldest - place.n_read, 0)
        place.n_missed += missed
        place.n_read += missed
        for at_s, message in islice(messages, place.n_read - oldest, None):
            place.n_read += 1
            yield at_s, message

    def skip(self, place: Place) -> int:
        """Leave what is new unread; returns how much that was."""
        n_unread = self.n_unread(place)
        place.n_read += n_unread
        return n_unread

    def unread(self, places: Iterable[Place]) -> list[Place]:
        """Those with something new, in their order. Dask keeps a topic for each worker and client there ever was: this
        costs little for each."""
        known = self._known()
        if getattr(self._scheduler, "_broker", None) is not None:
            return [p for p in places if (topic := known.get(p.topic)) is not None and topic.count != p.n_read]
        counts = self._scheduler.event_counts
        return [p for p in places if p.topic in known and counts.get(p.topic, 0) != p.n_read]

    def is_read(self, place: Place) -> bool:
        """Whether nothing new is in the topic."""
        count, _ = self._find(place.topic) or (place.n_read, ())
        return place.n_read >= count

    def n_unread(self, place: Place) -> int:
        """How many messages of the topic are still to be read, or were dropped unread."""
        count, _ = self._find(place.topic) or (place.n_read, ())
        return max(count - place.n_read, 0)

    def latest(self, topic: Any) -> Iterator[tuple[float, Any]]:
        """What Dask still has of a topic, youngest first, read or not."""
        _, messages = self._find(topic) or (0, ())
        return reversed(messages)

    def start(self) -> None:
        """Keep more of what is followed, from now on."""
        self._started = True
        if self._every:
            self._own_factory = self._known().default_factory
            self._known().default_factory = self._longer_factory()
        for topic in self.names() if self._every else self._places:
            self._lengthen(topic)

    def forget(self) -> None:
        """Let topics be as short as Dask has them, but for what has not been read yet."""
        own = self._own_length()
        if not self._started or own is None:
            return
        known = self._known()
        n_bytes = 0
        for topic in self.names() if self._every else self._places:
            found = known.get(topic, ())
            if len(getattr(found, "events", found)) <= own:  # most of them, and there may be thousands
                continue
            count, messages = self._find(topic) or (0, deque[Any]())
            if isinstance(messages, History):
                unread = max((count - place.n_read for place in self._places.get(topic, ())), default=0)
                for _ in range(len(messages) - max(own, unread)):
                    messages.popleft()
                n_bytes += messages.excess_bytes()
        self._excess.n_bytes = n_bytes

    def close(self) -> None:
        """Put Dask's own lengths back."""
        if not self._started:
            return
        self._started = False
        own = self._own_length()
        if self._own_factory is not None:
            self._known().default_factory, self._own_factory = self._own_factory, None
        for topic in self.names():
            _, messages = self._find(topic) or (0, deque[Any]())
            if own is not None and isinstance(messages, History):
                self._put(topic, deque(messages, own))

    def _known(self) -> defaultdict[Any, Any]:
        broker = getattr(self._scheduler, "_broker", None)
        return self._scheduler.events if broker is None else broker._topics

    def _find(self, topic: Any) -> tuple[int, Any] | None:
        """Messages ever and messages kept; None for a topic that is not there."""
        found: Any = self._known().get(topic)
        if found is None:
            return None
        if isinstance(found, deque):
            return self._scheduler.event_counts.get(topic, 0), found
        return found.count, found.events

    def _put(self, topic: Any, messages: deque[Any]) -> None:
        found: Any = self._known()[topic]
        if isinstance(found, deque):
            self._known()[topic] = messages
        else:
            found.events = messages

    def _lengthen(self, topic: Any) -> None:
        own = self._own_length()
        if own is None or own >= HISTORY:
            return
        # A topic that nobody has used yet is made, for its first interval may be its busiest.
        messages: Any = self._known()[topic]
        messages = messages if isinstance(messages, deque) else messages.events
        if messages.maxlen == own:
            self._put(topic, History(messages, own, self._excess))

    def _own_length(self) -> int | None:
        """Dask's own length of a topic; None if it keeps all, or if nothing tells."""
        factory: Any = self._own_factory or self._known().default_factory
        arguments: Any = getattr(factory, "keywords", {})
        return arguments.get("maxlen")

    def _longer_factory(self) -> Any:
        own = self._own_length()
        if own is None or own >= HISTORY:
            return self._own_factory

        def make() -> Any:
            found = self._own_factory()
            if isinstance(found, deque):
                return History((), own, self._excess)
            found.events = History((), own, self._excess)
            return found

        return make

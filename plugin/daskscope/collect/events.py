"""Events: workers that came and went, and the topics that settings allow.

Of the topic `all` only workers' coming and going is told, as counts, unless settings name it or all topics; and never
`run-function`, which carries pickled user code. What Dask logs in two topics is told of one. What does not fit into one
message stays in Dask's own memory until the next (see `topics`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

from daskscope import wire
from daskscope.agent import TOPIC as AGENT_TOPIC
from daskscope.collect.failures import TOPICS as FAILURE_TOPICS
from daskscope.collect.history import HISTORY, MAX_BYTES
from daskscope.collect.payloads import as_json, as_name
from daskscope.collect.topics import Place, Topics

MAX_CHARACTERS = 512 << 10
"""So many characters of detail go into one message, each event counting for ENVELOPE more, and texts that are not ASCII
three times; the rest waits. A server takes 768 kB, compressed: what can hardly be compressed fits beside log lines."""
ENVELOPE = 64
MAX_READ_S, N_BETWEEN_LOOKS = 0.006, 4
"""CPU time of one read, looked at after so many events: a small event takes 10 us, and a nested one nearly 1 ms."""

_CAME_AND_WENT = ("add-worker", "remove-worker")
_PLAIN_OF_FAILURES = ("action", "worker", "key", "start", "finish", "state")
"""What is told of Dask's failures where texts, tracebacks and stories are not to be sent."""


class EventReader:
    """Reads what was logged since it last looked."""

    def __init__(
        self,
        topics: Topics,
        allowed: Iterable[str],
        *,
        exceptions: bool = True,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        """`exceptions`: whether texts and tracebacks may be told; `cpu`: seconds that this thread has computed."""
        self._topics, self._exceptions, self._cpu = topics, exceptions, cpu
        allowed = frozenset(allowed) - {AGENT_TOPIC}
        self._every = "*" in allowed
        self._whole_all = self._every or "all" in allowed
        self._places: dict[Any, Place] = {}
        names = ["all", *sorted(allowed - {"all", "*"})] if allowed else []
        for name in [*names, *topics.names()] if self._every else names:
            self._follow(name)
        if self._every:
            topics.follow_every()
        self._elsewhere: dict[Any, set[int]] = {}
        """During a read: messages of clients' topics, by identity; `all` has the same ones."""
        self.n_events = 0
        self._n_missed = self._n_unreadable = 0
        self.behind = False
        """Whether the last read left events for the next."""

    @property
    def waiting(self) -> Counter[str]:
        """What the last read left for the next: `events`, counted as those of `lost` are."""
        places = (place for name, place in self._places.items() if name != "all" or self._whole_all)
        return Counter({"events": sum(map(self._topics.n_unread, places))})

    @property
    def lost(self) -> Counter[str]:
        """`events` that Dask had dropped before they could be read, and `unreadable-events`."""
        places = self._places.items()
        missed = sum(place.n_missed for name, place in places if name != "all" or self._whole_all)
        return Counter({"events": self._n_missed + missed, "unreadable-events": self._n_unreadable})

    def is_pressing(self) -> bool:
        """Whether so much waits that it is to be read soon, before Dask drops any of it."""
        if self._every:
            self._follow_all()
        n_unread = sum(map(self._topics.n_unread, self._places.values()))
        return n_unread >= HISTORY // 2 or self._topics.excess_bytes >= MAX_BYTES // 2

    def skip(self) -> None:
        """Leave unread what is new; it counts as lost."""
        if self._every:
            self._follow_all()
        for place in self._topics.unread(self._places.values()):
            n_skipped = self._topics.skip(place)
            self._n_missed += n_skipped if place.topic != "all" or self._whole_all else 0
        self.behind = False

    def read(self) -> list[wire.Event]:
        """New events, oldest first within each topic, as many as fit; the first time, what Dask still has."""
        if self._every:
            self._follow_all()
        events: list[wire.Event] = []
        self._elsewhere.clear()
        self.behind = False
        room, until_s = MAX_CHARACTERS, self._cpu() + MAX_READ_S
        for place in self._topics.unread(self._places.values()):
            if room > 0:
                room = self._take(place, events, room, until_s)
            if not self._topics.is_read(place):
                self.behind = True
                self._places[place.topic] = self._places.pop(place.topic)  # the next read begins with another
                break
        return events

    def _take(self, place: Place, events: list[wire.Event], room: int, until_s: float) -> int:
        """Add what is new in one topic; how much room is left: none once it is late."""
        for n, (at_s, message) in enumerate(self._topics.read(place), 1):
            event = self._guarded(place.topic, at_s, message)
            if event is not None:
                events.append(event)
                room -= ENVELOPE + len(event.detail) * (1 if event.detail.isascii() else 3)
            if n % N_BETWEEN_LOOKS == 0 and self._cpu() >= until_s:
                room = 0
            if room <= 0:
                break
        return room

    def _follow(self, name: Any, *, from_start: bool = False) -> None:
        if name not in self._places:
            self._places[name] = self._topics.follow(name, from_start=from_start)

    def _follow_all(self) -> None:
        """Follow topics that are new, and let go of those that Dask has forgotten."""
        names = self._topics.names()
        for name in names:
            if name not in self._places:
                self._follow(name, from_start=True)
        for name in self._places.keys() - names:
            place = self._places.pop(name)
            self._topics.leave(place)
            self._n_missed += place.n_missed

    def _guarded(self, topic: Any, at_s: float, message: Any) -> wire.Event | None:
        try:
            return self._event(topic, at_s, message)
        except Exception:  # noqa: BLE001  # whatever somebody logged: that one is left out
            self._n_unreadable += 1
            return None

    def _event(self, topic: Any, at_s: float, message: Any) -> wire.Event | None:
        fields: Mapping[Any, Any] = message if isinstance(message, Mapping) else {"message": message}
        action = fields.get("action", "")
        if action == "run-function" or (topic == "all" and not self._whole_all and action not in _CAME_AND_WENT):
            return None
        if self._is_told_elsewhere(topic, fields, action):
            return None
        if topic in FAILURE_TOPICS and not self._exceptions:
            fields = {key: fields[key] for key in _PLAIN_OF_FAILURES if key in fields}
        if topic == "all":
            fields = _counts(fields)
        rest = {key: value for key, value in fields.items() if key not in ("action", "worker")}
        worker = fields.get("worker")
        event = wire.Event(
            no=self.n_events,
            at_ms=round(at_s * 1e3),
            topic=as_name(topic),
            action=as_name(action),
            worker=as_name(worker) if isinstance(worker, str) else None,
            detail=as_json(rest) if rest else "",
        )
        self.n_events += 1
        return event

    def _is_told_elsewhere(self, topic: Any, fields: Mapping[Any, Any], action: Any) -> bool:
        """`all` has a client's own messages too; and a worker's topic those of `all` on its coming and going."""
        if topic != "all":
            return action in _CAME_AND_WENT and isinstance(topic, str) and "://" in topic and "worker" not in fields
        client = fields.get("client")
        if not isinstance(client, str) or client not in self._places:
            return False
        if client not in self._elsewhere:
            self._elsewhere[client] = {id(message) for _, message in self._topics.latest(client)}
        return id(fields) in self._elsewhere[client]


def _counts(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """The message without the names of tasks: how many there were."""
    lists = {key: len(value) for key, value in fields.items() if isinstance(value, (list, tuple, Set, Mapping))}
    texts = {key: value for key, value in fields.items() if isinstance(value, (str, int, float, bool))}
    return {**texts, **lists}

"""The memory of the topic in which agents talk, in place of Dask's own of 1,000 messages.

It is bounded in messages and in size, because a thousand workers may all have something to say, and a pace may be an
hour. Dask 2024.7.0 moved topics into a broker; before, they were a dict of deques on the scheduler.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from daskscope.agent import TOPIC

if TYPE_CHECKING:
    from distributed import Scheduler

MAX_MESSAGES = 20_000
MAX_BYTES = 16 << 20
"""Of text, roughly; beyond either the oldest give way."""
GIVE_WAY = "logs", "profile", "hello"
"""Kinds of payload, in the order in which they give way: a storm of lines is not to cost what comes once."""


class Mailbox:
    """What Dask appends events to, as (time, payload), in place of a deque; more of one it does not ask for.

    What is not kept is counted in `lost`, by reason.
    """

    def __init__(self, lost: Counter[str]) -> None:
        self.lost = lost
        self._kinds: dict[str, deque[tuple[Any, int]]] = {kind: deque() for kind in GIVE_WAY}
        """Events with their sizes."""
        self._n_messages = self.n_bytes = self.n_ever = 0
        """Of what is kept; and messages that ever came."""
        self._before: Any = None
        self._is_read = True

    def open(self, scheduler: Scheduler) -> None:
        self._before = _exchange(scheduler, self)
        for event in self._before:
            self.append(event)

    def close(self, scheduler: Scheduler) -> None:
        """Leave the topic as Dask had it, unless somebody put another memory in place of ours."""
        if self._before is not None:
            self._before.clear()
            theirs = _exchange(scheduler, self._before)
            if theirs is not self:
                _exchange(scheduler, theirs)

    def let_go(self) -> None:
        """Hold nothing any more: nobody will read it. What was held and what comes is counted."""
        self._is_read = False
        while len(self):
            self.lost.update(_told(self._take(GIVE_WAY)))

    def append(self, event: Any) -> None:
        """Called by Dask in the middle of its own work, so it never raises."""
        self.n_ever += 1
        try:
            size = _size(event[1])
            if not self._is_read:
                self.lost.update(_told(event[1]))
                return
            self._kinds[event[1]["kind"]].append((event, size))
            self._n_messages += 1
            self.n_bytes += size
            while self._n_messages > MAX_MESSAGES or self.n_bytes > MAX_BYTES:
                self.lost.update(_told(self._take(GIVE_WAY)))
        except Exception:  # noqa: BLE001  # anybody may write into a topic
            self.lost["unreadable-agent-messages"] += 1

    def take(self) -> Mapping[str, Any]:
        """The oldest payload of those that give way last; it is let go. Raises IndexError if there is none."""
        return self._take(GIVE_WAY[::-1])

    def _take(self, order: tuple[str, ...]) -> Mapping[str, Any]:
        messages = next((self._kinds[kind] for kind in order if self._kinds[kind]), self._kinds[order[0]])
        event, size = messages.popleft()
        self._n_messages -= 1
        self.n_bytes -= size
        return event[1]

    def clear(self) -> None:
        for messages in self._kinds.values():
            messages.clear()
        self._n_messages = self.n_bytes = 0

    def __len__(self) -> int:
        return self._n_messages

    def __iter__(self) -> Iterator[Any]:
        """In the order of time, as Dask hands them to those who ask."""
        events = [event for messages in self._kinds.values() for event, _ in messages]
        return iter(sorted(events, key=itemgetter(0)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Leaves the scheduler as the deque it stands for."""
        return deque, (list(self),)


def _exchange(scheduler: Scheduler, messages: Any) -> Any:
    old: Any = scheduler
    broker: Any = getattr(scheduler, "_broker", None)
    if broker is not None:
        topic = broker._topics[TOPIC]
        before, topic.events = topic.events, messages
    else:
        before, old.events[TOPIC] = old.events[TOPIC], messages
    return before


def _size(payload: Mapping[str, Any]) -> int:
    """Raises for what is no payload of an agent."""
    if payload["kind"] == "logs":
        return 200 + sum(100 + len(line[3]) for line in payload["lines"])
    if payload["kind"] == "profile":
        n_numbers = sum(len(stack) for stack in payload["stack"])
        return 200 + sum(map(len, payload["frames"])) + sum(map(len, payload["prefix"])) + 8 * n_numbers
    if payload["kind"] == "hello":
        return 1_000
    raise ValueError(payload["kind"])


def _told(payload: Mapping[str, Any]) -> dict[str, int]:
    """What is lost with a payload."""
    if payload["kind"] == "logs":
        n_dropped = payload.get("dropped", 0) + sum(line[4] for line in payload["lines"])
        return {"log-lines": len(payload["lines"]) + n_dropped}
    return {"profiles" if payload["kind"] == "profile" else "agent-messages": 1}

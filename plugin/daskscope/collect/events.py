"""Events: workers that came and went, and the topics that settings allow.

Topics are read by count, never subscribed to: Dask keeps the last 1,000 messages of each, and its counter tells how
many were missed. Of the topic `all` only workers' coming and going is taken, as counts: its `run-function` messages
carry pickled user code. Dask 2024.7.0 moved topics into a broker; before, they were two dicts on the scheduler.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import islice
from typing import TYPE_CHECKING, Any

from daskscope import wire

if TYPE_CHECKING:
    from distributed import Scheduler

MAX_DETAIL = 4_096
"""Characters of one event's JSON; a longer one is cut and says so."""
MAX_ITEMS = 50
MAX_DEPTH = 5

_WORKERS_CAME_AND_WENT = frozenset({"add-worker", "remove-worker"})


class EventReader:
    """Reads what was logged since it last looked."""

    def __init__(self, scheduler: Scheduler, allowed: Iterable[str]) -> None:
        self._scheduler = scheduler
        self._allowed = frozenset(allowed) - {"all"}
        self._seen: dict[str, int] = {}
        self._read_before = False
        self.n_events = 0
        self.lost = 0

    def read(self) -> list[wire.Event]:
        """New events, oldest first within each topic; the first time, all that Dask still has."""
        events: list[wire.Event] = []
        first_time, seen = not self._read_before, self._seen
        self._read_before, self._seen = True, {}
        for topic, count, messages in self._topics():
            # What Dask had dropped before the watch began is not the watch's loss.
            before = count - len(messages) if first_time else seen.get(topic, 0)
            fresh = count - before if count >= before else count
            self._seen[topic] = count
            kept = min(fresh, len(messages))
            self.lost += fresh - kept if topic != "all" else 0
            for at_s, message in islice(messages, len(messages) - kept, None):
                event = self._event(topic, at_s, message)
                if event is not None:
                    events.append(event)
        return events

    def _topics(self) -> Iterator[tuple[str, int, Any]]:
        """Name, messages ever and messages kept of each topic to read: every worker and client has one of its own, so
        unless all are wanted, they are looked up by name."""
        old: Any = self._scheduler
        broker: Any = getattr(self._scheduler, "_broker", None)
        known: Any = old.events if broker is None else broker._topics
        for name in list(known) if "*" in self._allowed else [n for n in ("all", *self._allowed) if n in known]:
            if broker is None:
                yield name, old.event_counts[name], known[name]
            else:
                yield name, known[name].count, known[name].events

    def _event(self, topic: str, at_s: float, message: Any) -> wire.Event | None:
        fields: Mapping[Any, Any] = message if isinstance(message, Mapping) else {"message": message}
        action = _name(fields.get("action", ""))
        if topic == "all":
            if action not in _WORKERS_CAME_AND_WENT:
                return None
            fields = _counts(fields)
        elif action == "run-function":
            return None
        rest = {key: value for key, value in fields.items() if key not in ("action", "worker")}
        worker = fields.get("worker")
        self.n_events += 1
        return wire.Event(
            no=self.n_events - 1,
            at_ms=round(at_s * 1e3),
            topic=topic,
            action=action,
            worker=worker if isinstance(worker, str) else None,
            detail=_json(rest) if rest else "",
        )


def _counts(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """The message without the names of tasks: how many there were."""
    lists = {key: len(value) for key, value in fields.items() if isinstance(value, (list, tuple, Set, Mapping))}
    plain = {key: value for key, value in fields.items() if isinstance(value, (str, int, float, bool))}
    return {**plain, **lists}


def _json(value: object) -> str:
    text = json.dumps(_plain(value, 0), ensure_ascii=False)
    if len(text) <= MAX_DETAIL:
        return text
    return json.dumps({"cut_characters": len(text) - MAX_DETAIL, "start": text[:MAX_DETAIL]}, ensure_ascii=False)


def _plain(value: object, depth: int) -> Any:
    """JSON types only. Of anything else the type's name is taken and never its `repr`, which is the user's code."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < 64 else f"<an integer of {value.bit_length()} bits>"
    if isinstance(value, float):
        return value if value - value == 0 else str(value)  # JSON has no infinity and no NaN
    if depth >= MAX_DEPTH:
        return "..."
    if isinstance(value, Mapping):
        pairs = {_name(key): _plain(item, depth + 1) for key, item in islice(value.items(), MAX_ITEMS)}
        return pairs if len(value) <= MAX_ITEMS else {**pairs, "...": f"{len(value) - MAX_ITEMS} more"}
    if isinstance(value, (list, tuple, Set)):
        items = [_plain(item, depth + 1) for item in islice(value, MAX_ITEMS)]
        return items if len(value) <= MAX_ITEMS else [*items, f"... {len(value) - MAX_ITEMS} more"]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"<{len(value)} bytes>"
    return f"<{type(value).__qualname__}>"


def _name(value: object) -> str:
    """A text for what may be a key or an action: tuples are keys of tasks."""
    return value if isinstance(value, str) else str(_plain(value, MAX_DEPTH - 2))

"""Dask's own failures, out of the topics in which workers and scheduler report them.

They are told as exceptions whatever `events.allow` says. `invalid-worker-task-state` was called
`invalid-worker-task-states` and `invalid-task-states` before 2022.6.0; the other names are the same since 2024.1.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dask.utils import key_split

from daskscope.collect.payloads import as_json, as_key, as_name, as_text, exception_type
from daskscope.collect.topics import Topics

TOPICS = (
    "worker-fail-hard",
    "invalid-worker-transition",
    "invalid-worker-task-state",
    "invalid-worker-task-states",
    "invalid-task-states",
    "transition-counter-max-exceeded",
    "transitions",
)
MAX_FAILURES = 1_000
"""So many are looked at in one read; further ones wait for the next."""
MAX_STORY = 50
"""Lines of the story that Dask tells of a task."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure of Dask itself."""

    at_s: float
    type: str
    """Of the exception, or what Dask calls the failure."""
    text: str
    traceback: str
    """Where there was no exception, the story of the task, a JSON text a line."""
    key: str
    prefix: str
    workers: frozenset[str]


class FailureReader:
    """Reads what was reported since it last looked."""

    def __init__(self, topics: Topics, *, transmit: bool = True) -> None:
        """Follows nothing where none are to be sent."""
        self._topics = topics
        self._places = [topics.follow(topic) for topic in TOPICS] if transmit else []
        self._n_unreadable = self._n_skipped = 0

    @property
    def waiting(self) -> Counter[str]:
        """What the last read left for the next: `exceptions`."""
        return Counter({"exceptions": sum(map(self._topics.n_unread, self._places))})

    @property
    def behind(self) -> bool:
        """Whether the last read left failures for the next."""
        return self.waiting.total() > 0

    @property
    def lost(self) -> Counter[str]:
        """`exceptions` that Dask had dropped before they could be read, and `unreadable-exceptions`."""
        missed = self._n_skipped + sum(place.n_missed for place in self._places)
        return Counter({"exceptions": missed, "unreadable-exceptions": self._n_unreadable})

    def let_go(self) -> None:
        """Leave unread what is new, for nobody will read it; it counts as lost."""
        self._n_skipped += sum(map(self._topics.skip, self._places))

    def read(self) -> list[Failure]:
        """New failures, oldest first within each topic."""
        failures: list[Failure] = []
        for place in self._places:
            for at_s, message in islice(self._topics.read(place), MAX_FAILURES - len(failures)):
                try:
                    failures.append(_failure(place.topic, at_s, message))
                except Exception:  # noqa: BLE001  # whatever stands in one: that one is left out
                    self._n_unreadable += 1
        return failures


def _failure(topic: str, at_s: float, message: Any) -> Failure:
    """Raises for a message that is none of Dask's."""
    key, worker = message.get("key"), message.get("worker")
    if "exception_text" in message:
        text, traceback = as_text(message["exception_text"]), as_text(message.get("traceback_text", ""))
        type_name = exception_type(text)
    else:
        change = [as_name(message[part]) for part in ("start", "finish", "state") if part in message]
        text, traceback = " -> ".join(change), _story(message)
        type_name = as_name(message.get("action", topic))
    return Failure(
        at_s=at_s,
        type=type_name,
        text=text,
        traceback=traceback,
        key="" if key is None else as_key(key),
        prefix="" if key is None else key_split(key),
        workers=frozenset([worker] if isinstance(worker, str) else []),
    )


def _story(message: Mapping[Any, Any]) -> str:
    """The last that happened to the task. A scheduler's own `transition_log` is of all tasks, and stays there."""
    story: Any = message.get("story", ())
    return "\n".join(as_json(line) for line in story[-MAX_STORY:])

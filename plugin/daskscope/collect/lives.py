"""When workers and clients came and went, by Dask's own events in the topic `all`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from daskscope.collect.topics import Topics

Role = Literal["worker", "client"]
Who = tuple[Role, str]
"""A role, and an address or a client's id; others may have had the same address before."""

_CAME: dict[object, Role] = {"add-worker": "worker", "add-client": "client"}
_WENT: dict[object, Role] = {"remove-worker": "worker", "remove-client": "client"}


@dataclass(slots=True)
class Moments:
    """Of one read; epoch seconds of the scheduler."""

    came: dict[Who, float] = field(default_factory=dict[Who, float])
    """Those that are there still."""
    went: dict[Who, float] = field(default_factory=dict[Who, float])
    """Those that were there before."""
    brief: list[tuple[Who, float, float]] = field(default_factory=list[tuple[Who, float, float]])
    """Those that came and went, and when."""


class Lives:
    """Reads what happened since it last looked; of those that went before, nothing is told."""

    def __init__(self, topics: Topics) -> None:
        self._topics, self._place = topics, topics.follow("all")
        self._before = self._read(Moments()).came

    def read(self) -> Moments:
        moments = Moments(came=self._before)
        self._before = {}
        return self._read(moments)

    def let_go(self) -> None:
        """Leave unread what is new: nobody will read it."""
        self._topics.skip(self._place)

    def _read(self, moments: Moments) -> Moments:
        for at_s, event in self._topics.read(self._place):
            # Users may log events of their own here.
            action = event.get("action") if isinstance(event, Mapping) else None
            if not isinstance(action, str):
                continue
            role = _CAME.get(action) or _WENT.get(action)
            name = event.get(role) if role else None
            if role is None or not isinstance(name, str):
                continue
            who = role, name
            if action in _CAME:
                moments.came[who] = at_s
            elif who in moments.came:
                moments.brief.append((who, moments.came.pop(who), at_s))
            else:
                moments.went.setdefault(who, at_s)
        return moments

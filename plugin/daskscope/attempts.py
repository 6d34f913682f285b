"""A guard around whatever is asked in somebody else's process: what raises is left out and counted.

A part that fails without end is not asked any more, and all parts together say so in the log once a minute at most.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from daskscope.agent.texts import told

QUIET_S = 60.0
OFF_AFTER = 100
"""Failures of one step in a row: then its part is not asked any more."""

logger = logging.getLogger("distributed.daskscope")
T = TypeVar("T")


class Attempts:
    """Counts failures by part; a part may have several steps, each of which is asked on its own."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._quiet_until = 0.0
        self._in_a_row: Counter[tuple[str, str]] = Counter()
        self._unsaid: list[str] = []
        """Parts that are off, which the log does not tell yet."""
        self._off: dict[str, None] = {}
        self.unreadable: Counter[str] = Counter()
        """By part, how often it failed."""

    @property
    def lost(self) -> Counter[str]:
        """`unreadable-<part>`: how often it failed, and `off-<part>`: 1 if it is not asked any more."""
        return Counter(
            {f"unreadable-{part}": count for part, count in self.unreadable.items()}
            | {f"off-{part}": 1 for part in self._off}
        )

    def is_off(self, part: str) -> bool:
        return part in self._off

    def __call__(self, part: str, otherwise: T, read: Callable[[], T], step: str = "") -> T:
        """What `read` gives; `otherwise` if it raises, or failed too often to be asked. Never raises."""
        if part in self._off:
            return otherwise
        try:
            found = read()
        except Exception as error:  # noqa: BLE001  # one part's trouble is not the others', and never the scheduler's
            self._failed(part, step, error)
            return otherwise
        if self._in_a_row:
            self._in_a_row.pop((part, step), None)
        return found

    def complain(self, part: str, error: Exception) -> None:
        """One warning a minute at most, over all parts."""
        if self._may_speak():
            warn("daskscope could not read %s, the workload goes on: %s", part, told(error))

    def speak(self) -> None:
        """Say which parts are off, once that may be said."""
        if self._unsaid and self._may_speak():
            text = "daskscope does not read %s any more: that failed %d times in a row. The workload goes on."
            warn(text, ", ".join(self._unsaid), OFF_AFTER)
            self._unsaid.clear()

    def _failed(self, part: str, step: str, error: Exception) -> None:
        self.unreadable[part] += 1
        self._in_a_row[part, step] += 1
        if self._in_a_row[part, step] >= OFF_AFTER:
            self._off[part] = None
            self._unsaid.append(part)
        self.complain(part, error)

    def _may_speak(self) -> bool:
        now_s = self._monotonic()
        if now_s < self._quiet_until:
            return False
        self._quiet_until = now_s + QUIET_S
        return True


def warn(text: str, *parts: object) -> None:
    """One line in the log. Never raises: a log handler of the user's may."""
    with contextlib.suppress(Exception):
        logger.warning(text, *parts)

"""Calls to workers and nannies: a few at a time, and who does not answer stands in nobody's way.

Two queues, each with its own bound: all are called with a short deadline first; who has not answered by then is called
once more with a long one, while others go on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from daskscope.agent.texts import told

MAX_CALLS, CALL_S = 10, 5.0
"""First calls at the same time, and how long each may take."""
MAX_LATE_CALLS, LATE_CALL_S = 5, 60.0
"""The same of second calls; who has not answered by then is let be."""
MAX_REASON = 300

T = TypeVar("T")


class Calls(Generic[T]):
    """`call(target)` may take long and may raise; `failed(target, reason)` is told in few words."""

    def __init__(self, call: Callable[[T], Coroutine[Any, Any, None]], failed: Callable[[T, str], None]) -> None:
        self._call, self._failed = call, failed
        self.waiting: deque[T] = deque()
        self.late: deque[T] = deque()
        self.running: set[asyncio.Task[None]] = set()
        self.running_late: set[asyncio.Task[None]] = set()
        self._closed = False

    def start(self) -> None:
        """Begin as many as may be. On the event loop."""
        if self._closed:
            return
        self._fill(self.waiting, self.running, MAX_CALLS, CALL_S)
        self._fill(self.late, self.running_late, MAX_LATE_CALLS, LATE_CALL_S)

    def close(self) -> None:
        """Call nobody any more, and end what is under way."""
        self._closed = True
        self.waiting.clear()
        self.late.clear()
        for task in (*self.running, *self.running_late):
            task.cancel()

    def _fill(self, waiting: deque[T], running: set[asyncio.Task[None]], n_most: int, deadline_s: float) -> None:
        for _ in range(min(n_most - len(running), len(waiting))):
            task = asyncio.get_running_loop().create_task(self._work_off(waiting, deadline_s))
            running.add(task)
            task.add_done_callback(running.discard)

    async def _work_off(self, waiting: deque[T], deadline_s: float) -> None:
        while waiting:
            target = waiting.popleft()
            with contextlib.suppress(Exception):  # a fault of ours: the others are called all the same
                await self._try(target, late=waiting is self.late, deadline_s=deadline_s)

    async def _try(self, target: T, *, late: bool, deadline_s: float) -> None:
        try:
            await asyncio.wait_for(self._call(target), deadline_s)
        except TimeoutError:
            if late:
                self._failed(target, f"no answer in {deadline_s:.0f} s")
            else:
                self.late.append(target)
                self.start()
        except Exception as error:  # noqa: BLE001  # whatever is wrong there, it is not the scheduler's trouble
            self._failed(target, _reason(error))


def _reason(error: Exception) -> str:
    """Where the other side's exception cannot be sent, Dask sends an `Exception` whose text is its repr."""
    return told(error).removeprefix("Exception: ")[:MAX_REASON]

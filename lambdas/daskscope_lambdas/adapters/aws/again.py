"""When AWS asks for patience, or shows late what was just made: the same once more, after a pause, a few times."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from daskscope_lambdas.ports import StoreError

T = TypeVar("T")

PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Between tries: short beside the time that a function has."""


class BusyError(StoreError):
    """Somebody else is changing the very same thing at this moment."""


def tries() -> Iterator[int]:
    """Numbers the tries: the first at once, each later one after its pause."""
    yield 0
    for number, pause_s in enumerate(PAUSES_S, 1):
        # Those who met once shall not meet again: each waits for another time.
        time.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311
        yield number


def until_free(act: Callable[[], T]) -> T:
    """What `act` returns, tried again while it raises BusyError. Raises the last one."""
    busy = BusyError()
    for _ in tries():
        try:
            return act()
        except BusyError as error:
            busy = error
    raise busy

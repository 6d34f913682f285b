"""How often somebody may ask who has not said who they are."""

from __future__ import annotations

import threading
from collections import deque

from daskscope.errors import DaskscopeError
from daskscope_lambdas.ports import Clock
from daskscope_lambdas.service.words import duration


class TooOftenError(DaskscopeError):
    """Asked for too often; `wait_s`: seconds until it may be asked for again."""

    def __init__(self, what: str, wait_s: float) -> None:
        super().__init__(f"{what}: try again in {duration(wait_s)}.")
        self.wait_s = wait_s


class Rates:
    """Counts within this process what came in the last `whole_s` seconds: `most` in all, and `each` of one address in
    `each_s`. Remembers no more than `most`. Safe to use from many threads."""

    def __init__(self, clock: Clock, most: int, whole_s: float, each: int, each_s: float) -> None:
        self._clock, self._most, self._whole_s, self._each, self._each_s = clock, most, whole_s, each, each_s
        self._came = deque[tuple[float, str]]()
        self._lock = threading.Lock()

    def count(self, address: str) -> None:
        """One more of `address`. Raises TooOftenError, and does not count it then."""
        now = self._clock.now()
        with self._lock:
            while self._came and self._came[0][0] <= now - self._whole_s:
                self._came.popleft()
            if len(self._came) >= self._most:
                raise TooOftenError("Too many ask this server to log in", self._came[0][0] + self._whole_s - now)
            own = [at for at, who in self._came if who == address and at > now - self._each_s]
            if len(own) >= self._each:
                raise TooOftenError(f"Too many ask to log in from {address}", own[0] + self._each_s - now)
            self._came.append((now, address))

"""Hears each log record of a process once, and changes nothing for those who log.

A handler at the root would: `logging.basicConfig()` does nothing once the root has a handler, and records that nobody
handles would no longer be printed by `logging.lastResort`. So the tap sits beside handlers that are there already,
at the last logger on a record's way that has one, and behind `lastResort` for records that find none. Because
handlers come and go, it looks where a record will end up each time one is made.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any


class Tap(logging.Handler):
    """Calls `hear` with each record from `level` on, in the thread that logs; guard and speed are `hear`'s."""

    daskscope = True
    """Known by this rather than by its class, which is another one each time it is unpickled by value."""

    def __init__(self, level: int, hear: Callable[[logging.LogRecord], None]) -> None:
        super().__init__(level)
        self._hear = hear
        self._places: set[logging.Logger] = set()
        self._factory: _Factory | None = None
        self._last: _LastResort | None = None

    def attach(self) -> None:
        self._factory = _Factory(logging.getLogRecordFactory(), self)
        logging.setLogRecordFactory(self._factory)
        if logging.lastResort is not None:
            self._last = _LastResort(logging.lastResort, self)
            logging.lastResort = self._last
        for name in list(logging.Logger.manager.loggerDict):
            self.follow(name)
        self.follow("root")

    def detach(self) -> None:
        """Puts back what was there; where somebody came after us, ours stays in the chain and does nothing."""
        if self._factory is not None:
            self._factory.tap = None
            if logging.getLogRecordFactory() is self._factory:
                logging.setLogRecordFactory(_living(self._factory.before))
        if self._last is not None:
            self._last.tap = None
            if logging.lastResort is self._last:
                logging.lastResort = _living(self._last.before)
        for place in list(self._places):
            place.removeHandler(self)
        self._places.clear()

    def follow(self, name: str) -> None:
        """Be where records of this logger end up, and nowhere else on their way: each is heard once."""
        known = logging.root if name == "root" else logging.Logger.manager.loggerDict.get(name)
        logger = known if isinstance(known, logging.Logger) else None
        way: list[logging.Logger] = []
        end = None
        while logger is not None:
            way.append(logger)
            if any(not getattr(handler, "daskscope", False) for handler in logger.handlers):
                end = logger
            logger = logger.parent if logger.propagate else None
        for place in way:
            if place is end:
                if self not in place.handlers:
                    place.addHandler(self)
                    self._places.add(place)
            elif self in place.handlers:
                place.removeHandler(self)
                self._places.discard(place)

    def handle(self, record: logging.LogRecord) -> bool:
        """Without the lock of handlers: `hear` has its own, and a record's text is the user's code."""
        with contextlib.suppress(Exception):  # whoever logs must not hear of us, and to log it would come back here
            self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        self._hear(record)


class _Factory:
    """Makes records as before, once the tap has looked where they will go."""

    daskscope = True

    def __init__(self, before: Callable[..., logging.LogRecord], tap: Tap) -> None:
        self.before = before
        self.tap: Tap | None = tap

    def __call__(self, name: Any, level: Any, *args: Any, **kwargs: Any) -> logging.LogRecord:
        tap = self.tap
        if tap is not None and isinstance(name, str) and isinstance(level, int) and level >= tap.level:
            with contextlib.suppress(Exception):  # whoever logs must not hear of us, and to log it would come back here
                tap.follow(name)
        return self.before(name, level, *args, **kwargs)


class _LastResort(logging.Handler):
    """Stands before `logging.lastResort`, which gets what it would have got."""

    daskscope = True

    def __init__(self, before: Any, tap: Tap) -> None:
        super().__init__(min(before.level, tap.level))
        self.before = before
        self.tap: Tap | None = tap

    def handle(self, record: logging.LogRecord) -> bool:
        tap = self.tap
        if tap is not None and record.levelno >= tap.level:
            tap.handle(record)
        return bool(record.levelno >= self.before.level and self.before.handle(record))


def _living(before: Any) -> Any:
    """What stands behind those of ours that were left in the chain."""
    while getattr(before, "daskscope", False) and before.tap is None:
        before = before.before
    return before

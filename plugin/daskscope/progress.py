"""How far a long answer or a large file is, for somebody who waits: on stderr, on a terminal or in a notebook alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

AFTER_S, EVERY_S = 1.0, 0.1
"""What is over by then says nothing; and so often it says more."""


class Progress:
    """Of one list, or of one file. What it wrote is wiped out on leaving; `shown` None asks the stream whether somebody
    looks at it."""

    def __init__(
        self,
        limit: int | None = None,
        what: str = "records",
        number: Callable[[int], str] = "{:,}".format,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        shown: bool | None = None,
    ) -> None:
        self._stream = stream or sys.stderr
        self._shown = is_watched(self._stream) if shown is None else shown
        self._limit, self._clock, self._next_at = limit, clock, clock() + AFTER_S
        self._what, self._number = what, number
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._width:
            self._write("")
            self._write("", end="\r")

    def told(self, n: int, total: int | None) -> None:
        """So many are here (or there), of so many in all where that is known."""
        if not self._shown or (now_s := self._clock()) < self._next_at:
            return
        self._next_at = now_s + EVERY_S
        most = min((known for known in (total, self._limit) if known is not None), default=None)
        of_all = "" if most is None else f" of {self._number(max(n, most))}"
        self._write(f"{self._number(n)}{of_all} {self._what}")

    def _write(self, text: str, end: str = "") -> None:
        """In place of what stands there; by blanks, for a notebook knows no escape that clears a line."""
        self._stream.write(f"\r{text.ljust(self._width)}{end}")
        self._stream.flush()
        self._width = max(self._width, len(text))


def is_watched(stream: TextIO) -> bool:
    """Whether somebody sees what is written there, and sees it go: a terminal, or a notebook's output."""
    return stream.isatty() or type(stream).__module__.partition(".")[0] == "ipykernel"

"""The user's own patterns, kept from standing still: a pattern of theirs runs where their scheduler runs.

Python's engine holds the interpreter while it matches and cannot be interrupted. So a pattern that could take for ever
is refused where it is set (`check`); it sees WINDOW characters of a line at a time; and when all of them together took
MOST_CPU_S for one message, the lines that they have not seen are masked whole.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import Any

from daskscope.privacy.values import MASK, replaced

WINDOW, STEP = 128, 64
"""A line is looked at in windows that overlap by half: a match of up to 64 characters is always seen whole, and one
that reaches the end of its window goes on to the next blank."""
MOST_CPU_S = 0.1
MOST_STEPS = 1.25 * WINDOW**3
"""Steps that the engine may take on one window, for all patterns together: some milliseconds, in which no other thread
of the process runs. One pattern with two repeats without an end takes WINDOW**3."""

_TO_BLANK = re.compile(r"\S*+")
_MARKS = re.compile(re.escape(MASK))


def check(*patterns: str) -> None:
    """Raises ValueError, with what to change, for patterns that could take long on a window, all together."""
    if sum(map(_steps, patterns)) > MOST_STEPS:
        raise ValueError("two repeats without an end (*, +) in one pattern, one in each of some: write {0,9}")


def _steps(pattern: str) -> float:
    """A bound: in so many ways from each place where it may begin, and those are fewer if it begins with letters."""
    parser: Any = re._parser  # type: ignore[attr-defined]
    tree = parser.parse(pattern)
    n_letters = len(list(takewhile(lambda part: str(part[0]) == "LITERAL", tree)))
    return _ways(tree) * (WINDOW // max(n_letters, 1))


def _ways(tree: Any, *, repeated: bool = False) -> float:
    """A bound of the ways in which one place may match. Raises ValueError for a choice within a repeat."""
    ways = 1.0
    for operation, argument in tree:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = argument
            n_inner = _ways(inner, repeated=repeated or most > 1)
            n_choices = min(most, WINDOW) - min(least, WINDOW) + 1
            if repeated and n_choices > 1:
                raise ValueError("no repeat, and no choice of lengths, within a repeat")
            ways *= n_inner * (1 if name == "POSSESSIVE_REPEAT" else n_choices)
        elif name == "BRANCH":
            if repeated:
                raise ValueError("no alternatives within a repeat")
            ways *= sum(_ways(branch, repeated=repeated) for branch in argument[1])
        elif name == "SUBPATTERN":
            ways *= _ways(argument[3], repeated=repeated)
        elif name == "ATOMIC_GROUP":
            ways *= _ways(argument, repeated=repeated)
        elif name in ("ASSERT", "ASSERT_NOT"):
            ways *= _ways(argument[1], repeated=repeated)
        elif name == "GROUPREF_EXISTS":
            _, one, other = argument
            ways *= _ways(one, repeated=repeated) + (_ways(other, repeated=repeated) if other else 1)
    return ways


class OwnPatterns:
    """Masks what matches any of them."""

    def __init__(self, patterns: Iterable[str], cpu: Callable[[], float] = time.thread_time) -> None:
        """`cpu`: seconds that this thread has computed so far."""
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._cpu = cpu
        self._spent_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def refresh(self) -> None:
        """A new message: they may take their time again."""
        self._spent_s = 0.0

    def mask(self, text: str) -> str:
        """`text` with what matches masked, line by line; with whole lines masked once the time is over."""
        return "".join(self._line(line) for line in text.splitlines(keepends=True)) if self._patterns else text

    def _line(self, line: str) -> str:
        content = line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
        if not content or content == MASK:
            return line
        spans: list[tuple[int, int]] = []
        for start in range(0, max(len(content) - STEP, 1), STEP):
            if self._spent_s >= MOST_CPU_S:
                return MASK + line[len(content) :]
            began_s = self._cpu()
            spans += self._found(content, start)
            self._spent_s += self._cpu() - began_s
        if not spans:
            return line
        # What touches a mask becomes one with it: a pattern that matches the mask's own letters changes nothing.
        spans += [mark.span() for mark in _MARKS.finditer(content)]
        return replaced(content, spans) + line[len(content) :]

    def _found(self, content: str, start: int) -> Iterator[tuple[int, int]]:
        for pattern in self._patterns:
            for found in pattern.finditer(content, start, start + WINDOW):
                if found.end() == start + WINDOW and (rest := _TO_BLANK.match(content, found.end())):
                    yield found.start(), rest.end()
                elif found.end() > found.start():
                    yield found.span()

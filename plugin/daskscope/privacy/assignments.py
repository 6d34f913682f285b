"""Finds the names of secrets in a text, and has what stands beside each looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator

from daskscope.privacy.names import Names, Sign
from daskscope.privacy.pairs import Pair, in_list
from daskscope.privacy.values import MASK, Span

MAX_NAME = 80
MAX_PAIRS = 2_000
"""Of one text: what follows so many names of secrets is masked whole, for it is not looked at."""
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_KIND_OF_KEY = re.compile(r"(api|access|secret|private|account|encryption|signing|auth|shared) \Z", re.IGNORECASE)


class Assignments:
    """Knows the names; one per scrubber."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def spans(self, text: str, lowered: str) -> Iterator[Span]:
        """Where secrets stand in `text` that have a name beside them; they may overlap. `lowered` is as long as it."""
        end = n_pairs = 0
        for start, stop in self._places(text, lowered):
            if start < end or text[max(start - 1, 0) : stop + 1] == MASK:
                continue  # within a value that is masked
            name = text[start:stop]
            sign = self._names.sign(_with_kind(text, start, name))
            if sign is not None:
                n_pairs += 1
                if n_pairs > MAX_PAIRS:
                    yield start, len(text)
                    return
                found = Pair(self._names, text, start, stop, sign).spans()
                if sign is Sign.MAYBE and not (found := list(found)):
                    found = in_list(self._names, text, name, stop, sign)
            elif (sign := self._names.sign_of_items(name)) in (Sign.SECRET, Sign.OWN):
                found = in_list(self._names, text, name, stop, sign)
            else:
                continue
            for span in found:
                end = max(end, span[1])
                yield span

    def _places(self, text: str, lowered: str) -> Iterator[Span]:
        """Where names begin and end that have a core in them, in order."""
        hits = [place for core in self._names.cores if core in lowered for place in _all(lowered, core)]
        stop = 0
        for hit in sorted(hits):
            if hit < stop:
                continue
            start, stop = hit, hit
            while start > 0 and hit - start < MAX_NAME and text[start - 1] in _NAME:
                start -= 1
            while stop < len(text) and stop - hit < MAX_NAME and text[stop] in _NAME:
                stop += 1
            yield start, stop


def _all(text: str, part: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def _with_kind(text: str, start: int, name: str) -> str:
    """`api key` for `key`, where that stands before it."""
    kind = _KIND_OF_KEY.search(text, max(start - 12, 0), start) if name.lower() == "key" else None
    return f"{kind[1]}_{name}" if kind else name

"""Words that are known to be no part of a secret: most of what is logged was logged before."""

from __future__ import annotations

from collections.abc import Callable

MAX_WORDS, MAX_LENGTH = 8_192, 64


class Words:
    """Remembers words, parted by blanks, of which none is a sign of a secret; bounded."""

    def __init__(self, is_suspect: Callable[[str], bool]) -> None:
        """`is_suspect` tells it of some words, a blank before each."""
        self._is_suspect = is_suspect
        self._known: set[str] = set()

    def are_clean(self, text: str) -> bool:
        """Whether no word of `text` is a sign of a secret; every secret has one that is."""
        words = text.split()
        if self._known.issuperset(words):
            return True
        new = set(words) - self._known
        if self._is_suspect(" " + " ".join(new)):
            return False
        if len(self._known) + len(new) > MAX_WORDS:
            self._known.clear()
        if len(new) <= MAX_WORDS:
            self._known.update(word for word in new if len(word) <= MAX_LENGTH)
        return True

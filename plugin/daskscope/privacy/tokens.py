"""The tokens that a cluster reports with: they are masked whatever the settings say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

from daskscope.privacy import values
from daskscope.privacy.endings import CLOSERS

PREFIX = "dks_"
"""What every token of a daskscope server begins with: twelve letters and digits, and 49 after the next underscore."""
_ANY = (
    rf"{PREFIX}(?:[0-9A-Za-z]{{12}}_[0-9A-Za-z]{{8}}\w*|"
    r"(?=[a-z]{0,11}[0-9A-Z])[0-9A-Za-z]{12}(?:_\w*)?(?![0-9A-Za-z]))"
)
_BEGUN = re.compile(rf"{PREFIX}\w{{0,70}}\Z")
MIN_LENGTH = 4
"""A shorter one is no secret, and would be found in every word."""


class Tokens:
    """Finds them as they are, as JSON and links write them, and whatever else has their prefix."""

    def __init__(self, tokens: Iterable[str]) -> None:
        known = [token for token in tokens if len(token) >= MIN_LENGTH]
        forms = {form for token in known for form in (token, json.dumps(token)[1:-1], quote(token, safe=""))}
        self._forms = sorted(forms, key=len, reverse=True)
        literals = "|".join(map(re.escape, [values.MASK, *self._forms]))
        self._pattern = re.compile(rf"{literals}|{_ANY}")

    def may_be_in(self, text: str) -> bool:
        return PREFIX in text or any(map(text.__contains__, self._forms))

    def mask(self, text: str, *, is_cut: bool) -> str:
        """With them masked, and the beginning of one where a text that was cut ends in it."""
        if self.may_be_in(text):
            text = self._pattern.sub(values.MASK, text)
        return self._end_masked(text) if is_cut else text

    def _end_masked(self, text: str) -> str:
        stem = text[-2_000:].rstrip(CLOSERS)
        end = len(text) - (min(len(text), 2_000) - len(stem))
        if stem.endswith(values.MASK[:-1]):
            return text
        begun = _BEGUN.search(stem)
        if begun is not None:
            return text[: end - len(begun[0])] + values.MASK + text[end:]
        for form in self._forms:
            for length in range(min(len(form), len(stem)), MIN_LENGTH - 1, -1):
                if stem.endswith(form[:length]):
                    return text[: end - length] + values.MASK + text[end:]
        return text

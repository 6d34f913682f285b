"""Texts that came over the network, before they stand in a log, an exception or on a terminal.

Whoever answers may write what he likes, and a proxy may show in its error what it was sent.
"""

from __future__ import annotations

import re

from daskscope.privacy.tokens import PREFIX, Tokens
from daskscope.privacy.values import MASK

MOST = 500
"""Characters of one text."""

_OURS = re.compile(rf"{PREFIX}\w+")


def one_line(text: object, token: str | None = None, most: int = MOST) -> str:
    """On one line, of letters that print, without `token` and what begins as ours do; a longer one is cut and says so.
    Empty for what is no text."""
    if not isinstance(text, str):
        return ""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    line = " ".join(_without(printable, token).split())
    return line if len(line) <= most else f"{line[:most]}... ({len(line) - most} more characters)"


def _without(text: str, token: str | None) -> str:
    text = Tokens([token] if token else []).mask(text, is_cut=False)
    return _OURS.sub(MASK, text)

"""The end of a text that was cut: half a secret is one, too, and does not look like one any more."""

from __future__ import annotations

import re

from daskscope.privacy import values
from daskscope.privacy.names import Names, Sign

MAX_NAME, CUT_FROM = 200, 4_000
"""A name of just so many characters, and a text of so many, may have been cut without a mark."""
MAX_END = 400
CLOSERS = "\"')]}> \r\n"
"""What may stand behind a text that was cut: a repr's quotes, JSON's brackets."""

_MARK = re.compile(
    r"(?:\.{3} \(\d{1,9} more characters\)|\n# \.{3} daskscope cut \d{1,9} bytes of this source here|"
    r"(?<=.{200})\.{3})\Z",
    re.DOTALL,
)
_MARK_ENDS = ("characters)", "source here", "...")
_PAIR = re.compile(r"(?P<name>[\w.-]{1,80})[\"']?\s{0,2}[=:]\s{0,2}[\"']?(?P<value>[^\s\"'=:(]{1,200})\Z")
_LINK = re.compile(r"//[\w.%+-]{0,100}:(?!\d{0,5}(?:/|\Z))(?P<value>[^\s/@]{1,200})\Z")
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?P<value>(?:AKIA|ASIA|sk-|hf_|npm_|pypi-|SG\.|AIza|eyJ|ya29\.|GOCSPX-|hv[sb]\.|xox|gh[pousr]_|"
    r"gl[a-z]{2,5}-|dapi)[\w./+=-]{1,255})\Z"
)
_WORD = re.compile(r"(?<![\w+/=-])(?P<value>[\w+/=-]{12,255})\Z")


def parted(text: str) -> tuple[str, str, bool]:
    """A text without the mark of its cut, that mark or nothing, and whether it may have been cut."""
    mark = _MARK.search(text, max(len(text) - 80, 0)) if text.endswith(_MARK_ENDS) else None
    if mark is None:
        return text, "", len(text) == MAX_NAME or len(text) >= CUT_FROM
    return text[: mark.start()], mark[0], True


def masked(text: str, names: Names) -> str:
    """With what may be the beginning of a secret masked at its end: the value of a secret's name, a password in a
    link, a key, or whatever looks random."""
    ending = text[-MAX_END:]
    stem = ending.rstrip(CLOSERS)
    pair = _PAIR.search(stem)
    found = pair if pair and names.sign(pair["name"]) in (Sign.SECRET, Sign.HEADER) else None
    found = found or _LINK.search(stem) or _KEY.search(stem)
    if found is None and (word := _WORD.search(stem)) and values.looks_random(word["value"]):
        found = word
    if found is None or values.is_placeholder(found["value"]):
        return text
    end = len(text) - (len(ending) - len(stem))
    return text[: end - len(found["value"])] + values.MASK + text[end:]

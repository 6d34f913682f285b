"""The end of a text that was cut: half a secret is one, too, and does not look like one any more."""

from __future__ import annotations

import re

from daskscope.privacy import values
from daskscope.privacy.names import Names, Sign

CUT_LENGTHS, CUT_FROM = frozenset({200, 300}), 4_000
"""A text of just so many characters, or of CUT_FROM and more, may have been cut without a mark."""
MAX_END = 400
CLOSERS = "\"')]}> \r\n"
"""What may stand behind a text that was cut: a repr's quotes, JSON's brackets."""

_MARK = re.compile(
    r"(?:\.{3} \(\d{1,9} more characters\)|\n# \.{3} daskscope cut \d{1,9} bytes of this source here|"
    r"(?<=.{97})\.{3})\Z",
    re.DOTALL,
)
_MARK_ENDS = ("characters)", "source here", "...")
_PAIR = re.compile(
    r"(?P<name>[\w.-]{1,80})[\"']?(?:\s{0,2}[=:]\s{0,2}|\s?:\s?\r?\n\s{1,40})[\"']?(?P<value>[^\s\"'=:(]{1,200})\Z"
)
_LOGIN = re.compile(r"[(\[]\s?[\"'][^\"'\n]{1,100}[\"']\s?,\s{0,40}[\"'](?P<value>[^\"'\n]{1,200})\Z")
_FLAG = re.compile(r"(?<!\S)(?P<name>--[\w.-]{1,80})[ =](?P<value>\S{1,200})\Z")
_ACCOUNT = re.compile(r"\s-u\s?[\w.@-]{1,100}:(?P<value>\S{1,200})\Z")
_DIGITS = re.compile(r"(?<![\w.:/+-])(?P<value>[3-6]\d{3}[ -]?\d{2}[\d -]{0,20})\Z")
_AWS = re.compile(r"(?i:akia|asia|aws)[^\0]{0,300}?[\s\"'=:,](?P<value>[A-Za-z0-9/+]{4,40})\Z")
_LINK = re.compile(r"//[\w.%+-]{0,100}:(?!\d{0,5}(?:/|\Z))(?P<value>[^\s/@]{1,200})\Z")
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?P<value>(?:AKIA|ASIA|sk-|hf_|npm_|pypi-|SG\.|AIza|eyJ|ya29\.|GOCSPX-|hv[sb]\.|xox|gh[pousr]_|"
    r"gl[a-z]{2,5}-|dapi)[\w./+=-]{1,255})\Z"
)
_IF_MARKED = (_LOGIN, _ACCOUNT, _DIGITS, _AWS)
_WORD = re.compile(r"(?<![\w+/=-])(?P<value>[\w+/=-]{12,255})\Z")


def parted(text: str) -> tuple[str, str, bool]:
    """A text without the mark of its cut, that mark or nothing, and whether it may have been cut."""
    mark = _MARK.search(text, max(len(text) - 80, 0)) if text.endswith(_MARK_ENDS) else None
    if mark is None:
        return text, "", len(text) in CUT_LENGTHS or len(text) >= CUT_FROM
    return text[: mark.start()], mark[0], True


def masked(text: str, names: Names, *, is_marked: bool) -> str:
    """With what may be the beginning of a secret masked at its end: the value of a secret's name, a password in a
    link, a key, or whatever looks random. `is_marked`: it was cut for certain, so that less is enough."""
    ending = text[-MAX_END:]
    stem = ending.rstrip(CLOSERS)
    found = None
    for pair in (_PAIR.search(stem), _FLAG.search(stem)):
        if pair and names.sign(pair["name"]) in (Sign.SECRET, Sign.HEADER, Sign.OWN):
            found = pair
    for form in (_LINK, _KEY, *(_IF_MARKED if is_marked else ())):
        found = found or form.search(stem)
    if found is None and (word := _WORD.search(stem)) and values.looks_random(word["value"]):
        found = word
    if found is None or values.is_placeholder(found["value"]):
        return text
    end = len(text) - (len(ending) - len(stem))
    return text[: end - len(found["value"])] + values.MASK + text[end:]

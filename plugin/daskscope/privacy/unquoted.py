"""Values without quotes: where they end, and whether one shows the secret, which only its form and place can tell."""

from __future__ import annotations

import re

from daskscope.privacy import values
from daskscope.privacy.names import Names, Sign, is_passwords
from daskscope.privacy.values import Span

_IN_LINK = re.compile(r"[^&\s\"'<>#`]{1,1000}+")
_TO_BLANK = re.compile(r"[^\s\"'`]{1,1000}+")
_TO_BLANK_OR_END = re.compile(r"[^\s\"'`]*+")
_HEADER_REST = re.compile(r"[^\"'`\r\n\\]{1,1000}+")
_SCHEME = re.compile(r"(?:bearer|basic|token|digest|aws4-hmac-sha256)[ =]+\S", re.IGNORECASE)
_SET_BEFORE = re.compile(r"(?:^|\n|[;&|]\s|\b(?:export|set|env|ENV|ARG|setenv)\s|\s-e\s?|--env[= ]|[-*]\s)[\"']?\Z")
_ENV_BEFORE = re.compile(r"\b(?:ENV|ARG|setenv)\s\Z")
_PAIR_AFTER = re.compile(r"[ ;&]{1,2}[\w.-]{1,40}=[^=\s]")
_LINE_OF_ITS_OWN = re.compile(r"(?:^|\n)[ \t]{0,40}(?:- )?[\"']?\Z")
_LINE_ENDS = re.compile(r"[ \t]{0,10}(?:#[^\n]{0,200})?(?:\r?\n|\Z)")


_NUMBER = re.compile(r"[ \t]{0,40}(?P<value>[\w.+-]{0,80}\d[\w.+-]{0,80})(?=[\s,;)\]}]|\Z)")
_OWN = re.compile(r"[^\s\"'`<>,;&()\[\]{}|\x1b]{1,500}+")
_CODE_PATH = re.compile(r"[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){1,8}\Z")
_CAMEL = re.compile(r"[A-Z][a-z]+[A-Z]\w*\Z")


def number_beside(text: str, place: int) -> list[Span]:
    """`patient_id    512`, as a table is printed."""
    found = _NUMBER.match(text, place)
    return [found.span("value")] if found else []


def _own(text: str, place: int) -> list[Span]:
    """The value of a name that the user has named: whatever it is, but code that fetches it, or a type."""
    found = _OWN.match(text, place)
    value = found[0].rstrip(".:!?") if found else ""
    if not value or values.is_constant(value) or values.is_placeholder(value):
        return []
    if (
        text[place + len(value) : place + len(value) + 1] in ("(", "[")
        or _CODE_PATH.match(value)
        or _CAMEL.match(value)
    ):
        return []
    return [(place, place + len(value))]


def needs_no_sign(text: str, name: str, start: int, end: int) -> bool:
    """`ENV DB_PASSWORD x` in a Dockerfile, `PASSWORD 'x'` in SQL."""
    if text.startswith("'", end):
        return name.lower().endswith("password")
    return bool(_ENV_BEFORE.search(text, max(start - 8, 0), start))


def in_link(text: str, start: int, end: int) -> list[Span]:
    """The value at `end` of a name at `start`, if that stands in a link's query."""
    found = _IN_LINK.match(text, end) if text[start - 1 : start] in ("?", "&", ";") else None
    return [] if found is None or values.is_placeholder(found[0]) else [(end, _whole(text, found.end()))]


def spans(names: Names, text: str, start: int, stop: int, sign: Sign, after: re.Match[str]) -> list[Span]:
    """The value after `after` of the name from `start` to `stop`, if it shows a secret."""
    name, place = text[start:stop], after.end()
    if sign is Sign.OWN:
        return _own(text, place)
    if sign is Sign.HEADER and (after["colon"] or after["equals"]):
        return _header(text, place)
    is_flag, is_exact = name.startswith("--"), not after[0].strip("=:\"'`]\\")  # exact: no blanks around
    is_linked = bool(after["equals"]) and is_exact and text[start - 1 : start] in ("?", "&")
    is_variable = bool(after["equals"]) and is_exact and name.isupper()
    loose = is_variable or is_linked or is_flag or bool(after["value"]) or bool(after["blank"])
    if is_linked:
        found = _IN_LINK.match(text, place)
        end = found.end() if found else place
    elif loose and _SET_BEFORE.search(text, max(start - 12, 0), start):
        found = _TO_BLANK.match(text, place)
        end = found.end() if found else place
    else:
        end = values.unquoted_end(text, place)
    value = text[place:end]
    if not value or (is_flag and after["blank"] and value.startswith("-")):
        return []
    squashed = name.lower().strip("-_.")
    shown = values.shows_unquoted(squashed, value, text[end : end + 1], loose=loose, chosen=is_passwords(name))
    if shown and (sign is Sign.MAYBE or after["is"]):
        shown = values.looks_random(value) if is_passwords(name) else values.looks_made(value)
    if values.is_file(value) and not is_passwords(name):
        shown = False
    if squashed.endswith("pwd") and value.startswith(("/", "~")):  # a shell's working directory
        shown = False
    shown = shown or _is_word(names, text, start, name.lower(), after, end)
    return [(place, _whole(text, end))] if shown else []


def _whole(text: str, end: int) -> int:
    """A value that is longer than what was looked at goes on to the next blank."""
    found = _TO_BLANK_OR_END.match(text, end) if end < len(text) and text[end - 1 : end + 1].isalnum() else None
    return found.end() if found else end


def _is_word(names: Names, text: str, start: int, name: str, after: re.Match[str], end: int) -> bool:
    """A password of letters alone, in a form that is not code's: `user=bob password=swordfish`, a line of YAML."""
    value = text[after.end() : end]
    if not ("pass" in name or "pwd" in name or "secret" in name) or not values.shows_word(value):
        return False
    is_alone = _LINE_OF_ITS_OWN.search(text, max(start - 44, 0), start)
    if after["equals"] and not after[0].strip("="):
        if text[end : end + 1] in (",", ")", "]", "}") and text[start - 1 : start] != "{":
            return is_passwords(name) and value.islower() and len(value) > 4 and not _is_variable(value)
        if value.lower().endswith(name.strip("-_.")):
            return False
        is_indented = is_alone and is_alone[0].endswith((" ", "\t"))
        return bool(_PAIR_AFTER.match(text, end)) or not (is_indented or names.sign(value))
    if names.sign(value) is not None:
        return False
    is_configured = after["colon"] or (after["equals"] and text[start - 1 : start] in ("", "\n"))
    is_worded = value.islower() or (after["colon"] and text[start : start + 1].isupper())
    if is_alone and is_configured and is_worded and _LINE_ENDS.match(text, end):
        return True
    return bool(after["colon"] and after[0] == ": " and _in_mapping(text, start, end) and value.islower())


def _in_mapping(text: str, start: int, end: int) -> bool:
    """`{password: x, user: y}`, as YAML writes it."""
    return text[max(start - 2, 0) : start].rstrip().endswith(("{", ",")) and text[end : end + 1] in (",", "}")


def _is_variable(value: str) -> bool:
    """Whether it says what is in it."""
    return "_" in value or any(core in value for core in ("pass", "pw", "secret", "cred", "token"))


def _header(text: str, place: int) -> list[Span]:
    """All of a header; but `Authorization: see below` is prose, and `authorization=header` code."""
    found = _HEADER_REST.match(text, place)
    value = found[0].rstrip() if found else ""
    if not value or values.is_placeholder(value):
        return []
    parts = re.split(r"[\s=;,]+", value[:200])
    shown = _SCHEME.match(value) or any(map(values.looks_random, parts))
    is_code = value.endswith((",", ")")) and values.is_placeholder(re.sub(r"[\w.\[\](),]", "", value))
    return [(place, _whole(text, place + len(value)))] if shown and not is_code else []

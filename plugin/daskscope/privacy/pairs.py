"""A secret's name and what stands after it, wherever people write them: code, configuration, logs, command lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from daskscope.privacy import unquoted, values
from daskscope.privacy.names import Names, Sign, is_passwords
from daskscope.privacy.values import Span

MAX_PARTS = 20
"""Of one value that is written in several quoted parts."""
_DASK_TOKENS = ("token", "barrier_token")
"""Arguments of Dask's, too: a label in one is a name."""
_COLUMNS = ("token", "session_id")
"""Columns of many tables, where one that is short is a value like others."""
MIN_COLUMN = 8

_QUOTE = r"&quot;|&\#3[49];|%2[27]"
_COLOURS = r"(?:\x1b\[[0-9;]{0,12}m){0,4}"
_AFTER = re.compile(
    rf"""(?P<close>\\{{0,3}}["'`]|{_QUOTE})?{_COLOURS}(?:\s{{0,2}}\])?
    (?:[ \t]{{0,20}}
      (?: :[ \t]{{0,4}}(?:["'][\w.]{{1,40}}(?:\[[\w.,\ |]{{0,60}}\])?["']
              |[A-Za-z_][\w.]{{0,40}}(?:\[[\w.,\ |"'\[\]()=<>-]{{0,80}}\])?(?:[ ]?\|[ ]?[\w.]{{1,20}}){{0,3}})
            (?:[ ]{{1,2}}=(?!=)|=(?=["']))
        | := | => | (?P<compares>[=!]=) | %3[ADad] | (?P<equals>=)(?!=) | (?P<colon>:)(?!:) )
      {_COLOURS}[ \t]{{0,20}}{_COLOURS}(?:{_QUOTE})?
    | (?P<value>["']?[ \t]{{0,4}},?\s{{0,80}}["']?(?:[Vv]alue|[Dd]efault)["']?[ \t]{{0,4}}[:=][ \t]{{0,4}})
    | (?P<comma>[ ]{{0,4}},\s{{0,40}})
    | (?P<is>[ ](?:is|was|for[ ][^\s:]{{1,60}}:)(?:[ ](?:set[ ]to|now))?:?[ ] | [ ]->[ ])
    | (?P<tag>>)
    | (?P<call>\((?=[rbf]?["']))
    | (?P<blank>[ \t]{{1,4}})
    )""",
    re.VERBOSE,
)
_WRAPPER = (
    r"(?:[\w.]{0,40}(?:SecretStr|SecretBytes|Secret|str|bytes|b64decode|b64encode|quote_plus|quote|unquote|fromhex|"
    r"Password|Sensitive|loads|[Ff]ield|[\"'][^\"'\n]?[\"']\.join)\([\s\[(]{0,40}(?:default\s?=\s?)?){0,2}"
)
_PREFIX = r"""[rRbBfFuU]{0,2}(?P<escaped>\\{0,3})(?P<quote>\"\"\"|'''|["'`])"""
_OPEN = re.compile(r"(?P<group>\(\s{0,80}|\\\r?\n[ \t]{0,80})?" + _WRAPPER + _PREFIX)
_OPEN_LATER = re.compile(r"\s{0,80}(?P<group>\(\s{0,80})?" + _WRAPPER + _PREFIX)
_GO_ON = re.compile(r"[ \t]{0,20}(?:\+[ \t]{0,20})?(?:\\\r?\n[ \t]{0,80})?" + _PREFIX)
_GO_ON_LATER = re.compile(r"\s{0,80}(?:\+\s{0,80})?" + _PREFIX)
_GO_ON_TUPLE = re.compile(r"[ \t]{0,20},[ \t]{0,20}" + _PREFIX)
_TARGETS = re.compile(r"(?:[ ]?,[ ]?[A-Za-z_][\w.]{0,40}){1,5}[ ]?=[ ]?" + _PREFIX)
_OTHERWISE = re.compile(
    r"(?:\(\s{0,80})?[^\n\"']{0,60}(?:[(\[][\"'][^\"'\n]{0,60}[\"'][)\]])?[^\n\"']{0,40}\b(?:or|else)\s{1,40}(?=[rbfu]?[\"'])"
)
_OPTION = re.compile(
    r"[\"'](?:\s{0,4},\s{0,40}(?:[\"']-[\w-]{0,40}[\"']|[a-z_]{1,20}\s?=\s?(?:[\w.]{1,40}|[\"'][^\"'\n]{0,120}[\"']))){0,6}?"
    r"\s{0,4},\s{0,40}default\s?=\s?"
)
"""`"--password", "-p", help="x", default=`: an option's own value is its default."""
_LOGGED = re.compile(r"(?:\s?[:=]\s?(?:%[sr]|\{\})?|\s(?:%[sr]|\{\}))[.!]?[\"']\s?,\s{0,40}(?=[rbfu]?[\"'])")
"""`"password %s", `: what is logged under that name."""
_COMPARED = re.compile(r"(?P<quote>[\"'])(?P<value>[^\"'\n]{1,200})(?P=quote)\s?[=!]=\s?\Z")
_SETTER = re.compile(r"(?:\bsetattr|[._]set|[._]put|[._]add_secret)\((?:[^()\n]{0,80},\s{0,40})?[rbfu]?[\"']\Z")
_NEXT_LINE = re.compile(
    r"[ \t]{0,10}\r?\n(?P<indent>[ \t]{1,80})(?P<value>[^\s:#\"'|>{\[-][^\s:]{0,500})[ \t]{0,10}(?=\r?\n|\Z)"
)
_CALLED = re.compile(
    r"(?:^|[._])(?:set|with|use|change|reset|update|verify|check|hash|encrypt)_?[a-z_]*\Z", re.IGNORECASE
)
_LIST = re.compile(r"[\[({][^\[\](){}]{1,2000}[\])}]")
_IN_LIST = re.compile(r"""(?P<quote>["'])(?P<value>[^"'\n]{1,500})(?P=quote)(?P<colon>\s?:)?""")
_IN_OWN_LIST = re.compile(r"(?P<quote>[\"']?)(?P<value>[\w.:+-][^\"'\n,\[\](){}]{0,500})(?P=quote)(?P<colon>\s?:)?")
_ITEM = re.compile(r"\[[\"'][^\"'\n]{1,60}[\"']\]\s?=(?!=)\s?")
_ELEMENT = re.compile(r"[^<>]{1,1000}(?=</)")
_BESIDE = re.compile(r"[\[<(]?[\"'`]?(?P<value>[^\s\"'`<>\[\](){},;]{10,500})")
_FOLDED = re.compile(r"[|>][+-]?\d?[ \t]{0,10}\r?\n")
_INDENT = re.compile(r"[ \t]*+")


class Pair:
    """One name, from `start` to `stop` of a text."""

    def __init__(self, names: Names, text: str, start: int, stop: int, sign: Sign) -> None:
        self._names, self._text, self._start, self._stop, self._sign = names, text, start, stop, sign
        self._name = text[start:stop]
        self._is_flag = self._name.startswith("--")

    def spans(self) -> Iterable[Span]:
        """Where its value is, in parts if it is written in parts; nothing if none is shown."""
        text = self._text
        if self._sign in (Sign.SECRET, Sign.OWN) and (found := self._by_place()):
            return found
        after = _AFTER.match(text, self._stop)
        if after is None:
            return []
        end = after.end()
        if self._sign is Sign.LINK:
            return unquoted.in_link(text, self._start, end) if after["equals"] else []
        if after["tag"]:
            found = _ELEMENT.match(text, end) if text[self._start - 1 : self._start] == "<" else None
            return [] if found is None or values.is_placeholder(found[0].strip()) else [found.span()]
        if after["blank"] and not (self._is_flag or unquoted.needs_no_sign(text, self._name, self._start, end)):
            return self._beside(end)
        if after["call"] and not (self._sign is Sign.SECRET and _CALLED.search(self._name)):
            return []
        if after["colon"] and (folded := _FOLDED.match(text, end)):
            return self._folded(folded.end())
        if after["colon"] and (below := _NEXT_LINE.match(text, end)):
            return [below.span("value")] if self._is_above(below) else []
        opening = (_OPEN_LATER if after["close"] and not after["blank"] else _OPEN).match(text, end)
        if opening is not None:
            found = self._quoted(opening)
            if after["comma"] and not (after["close"] and (self._is_flag or self._is_pair(found))):
                return []
            if after["compares"] and not self._is_chosen() and not all(map(values.looks_made, self._texts(found))):
                return []
            return [] if self._is_flag and any(text[start] == "-" for start, _ in found) else found
        if after["comma"] or (after["compares"] and self._sign is not Sign.OWN):
            opening = _TARGETS.match(text, self._stop)
            return self._quoted(opening, is_target=True) if opening else []
        if self._sign is Sign.SECRET and (otherwise := _OTHERWISE.match(text, end)):
            opening = _OPEN.match(text, otherwise.end())
            return self._quoted(opening) if opening else []
        return unquoted.spans(self._names, text, self._start, self._stop, self._sign, after)

    def _quoted(self, opening: re.Match[str], *, is_target: bool = False) -> list[Span]:
        text, quote, escaped = self._text, opening["quote"], opening["escaped"]
        start = opening.end()
        end = values.quoted_end(text, start, quote, escaped)
        if end is None:
            end = min(len(text), start + values.MAX_VALUE) if len(quote) == 3 else values.line_end(text, start)
            if end < len(text) or not any(map(str.isalnum, text[start:end])):
                return []  # it closes what began before the name
        value = text[start:end]
        if len(quote) == 1 and not escaped and self._closes(opening.start("quote"), quote, value):
            return []
        if not self._shows(value):
            return []
        is_target = is_target or (
            text[max(self._start - 2, 0) : self._start].rstrip() == "," and text[self._stop] not in "\"'"
        )
        is_target = (
            is_target or ".join(" in opening[0] or text[self._stop] == "("
        )  # set_password("service", "ada", "x")
        go_on = _GO_ON_TUPLE if is_target else _GO_ON_LATER if opening["group"] else _GO_ON
        spans = [(start, end)]
        while len(spans) < MAX_PARTS and (part := go_on.match(text, end + len(escaped) + len(quote))):
            start, quote, escaped = part.end(), part["quote"], part["escaped"]
            end = values.quoted_end(text, start, quote, escaped)
            if end is None:
                break
            spans.append((start, end))
        return spans

    def _closes(self, place: int, quote: str, value: str) -> bool:
        """Whether the quote at `place` ends a text that began before the name, as in `getpass("Password: ")`."""
        line = self._text.rfind("\n", max(place - 2_000, 0), place) + 1
        is_odd = self._text.count(quote, max(line, place - 2_000), place) % 2
        return bool(is_odd) and (not value or not value[0].isalnum() or any(map(str.isspace, value)))

    def _is_pair(self, found: list[Span]) -> bool:
        """`("password", "x")`, and not two names."""
        if len(found) == 1 and _SETTER.search(self._text, max(self._start - 120, 0), self._start):
            return True
        before = self._text[max(self._start - 8, 0) : self._start].rstrip("rbfu\"'\\ ")
        if len(found) != 1 or not before.endswith(("(", "[")):
            return False
        (value,), end = self._texts(found), found[0][1] + 1
        if self._names.sign(value) is not None or not self._text[end : end + 8].lstrip(", \n").startswith((")", "]")):
            return False
        return values.looks_random(value) or (before.endswith("(") and not self._name.lower().endswith("token"))

    def _texts(self, spans: list[Span]) -> list[str]:
        return [self._text[slice(*span)] for span in spans]

    def _shows(self, value: str) -> bool:
        if values.is_placeholder(value):
            return False
        if self._sign is Sign.OWN:
            return True
        if self._sign is Sign.MAYBE:
            return values.looks_made(value)
        lowered = self._name.lower()
        if lowered in _DASK_TOKENS and values.is_label(value):
            return False
        if (lowered in _COLUMNS and len(value) < MIN_COLUMN) or (values.is_file(value) and not self._is_chosen()):
            return False
        is_constant = value.isupper() and "_" in value and value.isidentifier()
        return not (is_constant and self._names.sign(value) is not None)  # the name of a variable, not its value

    def _is_chosen(self) -> bool:
        return self._sign is Sign.OWN or is_passwords(self._name)

    def _by_place(self) -> list[Span]:
        """Where the secret stands elsewhere than next to its name."""
        text, found = self._text, []
        if self._name.startswith("-") and (option := _OPTION.match(text, self._stop)):
            opening = _OPEN.match(text, option.end())
            return self._quoted(opening) if opening else []
        if self._is_chosen() and (logged := _LOGGED.match(text, self._stop)):
            before = text[text.rfind("\n", max(self._start - 200, 0), self._start) + 1 : self._start]
            opening = _OPEN.match(text, logged.end()) if "(" in before else None
            found = self._quoted(opening) if opening else []
        root = self._start
        if not found and text[root - 4 : root].rstrip().endswith("="):
            compared = _COMPARED.search(text, max(root - 220, 0), root)
            found = [compared.span("value")] if compared and self._shows(compared["value"]) else []
        return found

    def _is_above(self, below: re.Match[str]) -> bool:
        """YAML's value on the next line, further in than its name."""
        text = self._text
        line = text[text.rfind("\n", max(self._start - 200, 0), self._start) + 1 : self._start]
        is_first = self._sign in (Sign.SECRET, Sign.OWN) and not line.strip("- \t\"'")
        return is_first and len(line.rstrip("\"'")) < len(below["indent"]) and self._shows(below["value"])

    def _beside(self, place: int) -> list[Span]:
        """`token x`, with nothing between them: prose, unless nobody would write the next word."""
        if self._sign is Sign.OWN:
            return unquoted.number_beside(self._text, place)
        found = _BESIDE.match(self._text, place) if self._sign is Sign.SECRET else None
        return [found.span("value")] if found and values.is_strong(found["value"]) else []

    def _folded(self, place: int) -> list[Span]:
        """YAML's lines that are one text: all that are further in than the name."""
        text = self._text
        line = text.rfind("\n", max(self._start - 200, 0), self._start) + 1
        name_indent = _INDENT.match(text, line)
        spans: list[Span] = []
        while place < len(text) and len(spans) < MAX_PARTS:
            indent, end = _INDENT.match(text, place), values.line_end(text, place)
            if indent is None or name_indent is None or len(indent[0]) <= len(name_indent[0]):
                break
            spans.append((indent.end(), end))
            place = end + 1
        return [span for span in spans if not values.is_placeholder(text[slice(*span)])]


def in_list(names: Names, text: str, name: str, stop: int, sign: Sign) -> Iterator[Span]:
    """`passwords = ["a", "b"]`, `secrets["db"] = "a"`; a list of tokens may be a language's. `sign`: of one of them."""
    item = _ITEM.match(text, stop)
    if item is not None:
        opening = _OPEN.match(text, item.end())
        end = opening and values.quoted_end(text, opening.end(), opening["quote"], opening["escaped"])
        if opening is not None and end is not None and _is_item(name, text[opening.end() : end], sign):
            yield opening.end(), end
        return
    after = _AFTER.match(text, stop)
    found = _LIST.match(text, after.end()) if after and (after["equals"] or after["colon"]) else None
    if after is None or found is None:
        return
    for item in (_IN_OWN_LIST if sign is Sign.OWN else _IN_LIST).finditer(found[0]):
        if not item["colon"] and names.sign(item["value"]) is None and _is_item(name, item["value"], sign):
            yield after.end() + item.start("value"), after.end() + item.end("value")


def _is_item(name: str, value: str, sign: Sign) -> bool:
    if values.is_placeholder(value):
        return False
    if sign is Sign.MAYBE:
        return values.looks_made(value)
    return not name.lower().endswith("tokens") or values.is_strong(value)

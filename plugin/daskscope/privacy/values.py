"""What stands beside a secret's name: where it ends, and whether it shows the secret.

A false alarm eats the user's code, so what only fetches or names a secret stays: `get_password()`, `tokens[0]`, `None`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

Span = tuple[int, int]
"""From where to where, in characters."""

MASK = "[secret]"
"""What a secret becomes; nothing of it is kept but its line breaks."""

MAX_VALUE = 10_000
"""A quoted text of several lines that is longer is none of a secret's."""

_BREAKS = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_SHORT = r"\r\n\v\f\x1c-\x1e\x85\u2028\u2029"
# Possessive, so that no text is gone over twice.
_REST_OF = {
    '"': re.compile(rf'(?:[^"\\{_SHORT}]|\\[^{_SHORT}])*+'),
    "'": re.compile(rf"(?:[^'\\{_SHORT}]|\\[^{_SHORT}])*+"),
    "`": re.compile(rf"[^`{_SHORT}]*+"),
}
_TO_LINE_END = re.compile(rf"[^{_SHORT}]*+")
_UNQUOTED = re.compile(
    r"(?:[^\s\"'`<>,;&)\]}\x1b]"
    r"|[,;&)\]}](?![\s\"'`<>,;&)\]}:]|\\|\Z|[\w.%-]{1,60}\s?[=:])){1,500}+"
)
"""Up to a blank, a quote, or a mark after which another pair begins."""
_PLACEHOLDER = re.compile(
    r"[\W_]*\Z|"
    r"(?:<[^<>]{0,60}>|\[[^\[\]]{0,40}\]|\$?\{{1,2}[^{}]{0,100}\}{0,2}|\$\(?[A-Za-z_]\w{0,60}\)?|%\(?[\w]{0,60}\)?[sdr]|"
    r"%[A-Za-z_]\w{0,60}%|[Xx*.•-]{3,}|\[secret\]?|\[?(?:redacted|filtered|masked|hidden)\]?|\(?not shown\)?|"
    r"(?:your|my)[-_ ][\w -]{1,40}|\.{3}|…)\Z",
    re.IGNORECASE,
)
_DTYPE = re.compile(
    r"(?:(?:u?int|float|complex)(?:8|16|32|64|128)|(?:string|category|object|bool(?:ean)?|(?:datetime|timedelta)64)"
    r"\[[\w, /]{1,40}\]|(?:pl|pa|np|pd|sa|tf|torch|jnp)\.[A-Za-z]\w{0,30})\Z"
)
_WORDY = re.compile(
    r"[A-Za-z]{1,20}(?:[-_ .:][A-Za-z]{1,20}){0,3}[-_ .:]?\d{1,4}\Z|[a-z]{1,20}(?:/[a-z0-9_.-]{1,30}){1,6}\Z"
)
_FILE = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?/(?:[a-z.][a-z0-9_.-]{0,30}/){1,12}[\w.-]{1,80}\Z")
_HOLES = re.compile(r"\$?\{[^{}]{0,200}\}|%\([\w]{1,60}\)[sdr]|%[sdr]|\$[A-Za-z_]\w{0,60}")
_FIELDS = re.compile(r"\{[^{}]{0,200}\}")
_SCHEMES = re.compile(r"\s*(?:bearer|basic|token|digest|negotiate|aws4-hmac-sha256)?\s*\Z", re.IGNORECASE)
_ENDS = ".,:;!?)]}"
_CODE = re.compile(r"[A-Za-z_][\w.]*[\[({]")
_WORD = re.compile(r"[A-Za-z_]+\Z")
_PATH = re.compile(r"[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){1,8}\.?\Z")
_ORIGINS = frozenset({"pl", "pa", "pd", "tf", "torch", "jnp", "da", "dd", "sa",
                      "self", "cls", "os", "args", "cfg", "config", "settings", "conf", "env", "opts", "options", "np",
                      "params", "kwargs", "request", "secrets", "st", "context", "ctx", "app", "data", "obj", "this",
                      "typing", "module", "parser", "parsed", "creds", "credentials", "auth", "session", "client",
                      })  # fmt: skip
_CONSTANTS = frozenset({"none", "null", "nil", "true", "false", "yes", "no", "undefined", "nan", "self", "cls", "auto",
                        "default", "required", "optional", "str", "bytes", "int", "float", "bool", "object", "any",
                        "dict", "list", "tuple", "callable", "string", "bytearray", "lambda", "not", "await", "yield",
                        "if", "else", "is", "in", "and", "or", "for", "the", "a", "an", "of", "to"})  # fmt: skip
_PROSE = frozenset({"missing", "invalid", "incorrect", "expired", "wrong", "empty", "unset", "failed", "found", "was",
                    "must", "has", "given", "provided", "expected", "unexpected", "unknown", "from", "with", "this",
                    "that", "type", "error", "field", "value", "changed", "reset", "see", "use", "enter", "input",
                    })  # fmt: skip
_MIXED = re.compile(r"(?:[a-z]{1,3}[A-Z]{1,3}){3,}|[bcdfghjklmnpqrstvwxz]{6,}|[BCDFGHJKLMNPQRSTVWXZ]{7,}")
_LABEL = re.compile(r"[a-z]{0,14}(?:[-_.][a-z]{0,14}){0,6}\Z")
_DATE = re.compile(r"\d{1,6}[-:.,/]\d")
_SIGNS = re.compile(r"[!@#$%^&*+/=~?|-]")


def masked(value: str) -> str:
    """The mask, with the value's line breaks after it, so that later lines keep their numbers."""
    if value.isprintable():
        return MASK
    return MASK + "".join(_BREAKS.findall(value))


def replaced(text: str, spans: Iterable[Span]) -> str:
    """`text` with each span masked; those that overlap become one."""
    parts: list[str] = []
    done = start = end = 0
    for first, last in [*sorted(spans), (len(text) + 1, len(text) + 1)]:
        if first < end:
            end = max(end, last)
            continue
        if end > start:
            parts += [text[done:start], masked(text[start:end])]
            if end == len(text) and parts[-1] != MASK and not _BREAKS.match(text[-1]):
                parts.append(MASK)  # the last line is one, too
            done = end
        start, end = first, last
    return "".join([*parts, text[done:]])


def quoted_end(text: str, start: int, quote: str, escaped: str) -> int | None:
    """Where the quoted text that begins at `start` ends, its closing quote not counted; None if that is not there.

    `escaped`: backslashes before each quote, as in JSON within JSON. A triple quote may be lines away.
    """
    if len(quote) == 3 or escaped:
        last = min(len(text), start + MAX_VALUE)
        if escaped and (line := text.find("\n", start, last)) >= 0:
            last = line
        end = text.find(escaped + quote, start, last)
        return None if end < 0 else end
    found = _REST_OF[quote].match(text, start)
    end = found.end() if found else start
    return end if text.startswith(quote, end) else None


def line_end(text: str, start: int) -> int:
    found = _TO_LINE_END.match(text, start)
    return found.end() if found else start


def unquoted_end(text: str, start: int) -> int:
    found = _UNQUOTED.match(text, start)
    return found.end() if found else start


def is_placeholder(value: str) -> bool:
    """Whether it stands for a secret without being one: empty, `<token>`, `${TOKEN}`, `***`, `Bearer {token}`; or is
    the type of a column."""
    if _PLACEHOLDER.match(value) or _DTYPE.match(value):
        return True
    without = _HOLES.sub("", value)
    return without != value and bool(_PLACEHOLDER.match(without) or _SCHEMES.match(without))


def looks_random(value: str) -> bool:
    """Whether nobody would write it as a word: digits among letters, or letters that no word has."""
    if len(value) < 6 or " " in value:
        return False
    has_digit = any(character.isdecimal() for character in value)
    has_letter = any(character.isalpha() for character in value)
    return (has_digit and has_letter) or bool(_MIXED.search(value)) or (has_digit and bool(_SIGNS.search(value)))


def looks_made(value: str) -> bool:
    """Whether it looks random and not like a word with a number, as `spring-2024` or `EPSG4326`, or a place, as
    `prod/db1`."""
    return looks_random(value) and not _WORDY.match(value)


def is_file(value: str) -> bool:
    return _FILE.match(value) is not None


def is_strong(value: str) -> bool:
    """Whether it looks random enough to be a secret in the midst of prose."""
    if len(value) < 10 or not looks_random(value):
        return False
    is_mixed = not value.islower() and not value.isupper()
    return any(map(str.isdecimal, value)) and (is_mixed or len(value) >= 16) and not _DATE.match(value)


def is_constant(value: str) -> bool:
    """`None`, `str`, `True`: a word of the language's."""
    return value.lower().rstrip(_ENDS) in _CONSTANTS


def shows_unquoted(name: str, value: str, after: str, *, loose: bool, chosen: bool) -> bool:
    """Whether a value without quotes is the secret itself, and not code or prose.

    `after`: the character behind it. `loose`: the form (an environment's, a command line's) is not that of code.
    `chosen`: people choose it themselves.
    """
    lowered = value.lower()
    if is_placeholder(value) or is_constant(value) or after in ("(", "["):
        return False
    if (
        value[0] in "([{"
        or _CODE.match(value)
        or value.startswith(("os.environ", "lambda"))
        or value.endswith(("[", "{"))
    ):
        return False
    if _PATH.match(value) and (
        value.split(".", 1)[0].lower() in _ORIGINS or not any(map(str.isdecimal, value)) or lowered.endswith(name)
    ):
        return False
    if loose:
        return not (value.isupper() and _WORD.match(value) and name in lowered.replace("_", ""))
    if chosen and value.endswith(("!", "?")) and len(value) > 4:
        return True
    if _WORD.match(value.rstrip(_ENDS)):
        return bool(_MIXED.search(value))
    is_argument = not after or after in ",)]}\r\n"
    if is_argument and value.isidentifier() and any(core in lowered for core in ("passw", "token", "secret")):
        return False  # password=password1: a variable
    return not re.fullmatch(r"[\d.,:%]{1,4}", value)


def is_label(value: str) -> bool:
    """Whether it reads as words: Dask's own `token="store-map"` is a name, and so is the rest of `f"{token}-sum"`."""
    rest = _FIELDS.sub("", value)
    return bool(_LABEL.match(rest)) and not _MIXED.search(rest)


def shows_word(value: str) -> bool:
    """Whether a plain word may be the secret: not one that is said of secrets."""
    return bool(_WORD.match(value)) and value.lower() not in _CONSTANTS | _PROSE

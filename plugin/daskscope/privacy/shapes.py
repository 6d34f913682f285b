"""Shapes in which secrets come without a name of their own: links, logins by place, blocks of keys, cards."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from daskscope.privacy import values
from daskscope.privacy.forms import Form, form
from daskscope.privacy.values import Span

MAX_BLOCK = 20_000
_Q = "[\"']"
_QUOTED = rf"[rbfu]?(?P<q>{_Q})(?P<secret>[^\"'\n]{{1,500}})(?P=q)"
_FIRST = rf"\s{{0,40}}[rbfu]?(?P<one>{_Q})[^\"'\n]{{0,200}}(?P=one)\s{{0,10}},\s{{0,40}}(?:password\s?=\s?)?"

_BLOCK = re.compile(r"BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{0,5}")
_BLOCK_END = re.compile(r"-{5}END [A-Z0-9 ]{0,40}-{0,5}")
_BLOCK_BODY = re.compile(r"[A-Za-z0-9+/=\s\\\"',:.-]{0,8000}+")
_DIGITS = re.compile(r"[3-6]\d{3}[ -]?\d{4}")
_CARD_WORD = re.compile(r"card|credit|visa|amex|mastercard|\bpan\b|\bcc\b|payment", re.IGNORECASE)
_BEFORE_CARD = 60
"""Characters before a number that is not grouped as on a card, where a word must speak of one."""
_CARD = re.compile(
    r"(?<![\w.+/=-])(?:[3-6]\d{3}([ -]?)\d{4}\1\d{4}\1\d{1,7}|3[47]\d{2}([ -])\d{6}\2\d{5})(?![\w+/=-]|\.\d)"
)
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=._-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=._-])")
_ACCOUNT = re.compile(r"(?<![\w/:@.-])[\w.-]{1,60}:(?P<secret>[^\s/'\"<>`:@]{6,200})\Z")
_LUHN = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def _is_login(value: str) -> bool:
    """Whether it is a name and a password in Base64."""
    try:
        told = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (ValueError, binascii.Error):
        return False
    return ":" in told and told.isprintable()


def _may_be_password(value: str) -> bool:
    return values.shows_word(value) or (not value.isalpha() and not values.is_placeholder(value))


_EXACT: tuple[Form, ...] = (
    # The last @ counts: people leave one in a password. What is a port is none.
    *form(
        "//",
        r"//[^\s/?#:@'\"<>`]{0,200}:(?!\d{1,5}(?:[/?#\s'\"]|\Z))(?P<secret>[^\s'\"<>`]{1,500})@(?=[\w\[.$%{/-])",
    ),
    *form("//", r"//(?P<secret>[^\s/?#:@'\"<>`]{16,500})(?::x-oauth-basic)?@(?=[\w\[])", good=values.looks_random),
    *form("redis", r"rediss?://(?P<secret>[^\s/?#:@'\"<>`]{8,500})@(?=[\w\[])", good=values.looks_random),
    *form("discord", r"discord(?:app)?\.com/api/webhooks/(?P<secret>\d{5,25}/[\w-]{20,255})"),
    *form(".office", r"\.office(?:365)?\.com/webhookb?\d?/(?P<secret>[^\s'\"<>]{16,500})"),
    *form("hooks.slack.com/", r"hooks\.slack\.com/(?P<secret>(?:services|workflows|triggers)/[\w/+-]{8,255})"),
    *form(":thin:", r":thin:[\w.]{1,60}/(?P<secret>[^\s@/]{1,200})@"),
    *form("auth", rf"auth(?:{_Q})?\s?[=:]\s?[(\[]{_FIRST}{_QUOTED}"),
    *form("BasicAuth DigestAuth ProxyAuth login authenticate BasicAuthentication", rf"\w{{5,20}}\({_FIRST}{_QUOTED}"),
    *form("Fernet( SecretStr( SecretBytes( Secret(", rf"\w{{6,11}}\(\s{{0,40}}{_QUOTED}"),
    *form("key", rf"(?<![\w.])key{_Q}?\s?[:=]\s?{_QUOTED}(?=\s{{0,4}},\s{{0,80}}{_Q}?\w{{0,20}}secret)"),
    *form(
        "secret",
        rf"secret{_Q}?\s?[:=]\s?(?P<p>{_Q})[^\"'\n]{{1,500}}(?P=p)\s{{0,4}},\s{{0,80}}{_Q}?key{_Q}?\s?[:=]\s?{_QUOTED}",
    ),
    *form("user", rf"user(?:name)?{_Q}\s?:\s?{_Q}[^\"'\n]{{1,100}}{_Q}\s?,\s{{0,40}}{_Q}key{_Q}\s?:\s?{_QUOTED}"),
    *form(
        "secrets.put(",
        rf"secrets\.put\(\s{{0,40}}(?:{_Q}[^\"'\n]{{0,200}}{_Q}\s{{0,4}},\s{{0,40}}){{0,3}}{_QUOTED}\s{{0,4}}\)",
    ),
    *form("login(", rf"login\(\s{{0,40}}(?:key\s?=\s?)?{_QUOTED}\s{{0,10}}\)"),
    *form("earer EARER", r"(?:earer|EARER) (?P<secret>(?=[\w.~+/-]{0,60}\d)[\w.~+/-]{8,4000}={0,2})"),
    *form(
        "identified IDENTIFIED",
        rf"(?i:identified\s{{1,4}}(?:with\s{{1,4}}\w{{1,40}}\s{{1,4}})?by)\s{{1,4}}{_QUOTED}",
    ),
    *form("asic", r"asic (?P<secret>[A-Za-z0-9+/]{6,2000}={0,2})", good=_is_login),
    *form("auth", rf"auth{_Q}\s?:\s?{_Q}(?P<secret>[A-Za-z0-9+/]{{6,2000}}={{0,2}}){_Q}", good=_is_login),
)
_LOWERED: tuple[Form, ...] = (
    *form("login", r"(?i:login\s{1,4}\S{1,100}\s{1,4}password)\s{1,4}(?P<secret>\S{1,500})", good=_may_be_password),
    *form(
        "login",
        r"(?i:(?<=docker )|(?<=podman ))(?i:login)\b[^\n]{0,100}?"
        rf"\s(?:-p|--password)[ =]?{_Q}?(?P<secret>[^\s\"'-][^\s\"']{{0,200}})",
    ),
    *form("-u", rf"(?<=\s)-u[ =]?{_Q}?[\w.@\\-]{{1,100}}:(?P<secret>[^\s\"'${{<]{{1,500}})"),
    *form("--user --proxy-user", rf"--(?:proxy-)?user[ =]{_Q}?[\w.@\\-]{{1,100}}:(?P<secret>[^\s\"'${{<]{{1,500}})"),
    *form(
        "mysql mariadb sshpass redis-cli mongo",
        rf"[a-z-]{{5,9}}\w{{0,8}}\b[^\n]{{0,100}}?\s-[pa]\s?{_Q}?(?P<secret>[^\s\"'-][^\s\"']{{0,200}})",
    ),
)
FORMS = _EXACT
LOWERED = ("login", " -u", "--user", "--proxy-user", "mysql", "mariadb", "sshpass", "redis-cli", "mongo")
OTHERS = ("BEGIN", "aws", "@")
"""What `spans` looks for besides the triggers of FORMS; the first ones in lower case."""
NEEDLESS = frozenset({"//", "auth", "key", "secret", "user", ":thin:"})
"""Triggers of shapes that have an @ or the core of a name, too."""


def spans(text: str, lowered: str) -> Iterator[Span]:
    """Where secrets stand in these shapes; they may overlap. `lowered` is `text` in lower case, or itself."""
    for each in _EXACT:
        if each.trigger in text:
            yield from each.spans(text)
    for each in _LOWERED:
        if each.trigger in lowered:
            yield from each.spans(text)
    yield from _blocks(text)
    yield from _accounts(text)
    if "AKIA" in text or "ASIA" in text or "aws" in lowered:
        yield from (found.span() for found in _AWS_SECRET.finditer(text) if _is_aws_secret(found[0]))
    for digits in _DIGITS.finditer(text):
        found = _CARD.match(text, digits.start())
        if found is None or not _is_card(found[0]):
            continue
        if not found[0].isdecimal() or _CARD_WORD.search(text, max(found.start() - _BEFORE_CARD, 0), found.start()):
            yield found.span()


def _blocks(text: str) -> Iterator[Span]:
    """Keys as PEM: to the end of each, or over all that may be of it if that is missing."""
    place = text.find("BEGIN ")
    while place >= 0:
        found, end = _BLOCK.match(text, place), place + 1
        if found is not None:
            mark = text.find("-----END", found.end(), found.end() + MAX_BLOCK)
            last = _BLOCK_END.match(text, mark) if mark >= 0 else _BLOCK_BODY.match(text, found.end())
            end = last.end() if last else found.end()
            stem = text[max(place - 6, 0) : place]
            yield place - (len(stem) - len(stem.rstrip("- "))), end
        place = text.find("BEGIN ", end)


def _accounts(text: str) -> Iterator[Span]:
    """`ada:password@host`, with no scheme before it; not an image's tag and digest."""
    place = text.find("@")
    while place >= 0:
        if place and not text[place - 1].isspace() and not text.startswith("sha", place + 1):
            found = _ACCOUNT.search(text, max(place - 262, 0), place)
            if found and values.looks_random(found["secret"]):
                yield found.span("secret")
        place = text.find("@", place + 1)


def _is_aws_secret(value: str) -> bool:
    return all(any(map(kind, value)) for kind in (str.isupper, str.islower, str.isdecimal))


def _is_card(value: str) -> bool:
    """Luhn's check, and as many digits as a card has that begins so."""
    digits = [int(character) for character in value if character.isdecimal()]
    first, n_digits = digits[0] * 10 + digits[1], len(digits)
    lengths = {3: (14, 15, 16), 4: (13, 16, 19), 5: (16,), 6: (16, 19)}[digits[0]]
    if n_digits not in lengths or (digits[0] == 5 and first > 55) or (first in (34, 37)) is not (n_digits == 15):
        return False
    return len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(_LUHN[digit] for digit in digits[-2::-2])) % 10 == 0

"""Texts that nothing else contains, and where they are met again."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Callable, Set
from dataclasses import dataclass

MARK = "zqxkvjw"
"""Each canary begins so. Letters alone: they are the same in JSON, in a URL and in the name of a task."""
LENGTH = 9
"""Letters after the mark; none that could be taken for a hex digit, as which Dask would drop it from a name."""

On = Set[str]
"""Names of the switches that are on."""


@dataclass(frozen=True)
class Rule:
    """Under which switches a canary may leave, and under which it surely does."""

    may: Callable[[On], bool]
    must: Callable[[On], bool]


ALWAYS = Rule(lambda on: True, lambda on: True)
NEVER = Rule(lambda on: False, lambda on: False)


def needs(*switches: str, may: str = "") -> Rule:
    """Leaves where all of these are on; where `may` is on, it is allowed to."""
    return Rule(lambda on: on >= frozenset(switches) or may in on, lambda on: on >= frozenset(switches))


def only_may(*switches: str) -> Rule:
    """May leave if one of these is on; it is nobody's duty to bring it."""
    return Rule(lambda on: bool(on & frozenset(switches)), lambda on: False)


def secret(carrier: str) -> Rule:
    """A secret in something that is sent."""
    return Rule(*[lambda on: carrier in on and "scrub" not in on] * 2)


class Canaries:
    """Makes one text for each name, and finds them again."""

    def __init__(self, rules: dict[str, Rule]) -> None:
        letters = random.Random(4711)
        self.rules = rules
        self.texts = {name: MARK + "".join(letters.choices("ghkmnprstvwy", k=LENGTH)) for name in rules}
        self.planted: set[str] = set()

    def __getitem__(self, name: str) -> str:
        """The text of a canary, which counts as planted from now on."""
        self.planted.add(name)
        return self.texts[name]

    def found(self, raw: bytes) -> set[str]:
        """Names of those in it, also cut ones. A disguised one stands under the name of its disguise."""
        pieces = {piece.decode() for piece in _PLAIN.findall(raw.lower())}
        names = {name for name, text in self.texts.items() if any(text.startswith(piece) for piece in pieces)}
        return names | {f"a canary as {kind}" for kind, forms in _DISGUISES.items() if any(f in raw for f in forms)}

    def check(self, raw: bytes, on: frozenset[str]) -> None:
        """All that may not leave did not, and all that may did."""
        found = self.found(raw)
        leaked = {name for name in found if name not in self.rules or not self.rules[name].may(on)}
        missing = {name for name, rule in self.rules.items() if rule.must(on) and name not in found}
        assert not leaked, f"with {sorted(on)} on, these left: {_places(raw, self.texts, leaked)}"
        assert not missing, f"with {sorted(on)} on, these never came, which proves nothing: {sorted(missing)}"


def _base64(text: bytes) -> list[bytes]:
    """Its letters in Base64 that are the same whatever stands before and after, for each of three places."""
    return [base64.b64encode(b"\0" * before + text)[(before * 8 + 5) // 6 : (before + len(text)) * 8 // 6]
            for before in range(3)]  # fmt: skip


_PLAIN = re.compile(MARK.encode() + b"[a-z]{0,%d}" % LENGTH)
_CASES = [MARK.encode(), MARK.upper().encode()]
_DISGUISES: dict[str, list[bytes]] = {
    "base64": [form for text in _CASES for form in _base64(text)],
    "utf-16": [form for text in _CASES for form in ("".join(f"{chr(c)}\0" for c in text).encode()[:-1],)],
    "hex": [form for text in _CASES for form in (text.hex().encode(), text.hex().upper().encode())],
    "JSON escapes": [form for text in _CASES for form in ("".join(f"\\u{c:04x}" for c in text).encode(),)],
    "backwards": [text[::-1] for text in _CASES],
    "UTF-16 in base64": [form for text in _CASES for form in _base64("".join(f"{chr(c)}\0" for c in text).encode())],
}
"""Forms that no canary has a reason to take, whatever is on."""


def _places(raw: bytes, texts: dict[str, str], names: set[str]) -> dict[str, list[bytes]]:
    """What stands around each."""
    shown: dict[str, list[bytes]] = {}
    for name in sorted(names):
        text = texts.get(name, "").encode()
        at = [found.start() for found in re.finditer(re.escape(text), raw.lower())] if text else []
        shown[name] = [raw[max(start - 150, 0) : start + 50] for start in at[:3]]
    return shown

"""The grammar of object keys, one for all worlds (see ports.ObjectStore)."""

from __future__ import annotations

import re

_SEGMENT = r"(?!\.{1,2}(?:/|\Z))[a-zA-Z0-9=._-]+"
_KEY = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
_PREFIX = re.compile(rf"(?:{_SEGMENT}/)*[a-zA-Z0-9=._-]*")
_ALLOWED = "segments of a-z A-Z 0-9 = . _ - with single slashes between, none of them '.' or '..'"


def check_key(key: str) -> None:
    """Raises ValueError for what can be no key."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is no object key; allowed: {_ALLOWED}.")


def check_prefix(prefix: str) -> None:
    """Raises ValueError for what no key can start with."""
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(f"{prefix!r} is no start of an object key; keys are {_ALLOWED}.")

"""What an option's value may be: `parser(key, value)` gives what is in force, or raises SettingsError that names key,
value and what is allowed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dask.utils import parse_timedelta

from daskscope.errors import SettingsError
from daskscope.privacy import own

LEVELS: dict[str, int | None] = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50, "off": None}
"""Words for the least level of log lines, and the numbers that `logging` has for them."""
NOT_SHOWN = "(not shown)"
"""Stands in an error for a value that may be a secret, or hold one."""


def default_data() -> Path:
    """The user's own data folder, as the platform has it (XDG on Linux)."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "daskscope"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "daskscope"


def url(key: str, value: Any) -> str | None:
    if value is None or value == "auto":
        return None
    try:
        parts = urlsplit(value)
        if parts.scheme == "file":  # a folder in place of a server
            good = parts.netloc in ("", "localhost") and parts.path.startswith("/") and parts.path.strip("/")
        else:
            good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        # What stands in these would stand in every link.
        good = good and "@" not in parts.netloc and not parts.query and not parts.fragment
        good = good and value.isprintable() and " " not in value  # line breaks are left out of `parts`
    except (ValueError, TypeError, AttributeError):  # AttributeError: a number; ValueError: a port that is none
        good = False
    if not good:
        raise SettingsError(
            f"daskscope.{key}",
            NOT_SHOWN,  # there may be a password anywhere in it
            "http://HOST:PORT, https://HOST, file:///FOLDER, or null to look for a server here",
        )
    return value.rstrip("/")


def token(key: str, value: Any) -> str | None:
    if value is None or (isinstance(value, str) and re.fullmatch(r"[!-~]+", value)):
        return value
    # Its value is not for a traceback; a line break at its end would show it in the HTTP client's error, too.
    raise SettingsError(f"daskscope.{key}", NOT_SHOWN, "a token without spaces or line breaks, or null")


def text(key: str, value: Any) -> str | None:
    if value is None or (isinstance(value, str) and value):
        return value
    raise SettingsError(f"daskscope.{key}", value, "a text, or null")


def folder(key: str, value: Any) -> str:
    if value is None:
        return str(default_data())
    if isinstance(value, str) and value:
        return str(Path(value).expanduser().absolute())
    raise SettingsError(f"daskscope.{key}", value, "a folder's path, or null")


def optional_folder(key: str, value: Any) -> str | None:
    return None if value is None else folder(key, value)


def account(key: str, value: Any) -> str | None:
    if value is None or (isinstance(value, str) and re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", value)):
        return value
    raise SettingsError(f"daskscope.{key}", value, "1 to 63 of a-z, 0-9 and '-', or null for the token's own account")


def switch(key: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise SettingsError(f"daskscope.{key}", value, "true or false")


def interval(key: str, value: Any) -> float:
    return _time(key, value, 0.1, 3600, "a time from 100 ms to 1 hour, like '10s'")


def optional_interval(key: str, value: Any) -> float | None:
    return None if value is None else _time(key, value, 0.1, 3600, "a time from 100 ms to 1 hour, like '15s', or null")


def _time(key: str, value: Any, least_s: float, most_s: float, allowed: str) -> float:
    if isinstance(value, bool):
        raise SettingsError(f"daskscope.{key}", value, allowed)
    try:
        seconds = float(parse_timedelta(value))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SettingsError(f"daskscope.{key}", value, allowed) from error
    if not least_s <= seconds <= most_s:
        raise SettingsError(f"daskscope.{key}", value, allowed)
    return seconds


def profile_interval(key: str, value: Any) -> float:
    return _time(key, value, 1.0, 3600, "a time from 1 s to 1 hour, like '60s'")


def span_of_time(key: str, value: Any) -> float | None:
    return (
        None
        if value is None
        else _time(key, value, 1.0, 30 * 86_400, "a time from 1 s to 30 days, like '20m', or null")
    )


def level(key: str, value: Any) -> int | None:
    """The number that `logging` has for it; None for off."""
    word = "off" if value is False or value is None else value  # YAML reads a bare `off` as false
    if isinstance(word, str) and word.lower() in LEVELS:
        return LEVELS[word.lower()]
    raise SettingsError(f"daskscope.{key}", value, ", ".join(LEVELS))


def topics(key: str, value: Any) -> tuple[str, ...]:
    items: list[Any] = list(value) if isinstance(value, (list, tuple)) else [None]
    if all(isinstance(item, str) for item in items):
        return tuple(items)
    raise SettingsError(f"daskscope.{key}", value, 'a list of event topics, or ["*"] for all of them')


def words(key: str, value: Any) -> tuple[str, ...]:
    items: list[Any] = list(value) if isinstance(value, (list, tuple)) else [None]
    if all(isinstance(item, str) and re.fullmatch(r"\w[\w.-]*", item) for item in items):
        return tuple(items)
    raise SettingsError(f"daskscope.{key}", value, "a list of names, each of letters, digits, '_', '-' and '.'")


def patterns(key: str, value: Any) -> tuple[str, ...]:
    """Of one that cannot be used, its number is told: a pattern may be a secret that somebody wants masked."""
    items: list[Any] = list(value) if isinstance(value, (list, tuple)) else [None]
    for n, item in enumerate(items, 1):
        try:
            if not isinstance(item, str) or re.compile(item).match(""):
                raise ValueError("it is no text, or matches an empty one")
            own.check(*items[:n])
        except (re.error, ValueError) as error:
            allowed = f"a list of regular expressions that match some text, never an empty one (number {n}: {error})"
            raise SettingsError(f"daskscope.{key}", NOT_SHOWN, allowed) from None
    return tuple(items)


def percent(key: str, value: Any) -> float | None:
    """Of one core; None for no limit."""
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0.01 <= value <= 100:
        return float(value)
    raise SettingsError(f"daskscope.{key}", value, "a number from 0.01 to 100, or null")


def tags(key: str, value: Any) -> dict[str, str]:
    if isinstance(value, Mapping):
        pairs: dict[Any, Any] = dict(value)
        if all(isinstance(k, str) and isinstance(v, (str, int, float)) for k, v in pairs.items()):
            return {k: str(v) for k, v in pairs.items()}
    raise SettingsError(f"daskscope.{key}", value, "a mapping of texts to texts")

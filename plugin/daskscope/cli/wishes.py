"""What an account wants, as it is typed on a command line, and as it is shown: in the same words."""

from __future__ import annotations

from typing import Any

import click

from daskscope.arguments import seconds
from daskscope.errors import SettingsError
from daskscope.records import Record

NEVER = "never"
LEAST_S, MOST_DAYS = 60, 36_500
"""Of an idle timeout; of days that something is kept."""
_SPAN = f"{NEVER}, or a time span of {LEAST_S} s or more with its unit, like '2h' or '30 minutes'"


def text(found: dict[str, Any]) -> str:
    """A line for each thing that is wanted, in the words that change it."""
    lines: dict[str, str] = {}
    for subject, wish in found.items():
        pairs: dict[str, Any] = wish if isinstance(wish, dict) else {}
        for name, value in pairs.items():
            inner: dict[str, Any] = value if isinstance(value, dict) else {"": value}
            for key, one in inner.items():
                place = f"{subject} {_ONE.get(name, name)} {key}".rstrip()
                lines[place] = _typed(one) if subject == "idle" else NEVER if one is None else str(one)
    return Record(lines).text()


def _typed(timeout_s: float | None) -> str:
    """As one may type it."""
    if timeout_s is None:
        return NEVER
    unit, in_s = next((unit, in_s) for unit, in_s in _UNITS.items() if timeout_s % in_s == 0 or in_s == 1)
    return f"{timeout_s / in_s:g}{unit}"


_ONE = {"users": "user", "clusters": "cluster", "timeout_s": "timeout"}
_UNITS = {"h": 3600, "m": 60, "s": 1}


def named(pairs: tuple[str, ...]) -> dict[str, str]:
    """Name to what is said of it; empty for what is taken back. Raises UsageError."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, is_said, value = pair.partition("=")
        if not (name and is_said):
            raise click.UsageError(f"{pair} is no NAME=VALUE.")
        found[name] = value
    return found


def seconds_of(span: str) -> int | None:
    """Seconds; None for never. Raises SettingsError."""
    if span == NEVER:
        return None
    found = seconds(span, "the timeout", _SPAN)
    if span.strip()[-1:].isdigit() or found is None or found < LEAST_S:  # Dask takes a bare number for seconds
        raise SettingsError("the timeout", span, _SPAN)
    return found


def days(number: str) -> int:
    if not (number.isascii() and number.isdigit() and len(number) < 10 and 1 <= int(number) <= MOST_DAYS):
        raise click.UsageError(f"{number} is no number of days; allowed: 1 to {MOST_DAYS}.")
    return int(number)

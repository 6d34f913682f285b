"""Query parameters to values. Raises BadParameterError that says what is allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from daskscope.wire import LATEST_MS
from daskscope_lambdas.handlers.errors import BadParameterError
from daskscope_lambdas.service.observed import LEVELS, Lines

Parameters = Mapping[str, str]

MEMBERS = ("scheduler", "worker", "client")
LOGGING = ("scheduler", "worker", "nanny")
"""Roles of the processes that are known, and of those that log."""
ORIGINS = ("user", "scheduler", "dask")

MAX_LIMIT, MAX_LAKE_LIMIT = 1000, 20_000
"""Of lists out of the registry, and out of the lake: there each page is a question of its own, and its bytes are
bounded."""
MAX_LONG, MAX_LINES = 1000, 5000
"""Of lists out of the lake whose records have long texts or lists of their own, and of log lines: all that is asked for
is in memory before a page of it is cut."""
LONGEST_S = 1e10
"""Three hundred years: as good as for ever, and no date overflows."""

MAX_POINTS = 600
"""Of a line over time."""
MAX_NAMED = 100
"""Entries of a comma list."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_LAST = datetime(9000, 1, 1, tzinfo=UTC)
"""Nothing is later, and days may still be added."""
_CURSOR = re.compile(r"([0-9]{1,9})_([0-9]{1,15})_([0-9]{1,15})")
_BLANK_ZONE = re.compile(r"(.+[T:].+) (\d\d(?::?\d\d)?)$")
"""A time whose zone begins with a blank: a `+` that nobody escaped."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a page of a list out of the lake begins, and what it and the first one must agree on: they see what was
    received `until` then, and count times back from `asked_at` (epoch seconds)."""

    offset: int
    until: datetime | None
    asked_at: float

    def cursor(self) -> str:
        until_ms = 0 if self.until is None else (self.until - _EPOCH) // timedelta(milliseconds=1)
        return f"{self.offset}_{until_ms}_{round(self.asked_at * 1000)}"


def position(given: Parameters, now: float) -> Position:
    text = given.get("cursor")
    if text is None:
        return Position(0, None, now)
    if found := _CURSOR.fullmatch(text):
        offset, until_ms, asked_ms = map(int, found.groups())
        if max(until_ms, asked_ms) <= LATEST_MS:
            return Position(offset, _EPOCH + timedelta(milliseconds=until_ms), asked_ms / 1000)
    raise BadParameterError(f"cursor is {text!r}; allowed: the cursor from the page before.")


def limit(given: Parameters, default: int = 100, most: int = MAX_LIMIT) -> int:
    return _number(given, "limit", default, most)


def offset(given: Parameters) -> int:
    """Where the computations on a cluster's page begin."""
    text = given.get("cursor", "0")
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return int(text)
    raise BadParameterError(f"cursor is {text!r}; allowed: the cursor from the page before.")


def moment(given: Parameters, name: str, now: float) -> datetime | None:
    """Seconds back from `now` (epoch seconds), or a time in ISO 8601, in UTC if it names no zone; from 1970 to 9000."""
    text = given.get(name)
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = None
    if seconds is None:
        with suppress(ValueError, OverflowError):
            at = datetime.fromisoformat(_BLANK_ZONE.sub(r"\1+\2", text))
            at = at if at.tzinfo else at.replace(tzinfo=UTC)
            # Compared before it is moved to UTC, which the first and last days there are do not survive.
            return _EPOCH if at <= _EPOCH else _LAST if at >= _LAST else at.astimezone(UTC)
    elif 0 <= seconds <= LONGEST_S:
        return datetime.fromtimestamp(max(now - seconds, 0.0), UTC)
    raise BadParameterError(
        f"{name} is {text!r}; allowed: seconds back from now (604800 is a week), or a time like 2026-11-21T08:00:00Z."
    )


def between(given: Parameters, now: float) -> tuple[datetime | None, datetime | None]:
    """`since` and `until` as `moment` takes them; the first must not be after the other."""
    since, until = moment(given, "since", now), moment(given, "until", now)
    if since and until and since > until:
        raise BadParameterError(f"since ({since:%Y-%m-%dT%H:%M:%SZ}) is after until ({until:%Y-%m-%dT%H:%M:%SZ}).")
    return since, until


def level(given: Parameters) -> int | None:
    """The least level of log lines, as `logging` counts."""
    text = given.get("level")
    if not text:
        return None
    if text.lower() in LEVELS:
        return LEVELS[text.lower()]
    if text.isascii() and text.isdigit() and len(text) <= 4:
        return int(text)
    raise BadParameterError(f"level is {text!r}; allowed: {', '.join(LEVELS)}, or a number of Python's logging.")


def lines(given: Parameters, now: float) -> Lines:
    """Which log lines, of the clusters of a `user` where there are many."""
    since, until = between(given, now)
    return Lines(
        level=level(given),
        role=role(given, LOGGING),
        workers=several(given, "workers"),
        scheduler=switch(given, "scheduler"),
        text=given.get("text") or None,
        since=since,
        until=until,
        user=given.get("user") or None,
        ascending=not descending(given),
    )


def role(given: Parameters, roles: Sequence[str]) -> str | None:
    return one_of(given, "role", roles)


def origin(given: Parameters) -> str | None:
    return one_of(given, "origin", ORIGINS)


def by_prefix(given: Parameters) -> bool:
    return one_of(given, "by", ("prefix",)) is not None


def switch(given: Parameters, name: str) -> bool | None:
    found = one_of(given, name, ("true", "false"))
    return None if found is None else found == "true"


def points(given: Parameters) -> int:
    """Of a line over time."""
    return _number(given, "points", MAX_POINTS, MAX_POINTS)


def descending(given: Parameters, default: bool = True) -> bool:
    """`order`: whether the latest comes first."""
    found = one_of(given, "order", ("asc", "desc"))
    return default if found is None else found == "desc"


def sort(given: Parameters, allowed: Sequence[str], default: str) -> str:
    """One of `allowed`, with a leading `-` for the greatest (or latest, or last in the alphabet) first."""
    text = given.get("sort") or default
    if text.removeprefix("-") not in allowed:
        raise BadParameterError(
            f"sort is {text!r}; allowed: {', '.join(allowed)}, each with a leading - for the greatest first."
        )
    return text


def several(given: Parameters, name: str, allowed: Sequence[str] | None = None) -> list[str]:
    """The entries of a comma list, each once; `allowed` None takes any. Empty for none."""
    found = list(dict.fromkeys(each for part in given.get(name, "").split(",") if (each := part.strip())))
    if len(found) > MAX_NAMED:
        raise BadParameterError(f"{name} names {len(found)} things; allowed: {MAX_NAMED} at most, with commas between.")
    if allowed is not None and (odd := [each for each in found if each not in allowed]):
        raise BadParameterError(f"{name} has {odd[0]!r}; allowed: {', '.join(allowed)}, with commas between.")
    return found


def _number(given: Parameters, name: str, default: int, most: int) -> int:
    text = given.get(name) or str(default)
    if text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= most:
        return int(text)
    raise BadParameterError(f"{name} is {text!r}; allowed: 1 to {most}.")


def one_of(given: Parameters, name: str, allowed: Sequence[str]) -> str | None:
    """An empty value is none, as from a form."""
    text = given.get(name) or None
    if text is not None and text not in allowed:
        raise BadParameterError(f"{name} is {text!r}; allowed: {', '.join(allowed)}.")
    return text

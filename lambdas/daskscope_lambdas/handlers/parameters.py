"""Query parameters to values. Raises BadParameterError that says what is allowed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import get_args

from daskscope.wire import LATEST_MS
from daskscope_lambdas.handlers.errors import BadParameterError
from daskscope_lambdas.service.catalog import Filter
from daskscope_lambdas.service.observed import LEVELS
from daskscope_lambdas.service.records import Status

Parameters = Mapping[str, str]

_STATES: dict[str, Status] = {state: state for state in get_args(Status)}

MEMBERS = ("scheduler", "worker", "client")
LOGGING = ("scheduler", "worker", "nanny")
"""Roles of the processes that are known, and of those that log."""
ORIGINS = ("user", "scheduler", "dask")

MAX_LIMIT, MAX_LAKE_LIMIT = 1000, 20_000
"""Of lists out of the registry, and out of the lake: there each page is a question of its own, and its bytes are
bounded."""
LONGEST_S = 1e10
"""Three hundred years: as good as for ever, and no date overflows."""

_EPOCH = datetime.fromtimestamp(0, UTC)
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
    text = given.get("limit")
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= most:
        return int(text)
    raise BadParameterError(f"limit is {text!r}; allowed: 1 to {most}.")


def offset(given: Parameters) -> int:
    """Where the computations on a cluster's page begin."""
    text = given.get("cursor", "0")
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return int(text)
    raise BadParameterError(f"cursor is {text!r}; allowed: the cursor from the page before.")


def since_s(given: Parameters) -> float | None:
    text = given.get("since")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_S:
        raise BadParameterError(f"since is {text!r}; allowed: seconds back from now, like 604800 for a week.")
    return seconds


def moment(given: Parameters, name: str, now: float) -> datetime | None:
    """Seconds back from `now` (epoch seconds), or a time in ISO 8601, in UTC if it names no zone."""
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
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    elif 0 <= seconds <= LONGEST_S:
        return datetime.fromtimestamp(max(now - seconds, 0.0), UTC)
    raise BadParameterError(f"{name} is {text!r}; allowed: seconds back from now, or a time like 2026-11-21T08:00:00Z.")


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


def role(given: Parameters, roles: Sequence[str]) -> str | None:
    return _one_of(given, "role", roles)


def origin(given: Parameters) -> str | None:
    return _one_of(given, "origin", ORIGINS)


def by_prefix(given: Parameters) -> bool:
    return _one_of(given, "by", ("prefix",)) is not None


def switch(given: Parameters, name: str) -> bool | None:
    found = _one_of(given, name, ("true", "false"))
    return None if found is None else found == "true"


def _one_of(given: Parameters, name: str, allowed: Sequence[str]) -> str | None:
    """An empty value is none, as from a form."""
    text = given.get(name) or None
    if text is not None and text not in allowed:
        raise BadParameterError(f"{name} is {text!r}; allowed: {', '.join(allowed)}.")
    return text


def wanted(given: Parameters) -> Filter:
    """The filters of the list of clusters; an empty value filters nothing, as from a form."""
    state = _one_of(given, "status", list(_STATES))
    return Filter(since_s=since_s(given), user=given.get("user") or None, status=_STATES.get(state or ""))

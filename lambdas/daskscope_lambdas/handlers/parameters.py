"""Query parameters to values. Raises BadParameterError that says what is allowed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import get_args

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

MAX_LIMIT = 1000
LONGEST_S = 1e10
"""Three hundred years: as good as for ever, and no date overflows."""


def limit(given: Parameters, default: int = 100) -> int:
    text = given.get("limit")
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MAX_LIMIT:
        return int(text)
    raise BadParameterError(f"limit is {text!r}; allowed: 1 to {MAX_LIMIT}.")


def offset(given: Parameters) -> int:
    """The cursor of lists that come out of the lake."""
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
            at = datetime.fromisoformat(text)
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

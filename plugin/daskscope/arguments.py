"""What the asking functions are told: how far back, of whom, about which cluster."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Literal

from dask.utils import parse_timedelta

from daskscope.errors import SettingsError

Since = str | float | timedelta | None
"""How far back: a time span as Dask reads it ("7 days", "36h"), seconds, or None for all history."""

Moment = Since | datetime
"""A point in time: how far back, a datetime, or text in ISO 8601; of UTC where it names no zone, as records show it."""

Cluster = int | str
"""What names a cluster: its number in the account, its scheduler's id, or its UUID."""

Status = Literal["running", "stopped", "lost"]
Done = Literal["running", "finished", "erred", "unfinished", "unknown"]
"""How a computation stands."""
Origin = Literal["user", "scheduler", "dask"]
"""Who failed: a task's own code; the scheduler, which gave a task up; Dask itself."""
Role = Literal["scheduler", "worker", "client"]
Logging = Literal["scheduler", "worker", "nanny"]
Scope = Literal["read", "ingest", "control", "report", "admin"]
UserRole = Literal["admin", "member", "viewer"]
"""What somebody is in an account: who looks after it, who computes, who looks."""
Subject = Literal["reports", "idle", "retention"]
"""What an account may want something of."""

LEVELS = ("debug", "info", "warning", "error", "critical")

AUTO = "auto"
"""Of `since`: a cluster's whole life where one is named, else the last week."""
WEEK = "7 days"

Timeout = str | float | timedelta
TIMEOUT = "60 s"
"""How long to wait for one answer of a server."""

_DATE = re.compile(r"\d{4}-")
_SPANS = "a time span like '7 days', '36h' or '15 minutes', a number of seconds, a timedelta"
_FOREVER = "None for all history"


def cluster_of(cluster_id: Cluster | None, scheduler_id: str | None) -> Cluster | None:
    if cluster_id is not None and scheduler_id is not None:
        raise SettingsError("scheduler_id", scheduler_id, "None beside a cluster_id: give one of the two")
    return scheduler_id if cluster_id is None else cluster_id


def one_of(account: str | None, workspace: str | None) -> str | None:
    if account is not None and workspace is not None and account != workspace:
        raise SettingsError("workspace", workspace, f"nothing beside account={account!r}: they are words for the same")
    return workspace if account is None else account


def among(name: str, value: str | None, allowed: tuple[str, ...]) -> str | None:
    """`value` itself. Raises SettingsError if it is none of these."""
    if value is not None and value not in allowed:
        raise SettingsError(name, value, ", ".join(allowed))
    return value


def without(reason: str, **given: object) -> None:
    """Raises SettingsError if one of these was given: the question does not take it, and says why."""
    for name, value in given.items():
        if value is not None:
            raise SettingsError(name, value, f"None {reason}")


def comma_list(name: str, value: str | Iterable[str] | None) -> str | None:
    """One name or several, as the API takes them. Raises SettingsError for a name with a comma in it."""
    if value is None or isinstance(value, str):
        return value or None
    names = [*map(str, value)]
    for each in names:
        if "," in each:
            raise SettingsError(name, each, "names without a comma")
    return ",".join(names) or None


def seconds(since: Since, name: str = "since", allowed: str = f"{_SPANS}, or {_FOREVER}") -> int | None:
    """Whole seconds back from now. Raises SettingsError."""
    if since is None:
        return None
    try:
        found = float(parse_timedelta(since))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise SettingsError(name, since, allowed) from error
    if not 0 < found < float("inf"):
        raise SettingsError(name, since, allowed)
    return math.ceil(found)


def timeout_of(timeout: Timeout) -> int:
    """Whole seconds. Raises SettingsError."""
    found = seconds(timeout, "timeout", _SPANS)
    assert found is not None  # only of None, which is no timeout
    return found


def moment(at: Moment, name: str) -> int | str | None:
    """Seconds back from now, or a time in ISO 8601. Raises SettingsError."""
    allowed = f"{_SPANS}, a datetime, text like 2026-11-21T08:00Z, or {_FOREVER}"
    try:
        if isinstance(at, datetime):
            found = at
        elif isinstance(at, str) and _DATE.match(at):
            found = datetime.fromisoformat(at)
        else:
            return seconds(at, name, allowed)
        zoned = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        if isinstance(error, SettingsError):
            raise
        raise SettingsError(name, at, allowed) from error
    return zoned.isoformat().replace("+00:00", "Z")


def begin(since: Moment, cluster: Cluster | None) -> int | str | None:
    """`since`, where AUTO stands for all of a cluster, or for a week of all clusters. Raises SettingsError."""
    if since == AUTO:
        return None if cluster is not None else seconds(WEEK)
    return moment(since, "since")


def count(name: str, value: int | None) -> int | None:
    """`value` itself, of which there is at least one. Raises SettingsError."""
    try:
        found = None if value is None or isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    if value is not None and (found is None or found < 1):
        raise SettingsError(name, value, "a whole number of 1 or more, or None for all")
    return found


def level_of(wanted: str | int | None) -> str | int | None:
    """The least level of log lines, a word or a number of Python's logging. Raises SettingsError."""
    text = str(wanted).lower()
    if wanted is None or text in LEVELS or (text.isascii() and text.isdigit() and len(text) <= 4):
        return wanted
    raise SettingsError("level", wanted, f"{', '.join(LEVELS)}, or a number of Python's logging")

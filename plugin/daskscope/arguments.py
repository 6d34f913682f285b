"""What the asking functions are told: how far back, of whom, about which cluster."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from dask.utils import parse_timedelta

from daskscope.connection import PAGE, Connection
from daskscope.errors import SettingsError
from daskscope.records import Records

Since = str | float | timedelta | None
"""How far back: a time span as Dask reads it ("7 days", "36h"), seconds, or None for all history."""

_DATE = re.compile(r"\d{4}-")

Moment = Since | datetime
"""A point in time: how far back, a datetime, or text in ISO 8601; of UTC where it names no zone, as records show it."""

LEVELS = ("debug", "info", "warning", "error", "critical")


def of_cluster(
    cluster: int | str,
    what: str,
    account: str | None,
    limit: int | None,
    columns: tuple[str, ...],
    *,
    size: int = PAGE,
    **query: Any,
) -> Records:
    """A list of one cluster, by its number, scheduler id or UUID."""
    place = quote(str(cluster), safe="")
    with Connection(account) as connection:
        page = f"analytics/clusters/{place}"
        return connection.records(f"/clusters/{place}/{what}", query, limit, columns, page=page, size=size)


def cluster_of(cluster_id: int | str | None, scheduler_id: str | None) -> str | None:
    if cluster_id is not None and scheduler_id is not None:
        raise SettingsError("scheduler_id", scheduler_id, "None beside a cluster_id: give one of the two")
    return scheduler_id if cluster_id is None else str(cluster_id)


def one_of(account: str | None, workspace: str | None) -> str | None:
    if account is not None and workspace is not None and account != workspace:
        raise SettingsError("workspace", workspace, f"nothing beside account={account!r}: they are words for the same")
    return workspace if account is None else account


def among(name: str, value: str | None, allowed: tuple[str, ...]) -> str | None:
    """`value` itself. Raises SettingsError if it is none of these."""
    if value is not None and value not in allowed:
        raise SettingsError(name, value, ", ".join(allowed))
    return value


def seconds(since: Since, name: str = "since") -> int | None:
    if since is None:
        return None
    allowed = (
        "a time span like '7 days', '36h' or '15 minutes', a number of seconds, a timedelta, or None for all history"
    )
    try:
        found = float(parse_timedelta(since))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise SettingsError(name, since, allowed) from error
    if not 0 < found < float("inf"):
        raise SettingsError(name, since, allowed)
    return math.ceil(found)


def moment(at: Moment, name: str) -> int | str | None:
    """Seconds back from now, or a time in ISO 8601. Raises SettingsError."""
    allowed = "a time span like '36h', a number of seconds, a timedelta, a datetime, or text like 2026-11-21T08:00Z"
    try:
        if isinstance(at, datetime):
            found = at
        elif isinstance(at, str) and _DATE.match(at):
            found = datetime.fromisoformat(at)
        else:
            return seconds(at, name)
        zoned = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise SettingsError(name, at, allowed) from error
    return zoned.isoformat().replace("+00:00", "Z")


def level_of(wanted: str | int | None) -> str | int | None:
    """The least level of log lines, a word or a number of Python's logging. Raises SettingsError."""
    text = str(wanted).lower()
    if wanted is None or text in LEVELS or (text.isascii() and text.isdigit() and len(text) <= 4):
        return wanted
    raise SettingsError("level", wanted, f"{', '.join(LEVELS)}, or a number of Python's logging")

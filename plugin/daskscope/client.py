"""What happened, as Python lists: the HTTP API's calls as functions, latest first, fetched to the end.

Names and arguments are those that users of `coiled.analytics` know; `workspace` is another word for `account`.
Every function raises the errors of `daskscope.errors`.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any, Literal, get_args
from urllib.parse import quote

from dask.utils import parse_timedelta

from daskscope.connection import Connection
from daskscope.errors import SettingsError
from daskscope.records import Records

Since = str | float | timedelta | None
"""How far back: a time span as Dask reads it ("7 days", "36h"), seconds, or None for all history."""
Status = Literal["running", "stopped", "lost"]

_CLUSTERS = ("id", "name", "user", "status", "created", "workers", "threads", "memory", "n_tasks", "n_tasks_erred")
_COMPUTATIONS = ("id", "status", "start", "stop", "n_tasks", "states", "seconds", "bytes")
_EXCEPTIONS = ("cluster_id", "user", "last", "count", "type", "text", "prefix")
_EVENTS = ("cluster_id", "time", "topic", "action", "worker", "detail")


def list_clusters(
    account: str | None = None,
    since: Since = "7 days",
    user: str | None = None,
    *,
    status: Status | None = None,
    limit: int | None = None,
    workspace: str | None = None,
) -> Records:
    """Clusters that were heard of in that time, latest start first."""
    if status is not None and status not in get_args(Status):
        raise SettingsError("status", status, ", ".join(get_args(Status)))
    query = {"since": _seconds(since), "user": user, "status": status}
    with Connection(_one_of(account, workspace)) as connection:
        return connection.records("/clusters", query, limit, _CLUSTERS, page="analytics")


def list_computations(
    cluster_id: int | str | None = None,
    scheduler_id: str | None = None,
    account: str | None = None,
    *,
    limit: int | None = None,
    workspace: str | None = None,
) -> Records:
    """Computations of one cluster with their task groups and code, latest first."""
    cluster = _cluster(cluster_id, scheduler_id)
    if cluster is None:
        raise SettingsError("cluster_id", None, "a cluster's number, or name the cluster by scheduler_id")
    return _of_cluster(cluster, "computations", _one_of(account, workspace), limit, _COMPUTATIONS)


def list_exceptions(
    account: str | None = None,
    since: Since = "7 days",
    user: str | None = None,
    cluster_id: int | str | None = None,
    scheduler_id: str | None = None,
    *,
    limit: int | None = None,
    workspace: str | None = None,
) -> Records:
    """Exceptions of all clusters or of one, latest first. `since` counts for one cluster too; None: its whole life."""
    query = {"since": _seconds(since), "user": user, "cluster": _cluster(cluster_id, scheduler_id)}
    with Connection(_one_of(account, workspace)) as connection:
        return connection.records("/exceptions", query, limit, _EXCEPTIONS, page="analytics")


def list_events(
    cluster_id: int | str,
    account: str | None = None,
    *,
    limit: int | None = None,
    workspace: str | None = None,
) -> Records:
    """Events of one cluster, latest first."""
    return _of_cluster(str(cluster_id), "events", _one_of(account, workspace), limit, _EVENTS)


def get_cluster(cluster_id: int | str, account: str | None = None, *, workspace: str | None = None) -> dict[str, Any]:
    """One cluster with its `answers`, by number, scheduler id or UUID."""
    with Connection(_one_of(account, workspace)) as connection:
        return connection.get(f"/{connection.account}/clusters/{quote(str(cluster_id), safe='')}", {})


def _of_cluster(cluster: str, what: str, account: str | None, limit: int | None, columns: tuple[str, ...]) -> Records:
    place = quote(cluster, safe="")
    with Connection(account) as connection:
        return connection.records(f"/clusters/{place}/{what}", {}, limit, columns, page=f"analytics/clusters/{place}")


def _cluster(cluster_id: int | str | None, scheduler_id: str | None) -> str | None:
    if cluster_id is not None and scheduler_id is not None:
        raise SettingsError("scheduler_id", scheduler_id, "None beside a cluster_id: give one of the two")
    return scheduler_id if cluster_id is None else str(cluster_id)


def _one_of(account: str | None, workspace: str | None) -> str | None:
    if account is not None and workspace is not None and account != workspace:
        raise SettingsError("workspace", workspace, f"nothing beside account={account!r}: they are words for the same")
    return workspace if account is None else account


def _seconds(since: Since) -> int | None:
    if since is None:
        return None
    allowed = (
        "a time span like '7 days', '36h' or '15 minutes', a number of seconds, a timedelta, or None for all history"
    )
    try:
        seconds = float(parse_timedelta(since))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise SettingsError("since", since, allowed) from error
    if not 0 < seconds < float("inf"):
        raise SettingsError("since", since, allowed)
    return math.ceil(seconds)

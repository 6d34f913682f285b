"""What happened, as Python lists: the HTTP API's calls as functions, latest first, fetched to the end.

What was observed inside one cluster is in `depth.py`.

Names and arguments are those that users of `coiled.analytics` know; `workspace` is another word for `account`.
Every function raises the errors of `daskscope.errors`.
"""

from __future__ import annotations

from typing import Any, Literal, get_args
from urllib.parse import quote

from daskscope.arguments import Since, among, cluster_of, of_cluster, one_of, seconds
from daskscope.connection import Connection
from daskscope.errors import SettingsError
from daskscope.records import Records

Status = Literal["running", "stopped", "lost"]
Origin = Literal["user", "scheduler", "dask"]
"""Who failed: a task's own code; the scheduler, which gave a task up; Dask itself."""

_CLUSTERS = ("id", "name", "user", "status", "created", "workers", "threads", "memory", "n_tasks", "n_tasks_erred")
_COMPUTATIONS = ("id", "status", "start", "stop", "n_tasks", "states", "seconds", "bytes")
_EXCEPTIONS = ("cluster_id", "user", "last", "count", "origin", "type", "text", "prefix")
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
    query = {"since": seconds(since), "user": user, "status": among("status", status, get_args(Status))}
    with Connection(one_of(account, workspace)) as connection:
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
    cluster = cluster_of(cluster_id, scheduler_id)
    if cluster is None:
        raise SettingsError("cluster_id", None, "a cluster's number, or name the cluster by scheduler_id")
    return of_cluster(cluster, "computations", one_of(account, workspace), limit, _COMPUTATIONS)


def list_exceptions(
    account: str | None = None,
    since: Since = "7 days",
    user: str | None = None,
    cluster_id: int | str | None = None,
    scheduler_id: str | None = None,
    *,
    origin: Origin | None = None,
    limit: int | None = None,
    workspace: str | None = None,
) -> Records:
    """Exceptions of all clusters or of one, latest first. `since` counts for one cluster too; None: its whole life."""
    query = {
        "since": seconds(since),
        "user": user,
        "cluster": cluster_of(cluster_id, scheduler_id),
        "origin": among("origin", origin, get_args(Origin)),
    }
    with Connection(one_of(account, workspace)) as connection:
        return connection.records("/exceptions", query, limit, _EXCEPTIONS, page="analytics")


def list_events(
    cluster_id: int | str,
    account: str | None = None,
    *,
    topic: str | None = None,
    limit: int | None = None,
    workspace: str | None = None,
) -> Records:
    """Events of one cluster, latest first."""
    return of_cluster(cluster_id, "events", one_of(account, workspace), limit, _EVENTS, topic=topic)


def get_cluster(cluster_id: int | str, account: str | None = None, *, workspace: str | None = None) -> dict[str, Any]:
    """One cluster with its `answers`, by number, scheduler id or UUID."""
    with Connection(one_of(account, workspace)) as connection:
        return connection.get(f"/{connection.account}/clusters/{quote(str(cluster_id), safe='')}", {})


def close(
    cluster_id: int | str, account: str | None = None, *, reason: str | None = None, workspace: str | None = None
) -> dict[str, Any]:
    """Ask a cluster to close, by number, scheduler id or UUID; needs a token that may `control`.

    It is told when it reports next, and those connected to it are warned; best effort. Returns when it was asked and by
    whom, when it is told, and a `sentence` that says so. Raises NotClosable if it has ended or lets nobody close it.
    """
    said = {} if reason is None else {"reason": reason}
    with Connection(one_of(account, workspace)) as connection:
        return connection.post(f"/{connection.account}/clusters/{quote(str(cluster_id), safe='')}/close", said)

"""What was observed inside one cluster, as Python lists: processes, log lines, spans, metrics, tasks, profile.

As in `client.py`: fetched to the end, and every function raises the errors of `daskscope.errors`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, get_args
from urllib.parse import quote

from daskscope.arguments import Since, among, of_cluster, one_of, seconds
from daskscope.connection import LARGE_PAGE, Connection
from daskscope.profile import Profile
from daskscope.records import Records

Role = Literal["scheduler", "worker", "client"]
Logging = Literal["scheduler", "worker", "nanny"]

_many = partial(of_cluster, size=LARGE_PAGE)

_MEMBERS = ("role", "id", "name", "host", "joined", "left", "threads", "python", "mismatched", "agent")
_WORKERS = ("address", "name", "status", "threads", "memory", "memory_limit", "peak_memory", "spilled", "cpu_pct")
_DEATHS = (
    "time", "worker", "name", "expected", "reason", "memory", "memory_limit", "n_processing", "n_results_lost",
)  # fmt: skip
_LOGS = ("time", "level", "role", "worker", "logger", "text")
_SPANS = ("name", "enqueued", "start", "stop", "n_tasks", "n_tasks_erred", "seconds", "bytes")
_GROUPS = ("name", "prefix", "start", "stop", "n_tasks", "n_tasks_erred", "states", "seconds", "bytes")
_METRICS = ("span", "context", "prefix", "activity", "value", "unit")
_TASKS = ("start", "duration", "status", "worker", "group", "bytes", "weight")
_SAMPLES = ("time", "workers", "threads", "memory", "managed", "spilled", "memory_limit", "cpu_pct", "tasks")


def list_members(
    cluster_id: int | str,
    account: str | None = None,
    *,
    role: Role | None = None,
    limit: int | None = None,
    workspace: str | None = None,
) -> Records:
    """Scheduler, workers and clients of one cluster in the order in which they came; `mismatched`: packages of other
    versions than the scheduler's."""
    wanted = among("role", role, get_args(Role))
    return _many(cluster_id, "members", one_of(account, workspace), limit, _MEMBERS, role=wanted)


def list_workers(
    cluster_id: int | str, account: str | None = None, *, limit: int | None = None, workspace: str | None = None
) -> Records:
    """Each worker that one cluster had: last values and peaks."""
    return _many(cluster_id, "workers", one_of(account, workspace), limit, _WORKERS)


def list_deaths(
    cluster_id: int | str,
    account: str | None = None,
    *,
    expected: bool | None = None,
    limit: int | None = None,
    workspace: str | None = None,
) -> Records:
    """Workers of one cluster that went, latest first, and why; each with the last `logs` of it and its nanny."""
    wanted = None if expected is None else str(expected).lower()
    return _many(cluster_id, "deaths", one_of(account, workspace), limit, _DEATHS, expected=wanted)


def logs(
    cluster_id: int | str,
    account: str | None = None,
    *,
    level: str | int | None = None,
    text: str | None = None,
    worker: str | None = None,
    role: Logging | None = None,
    since: Since = None,
    until: Since = None,
    limit: int | None = None,
    workspace: str | None = None,
) -> Records:
    """Log lines of one cluster, latest first: of this `level` or worse, with this `text` whatever its case.

    `worker` is an address; its nanny's lines count as its own, unless `role` says otherwise. `since` and `until` count
    back from now.
    """
    wanted: dict[str, Any] = {
        "level": level,
        "text": text,
        "worker": worker,
        "role": among("role", role, get_args(Logging)),
        "since": seconds(since),
        "until": seconds(until, "until"),
    }
    return _many(cluster_id, "logs", one_of(account, workspace), limit, _LOGS, **wanted)


def list_spans(
    cluster_id: int | str, account: str | None = None, *, limit: int | None = None, workspace: str | None = None
) -> Records:
    """Spans of one cluster, latest first, each with the sums of its own task groups."""
    return _many(cluster_id, "spans", one_of(account, workspace), limit, _SPANS)


def list_groups(
    cluster_id: int | str, account: str | None = None, *, limit: int | None = None, workspace: str | None = None
) -> Records:
    """Task groups of one cluster in the order in which they came, also those of no computation (scatter)."""
    return _many(cluster_id, "groups", one_of(account, workspace), limit, _GROUPS)


def list_metrics(
    cluster_id: int | str,
    account: str | None = None,
    *,
    span: str | None = None,
    by: Literal["prefix"] | None = None,
    limit: int | None = None,
    workspace: str | None = None,
) -> Records:
    """Fine performance metrics of one cluster, those of a unit together, greatest first.

    `span` is the id of one; `by="prefix"` sums them over spans.
    """
    wanted: dict[str, Any] = {"span": span, "by": among("by", by, ("prefix",))}
    return _many(cluster_id, "metrics", one_of(account, workspace), limit, _METRICS, **wanted)


def list_tasks(
    cluster_id: int | str,
    account: str | None = None,
    *,
    group: str | None = None,
    limit: int | None = None,
    workspace: str | None = None,
) -> Records:
    """Tasks of one cluster, earliest first, if `daskscope.analytics.tasks.transmit` was on; `group` is a name or id."""
    return _many(cluster_id, "tasks", one_of(account, workspace), limit, _TASKS, group=group)


def list_samples(
    cluster_id: int | str, account: str | None = None, *, limit: int | None = None, workspace: str | None = None
) -> Records:
    """One cluster's totals over time, in at most 600 points, oldest first."""
    return _many(cluster_id, "samples", one_of(account, workspace), limit, _SAMPLES)


def get_profile(
    cluster_id: int | str,
    account: str | None = None,
    *,
    prefix: str | None = None,
    by: Literal["prefix"] | None = None,
    limit: int | None = None,
    workspace: str | None = None,
) -> Profile:
    """What one cluster's workers spent their time in: stacks, heaviest first.

    `prefix` is of one kind of task; `by="prefix"` keeps the stacks of two kinds apart.
    """
    query = {"prefix": prefix, "by": among("by", by, ("prefix",))}
    place = quote(str(cluster_id), safe="")
    with Connection(one_of(account, workspace)) as connection:
        answers = list(connection.pages(f"/clusters/{place}/profile", query, limit, LARGE_PAGE))
        url = connection.link(f"analytics/clusters/{place}", {})
    stacks = [stack for answer in answers for stack in answer["items"]]
    return Profile(stacks, total=answers[0]["total"], cut=answers[0]["cut"], name=f"cluster {cluster_id}", url=url)

"""What was observed inside one cluster, as Python lists: processes, log lines, spans, metrics, tasks, profile.

As in `client.py`: fetched to the end, and every function raises the errors of `daskscope.errors`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, get_args
from urllib.parse import quote

from daskscope.arguments import Moment, among, level_of, moment, of_cluster, one_of
from daskscope.connection import LARGE_PAGE, Connection
from daskscope.members import Members
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
_WORKER_SAMPLES = ("time", "status", "memory", "managed", "spilled", "memory_limit", "cpu_pct", "executing", "ready")


def list_members(
    cluster_id: int | str,
    account: str | None = None,
    *,
    role: Role | None = None,
    limit: int | None = None,
    workspace: str | None = None,
) -> Members:
    """Scheduler, workers and clients of one cluster in the order in which they came; `mismatched`: packages of other
    versions than the scheduler's, and `.mismatches` over the whole cluster."""
    query = {"role": among("role", role, get_args(Role))}
    answers, url = _answers(cluster_id, "members", query, one_of(account, workspace), limit)
    items = [member for answer in answers for member in answer["items"]]
    return Members(items, columns=_MEMBERS, mismatches=answers[0]["mismatches"], url=url)


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
    since: Moment = None,
    until: Moment = None,
    limit: int | None = None,
    workspace: str | None = None,
) -> Records:
    """Log lines of one cluster, latest first: of this `level` or worse, with this `text` whatever its case.

    `worker` is an address; its nanny's lines count as its own, unless `role` says otherwise. `since` and `until` are
    time spans back from now, datetimes, or times in ISO 8601 (of UTC without a zone).
    """
    wanted: dict[str, Any] = {
        "level": level_of(level),
        "text": text,
        "worker": worker,
        "role": among("role", role, get_args(Logging)),
        "since": moment(since, "since"),
        "until": moment(until, "until"),
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
    cluster_id: int | str,
    account: str | None = None,
    *,
    worker: str | None = None,
    limit: int | None = None,
    workspace: str | None = None,
) -> Records:
    """One cluster's totals over time, in at most 600 points, oldest first; with `worker`, an address, that worker's."""
    columns = _WORKER_SAMPLES if worker else _SAMPLES
    return _many(cluster_id, "samples", one_of(account, workspace), limit, columns, worker=worker)


def get_profile(
    cluster_id: int | str,
    account: str | None = None,
    *,
    prefix: str | None = None,
    by: Literal["prefix"] | None = None,
    since: Moment = None,
    until: Moment = None,
    limit: int | None = None,
    workspace: str | None = None,
) -> Profile:
    """What one cluster's workers spent their time in: stacks, heaviest first.

    `prefix` is of one kind of task; `by="prefix"` keeps the stacks of two kinds apart. `since` and `until`, as of log
    lines, take the intervals of the profile (a minute, as a rule) of which a part lies between them.
    """
    query: dict[str, Any] = {
        "prefix": prefix,
        "by": among("by", by, ("prefix",)),
        "since": moment(since, "since"),
        "until": moment(until, "until"),
    }
    answers, url = _answers(cluster_id, "profile", query, one_of(account, workspace), limit)
    stacks = [stack for answer in answers for stack in answer["items"]]
    return Profile(stacks, total=answers[0]["total"], cut=answers[0]["cut"], name=f"cluster {cluster_id}", url=url)


def _answers(
    cluster: int | str, what: str, query: dict[str, Any], account: str | None, limit: int | None
) -> tuple[list[dict[str, Any]], str]:
    """The pages of a list that says more beside its items, and the address of the cluster's page."""
    place = quote(str(cluster), safe="")
    with Connection(account) as connection:
        answers = list(connection.pages(f"/clusters/{place}/{what}", query, limit, LARGE_PAGE))
        return answers, connection.link(f"analytics/clusters/{place}", {})

"""Questions about what was computed: computations, task groups, spans, tasks, metrics, code."""

from __future__ import annotations

from typing import Any, Literal, get_args

from daskscope.arguments import (
    AUTO,
    Cluster,
    Done,
    Moment,
    among,
    begin,
    cluster_of,
    moment,
    without,
)
from daskscope.connection import LONG_PAGE, PAGE
from daskscope.records import Record, Records
from daskscope.session.base import Base, part

_COMPUTATIONS = ("id", "status", "start", "stop", "n_tasks", "states", "seconds", "bytes")
_ALL_COMPUTATIONS = ("id", "cluster_id", "user", "status", "start", "duration", "n_tasks", "seconds", "cost")
_SPANS = ("name", "enqueued", "start", "stop", "n_tasks", "n_tasks_erred", "seconds", "bytes")
_GROUPS = ("name", "prefix", "start", "stop", "n_tasks", "n_tasks_erred", "states", "seconds", "bytes")
_METRICS = ("span", "context", "prefix", "activity", "value", "unit")
_TASKS = ("start", "duration", "status", "worker", "group", "bytes", "weight")

_WHOLE = "beside a cluster, of which all is told"


class Work(Base):
    """Of a session: what was computed."""

    def list_computations(
        self,
        cluster_id: Cluster | None = None,
        scheduler_id: str | None = None,
        account: str | None = None,
        *,
        since: Moment = AUTO,
        until: Moment = None,
        user: str | None = None,
        code: str | None = None,
        status: Done | None = None,
        sort: str | None = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records:
        """Computations, latest first: of one cluster, with task groups and code; or, without groups, those of the
        account of which a part lies between `since` (a week ago unless told) and `until`.

        `code` is the fingerprint of a code, as `list_code` tells it.
        """
        cluster = cluster_of(cluster_id, scheduler_id)
        query: dict[str, Any] = {
            "since": begin(since, cluster),
            "until": moment(until, "until"),
            "code": code,
            "status": among("status", status, get_args(Done)),
            "sort": sort,
        }
        if cluster is not None:
            without("beside a cluster, which has one", user=user)
            asked = self._asked(account, workspace, limit)
            return self._of_cluster(asked, cluster, "computations", query, limit, _COMPUTATIONS, size=PAGE)
        asked = self._asked(account, workspace, limit)
        return self._list(asked, "computations", query | {"user": user}, limit, _ALL_COMPUTATIONS, size=LONG_PAGE)

    def get_computation(
        self, computation_id: str, account: str | None = None, *, workspace: str | None = None
    ) -> Record:
        """One computation whole: groups, code, cost, and `same_code`: how it went elsewhere."""
        asked = self._asked(account, workspace)
        return Record(self._connection.get(f"/{asked}/computations/{part(computation_id)}", {}))

    def list_spans(
        self, cluster_id: Cluster, account: str | None = None, *, limit: int | None = None, workspace: str | None = None
    ) -> Records:
        """Spans of one cluster, latest first, each with the sums of its own task groups."""
        return self._of_cluster(self._asked(account, workspace, limit), cluster_id, "spans", {}, limit, _SPANS)

    def list_groups(
        self, cluster_id: Cluster, account: str | None = None, *, limit: int | None = None, workspace: str | None = None
    ) -> Records:
        """Task groups of one cluster in the order in which they came, also those of no computation (scatter)."""
        return self._of_cluster(self._asked(account, workspace, limit), cluster_id, "groups", {}, limit, _GROUPS)

    def list_tasks(
        self,
        cluster_id: Cluster,
        account: str | None = None,
        *,
        group: str | None = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records:
        """Tasks of one cluster, earliest first, if `daskscope.analytics.tasks.transmit` was on; `group` is a name or
        id."""
        asked = self._asked(account, workspace, limit)
        return self._of_cluster(asked, cluster_id, "tasks", {"group": group}, limit, _TASKS)

    def list_metrics(
        self,
        cluster_id: Cluster | None = None,
        account: str | None = None,
        *,
        span: str | None = None,
        by: Literal["prefix"] | None = None,
        since: Moment = AUTO,
        user: str | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records:
        """Fine performance metrics, those of a unit together, greatest first: of one cluster, or of all that ran since
        then (a week ago unless told), by prefix or of one `prefix`.

        Of a cluster, `span` is the id of one; `by="prefix"` sums them over spans.
        """
        among("by", by, ("prefix",))
        if cluster_id is not None:
            without(_WHOLE, since=None if since == AUTO else since, user=user, prefix=prefix)
            asked = self._asked(account, workspace, limit)
            return self._of_cluster(asked, cluster_id, "metrics", {"span": span, "by": by}, limit, _METRICS)
        without("without a cluster, whose it is", span=span)
        query = {"since": begin(since, None), "user": user, "prefix": prefix}
        return self._list(self._asked(account, workspace, limit), "metrics", query, limit, _METRICS[1:])

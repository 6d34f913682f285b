"""Questions about what happened: exceptions, events, workers that went; which kinds of task, and which code."""

from __future__ import annotations

from typing import Any, Literal, get_args

from daskscope.arguments import AUTO, Cluster, Moment, Origin, among, begin, cluster_of, moment, without
from daskscope.connection import LONG_PAGE, PAGE
from daskscope.records import Records
from daskscope.session.base import Base

_EXCEPTIONS = ("cluster_id", "user", "last", "count", "origin", "type", "text", "prefix")
_FAMILIES = ("family", "type", "text", "prefix", "count", "n_clusters", "users", "first", "last", "new", "days")
_EVENTS = ("cluster_id", "time", "topic", "action", "worker", "detail")
_DEATHS = (
    "time", "worker", "name", "expected", "reason", "memory", "memory_limit", "n_processing", "n_results_lost",
)  # fmt: skip
_PREFIXES = ("prefix", "seconds", "n_tasks", "bytes", "n_clusters")
_CODE = ("fingerprint", "code", "n", "n_clusters", "users", "last", "median_duration", "p95_duration", "n_failed")
_HARDWARE = ("instance_types", "cores", "memory", "workers", "n", "median_duration", "thread_seconds", "dollars")

_WHOLE = "beside a cluster, of which all is told"


class Happenings(Base):
    """Of a session: what happened."""

    def list_exceptions(
        self,
        account: str | None = None,
        since: Moment = "7 days",
        user: str | None = None,
        cluster_id: Cluster | None = None,
        scheduler_id: str | None = None,
        *,
        origin: Origin | None = None,
        group: bool = False,
        family: str | None = None,
        until: Moment = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records:
        """Exceptions of all clusters or of one, latest first. `since` counts for one cluster too; None: its whole life.

        With `group=True` one record a family: those that differ in numbers, addresses and the like alone; how often it
        came on which of the `days`, and whether it is `new`. `family` is the id of one: its exceptions.
        """
        query: dict[str, Any] = {
            "since": moment(since, "since"),
            "user": user,
            "cluster": cluster_of(cluster_id, scheduler_id),
            "origin": among("origin", origin, get_args(Origin)),
            "group": "family" if group else None,
            "family": family,
            "until": moment(until, "until"),
        }
        asked = self._asked(account, workspace, limit)
        if group:  # in one page where it fits: sums of days that go on change from one page to the next
            return self._list(asked, "exceptions", query, limit, _FAMILIES)
        return self._list(asked, "exceptions", query, limit, _EXCEPTIONS, size=PAGE)

    def list_events(
        self,
        cluster_id: Cluster | None = None,
        account: str | None = None,
        *,
        topic: str | None = None,
        since: Moment = AUTO,
        until: Moment = None,
        user: str | None = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records:
        """Events, latest first: of one cluster, or of all between `since` (a week ago unless told) and `until`."""
        return self._happened(
            cluster_id, "events", {"topic": topic}, since, until, user, limit, _EVENTS, account, workspace
        )

    def list_deaths(
        self,
        cluster_id: Cluster | None = None,
        account: str | None = None,
        *,
        expected: bool | None = None,
        since: Moment = AUTO,
        until: Moment = None,
        user: str | None = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records:
        """Workers that went, latest first, and why; each with the last `logs` of it and its nanny. Of one cluster, or
        of all between `since` (a week ago unless told) and `until`."""
        wanted = None if expected is None else str(expected).lower()
        columns = _DEATHS if cluster_id is not None else ("cluster_id", *_DEATHS)
        return self._happened(
            cluster_id, "deaths", {"expected": wanted}, since, until, user, limit, columns, account, workspace
        )

    def list_prefixes(
        self,
        account: str | None = None,
        since: Moment = "7 days",
        user: str | None = None,
        *,
        until: Moment = None,
        cluster_id: Cluster | None = None,
        sort: Literal["time", "bytes", "count"] | None = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records:
        """Kinds of task, by the time they took (or `sort` says otherwise), of all clusters or of one."""
        query: dict[str, Any] = {
            "since": moment(since, "since"),
            "until": moment(until, "until"),
            "user": user,
            "cluster": cluster_id,
            "sort": among("sort", sort, ("time", "bytes", "count")),
        }
        return self._list(self._asked(account, workspace, limit), "prefixes", query, limit, _PREFIXES)

    def list_code(
        self,
        account: str | None = None,
        since: Moment = "30 days",
        user: str | None = None,
        *,
        until: Moment = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records:
        """The same code across clusters, one record a `fingerprint`: how often it ran, how long, how it failed."""
        query = {"since": moment(since, "since"), "until": moment(until, "until"), "user": user}
        return self._list(self._asked(account, workspace, limit), "code", query, limit, _CODE, size=LONG_PAGE)

    def compare_hardware(
        self,
        code: str,
        account: str | None = None,
        since: Moment = "90 days",
        *,
        until: Moment = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records:
        """How one code, by its fingerprint, did on different machines: a record for each kind and number of them."""
        query = {"code": code, "since": moment(since, "since"), "until": moment(until, "until")}
        return self._list(self._asked(account, workspace, limit), "hardware", query, limit, _HARDWARE)

    def _happened(
        self,
        cluster: Cluster | None,
        what: str,
        query: dict[str, Any],
        since: Moment,
        until: Moment,
        user: str | None,
        limit: int | None,
        columns: tuple[str, ...],
        account: str | None,
        workspace: str | None,
    ) -> Records:
        if cluster is not None:
            without(_WHOLE, since=None if since == AUTO else since, until=until, user=user)
            return self._of_cluster(
                self._asked(account, workspace, limit), cluster, what, query, limit, columns, size=LONG_PAGE
            )
        query |= {"since": begin(since, None), "until": moment(until, "until"), "user": user}
        return self._list(self._asked(account, workspace, limit), what, query, limit, columns, size=LONG_PAGE)

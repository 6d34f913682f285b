"""Questions about clusters, and closing one."""

from __future__ import annotations

from typing import Any, get_args

from daskscope.arguments import Cluster, Moment, Status, among, moment
from daskscope.connection import PAGE
from daskscope.errors import SettingsError
from daskscope.records import Comparison, Record, Records
from daskscope.session.base import Base, part, total_of

_CLUSTERS = ("id", "name", "user", "status", "created", "duration", "cost", "peak_workers", "n_tasks", "n_tasks_erred")
MOST_COMPARED = 8


class Clusters(Base):
    """Of a session: clusters."""

    def list_clusters(
        self,
        account: str | None = None,
        since: Moment = "7 days",
        user: str | None = None,
        *,
        until: Moment = None,
        status: Status | None = None,
        kind: str | None = None,
        name: str | None = None,
        tag: str | None = None,
        q: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records:
        """Clusters that were heard of between `since` and `until`, latest start first.

        `tag` is `key` or `key=value`; `q` a part of the name, user, host, kind or tags, or the number. `sort` is a key
        like `cost`, `duration` or `peak_memory`; with a leading `-`, greatest first. `.total` tells how many match.
        """
        query: dict[str, Any] = {
            "since": moment(since, "since"),
            "until": moment(until, "until"),
            "user": user,
            "status": among("status", status, get_args(Status)),
            "kind": kind,
            "name": name,
            "tag": tag,
            "q": q,
            "sort": sort,
        }
        asked = self._asked(account, workspace, limit)
        answers = list(self._connection.pages(f"/{asked}/clusters", query, limit, PAGE))
        items = [record for answer in answers for record in answer["items"]]
        url = self._connection.link(asked, "analytics", query)
        return Records(items, columns=_CLUSTERS, url=url, total=total_of(answers))

    def get_cluster(self, cluster_id: Cluster, account: str | None = None, *, workspace: str | None = None) -> Record:
        """One cluster with its `answers`, by number, scheduler id or UUID."""
        asked, place = self._asked(account, workspace), part(cluster_id)
        url = self._connection.link(asked, f"analytics/clusters/{place}", {})
        return Record(self._connection.get(f"/{asked}/clusters/{place}", {}, {"id": int}), url=url)

    def close(
        self,
        cluster_id: Cluster,
        account: str | None = None,
        *,
        reason: str | None = None,
        workspace: str | None = None,
    ) -> Record:
        """Ask a cluster to close, by number, scheduler id or UUID; needs a token that may `control`.

        It is told when it reports next, and those connected to it are warned; best effort. Returns when it was asked
        and by whom, when it is told, and a `sentence` that says so. Raises NotClosable if it has ended or lets nobody
        close it.
        """
        said = {} if reason is None else {"reason": reason}
        asked = self._asked(account, workspace)
        return Record(self._connection.post(f"/{asked}/clusters/{part(cluster_id)}/close", said, {"sentence": str}))

    def compare(self, *ids: Cluster, account: str | None = None, workspace: str | None = None) -> Comparison:
        """Two to eight clusters (numbers), or as many computations (ids), held against each other.

        `measures`, `seconds` by action and `groups` of tasks have a value for each; groups come by their share of the
        difference. `differs` names settings, versions and hardware that are not the same.
        """
        if not 2 <= len(ids) <= MOST_COMPARED:
            raise SettingsError("ids", ids, f"2 to {MOST_COMPARED} cluster numbers, or ids of computations")
        asked = self._asked(account, workspace)
        return Comparison(self._connection.get(f"/{asked}/compare", {"ids": ",".join(map(str, ids))}))

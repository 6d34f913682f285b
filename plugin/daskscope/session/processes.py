"""Questions about processes: who was there, how they were, what they spent their time in."""

from __future__ import annotations

from typing import Any, Literal, get_args

from daskscope.arguments import (
    AUTO,
    Cluster,
    Moment,
    Role,
    among,
    begin,
    moment,
    without,
)
from daskscope.connection import LARGE_PAGE, LONG_PAGE
from daskscope.members import Members
from daskscope.profile import Profile
from daskscope.records import Records
from daskscope.session.base import Base, part

_MEMBERS = ("role", "id", "name", "host", "joined", "left", "threads", "python", "mismatched", "agent")
_WORKERS = ("address", "name", "status", "threads", "memory", "memory_limit", "peak_memory", "spilled", "cpu_pct")
_SAMPLES = ("time", "workers", "threads", "memory", "managed", "spilled", "memory_limit", "cpu_pct", "tasks")
_WORKER_SAMPLES = ("time", "status", "memory", "managed", "spilled", "memory_limit", "cpu_pct", "executing", "ready")


class Processes(Base):
    """Of a session: schedulers, workers and clients."""

    def list_members(
        self,
        cluster_id: Cluster,
        account: str | None = None,
        *,
        role: Role | None = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Members:
        """Scheduler, workers and clients of one cluster in the order in which they came; `mismatched`: packages of
        other versions than the scheduler's, and `.mismatches` over the whole cluster."""
        query = {"role": among("role", role, get_args(Role))}
        asked, place = self._asked(account, workspace, limit), part(cluster_id)
        answers = list(
            self._connection.pages(f"/{asked}/clusters/{place}/members", query, limit, LONG_PAGE, {"mismatches": list})
        )
        items = [member for answer in answers for member in answer["items"]]
        url = self._connection.link(asked, f"analytics/clusters/{place}", {})
        return Members(items, columns=_MEMBERS, mismatches=answers[0]["mismatches"], url=url)

    def list_workers(
        self, cluster_id: Cluster, account: str | None = None, *, limit: int | None = None, workspace: str | None = None
    ) -> Records:
        """Each worker that one cluster had: last values and peaks."""
        asked = self._asked(account, workspace, limit)
        return self._of_cluster(asked, cluster_id, "workers", {}, limit, _WORKERS)

    def list_samples(
        self,
        cluster_id: Cluster,
        account: str | None = None,
        *,
        worker: str | None = None,
        points: int | None = None,
        since: Moment = None,
        until: Moment = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records:
        """One cluster's totals over time, in at most `points` (600 unless told) points, oldest first; with `worker`, an
        address, that worker's."""
        query = {
            "worker": worker,
            "points": points,
            "since": moment(since, "since"),
            "until": moment(until, "until"),
        }
        columns = _WORKER_SAMPLES if worker else _SAMPLES
        asked = self._asked(account, workspace, limit)
        return self._of_cluster(asked, cluster_id, "samples", query, limit, columns)

    def get_profile(
        self,
        cluster_id: Cluster | None = None,
        computation_id: str | None = None,
        account: str | None = None,
        *,
        user: str | None = None,
        prefix: str | None = None,
        by: Literal["prefix", "user"] | None = None,
        since: Moment = AUTO,
        until: Moment = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Profile:
        """What workers spent their time in: stacks, heaviest first; of one cluster, one computation, or all clusters of
        the account (since a week ago unless told), or those of one `user`.

        `prefix` is of one kind of task; `by` keeps the stacks of two kinds, or of two users, apart. `since` and `until`
        take the intervals of the profile (a minute, as a rule) of which a part lies between them.
        """
        of = computation_id if cluster_id is None else cluster_id
        query: dict[str, Any] = {"prefix": prefix, "since": begin(since, of), "until": moment(until, "until")}
        if of is None:
            query |= {"by": among("by", by, ("prefix", "user")), "user": user}
        else:
            without("beside a cluster or computation, which has one", user=user)
            query |= {"by": among("by", by, ("prefix",)), "computation": computation_id}
        asked = self._asked(account, workspace, limit)
        if cluster_id is None and computation_id is not None:
            found = self._connection.get(f"/{asked}/computations/{part(computation_id)}", {}, {"cluster_id": int})
            cluster_id = str(found["cluster_id"])
        what, page, name = "profile", None, user or "all clusters"
        if cluster_id is not None:
            place = part(cluster_id)
            what, page = f"clusters/{place}/profile", f"analytics/clusters/{place}"
            name = f"cluster {cluster_id}" if computation_id is None else f"computation {computation_id}"
        answers = list(self._connection.pages(f"/{asked}/{what}", query, limit, LARGE_PAGE, {"total": dict}))
        stacks = [stack for answer in answers for stack in answer["items"]]
        url = self._connection.link(asked, page, {})
        return Profile(stacks, total=answers[0]["total"], cut=answers[0]["cut"], name=name, url=url)

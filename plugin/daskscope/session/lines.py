"""Questions about log lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args, overload

from daskscope.arguments import (
    AUTO,
    Cluster,
    Logging,
    Moment,
    among,
    begin,
    comma_list,
    level_of,
    moment,
    without,
)
from daskscope.connection import LINES_PAGE
from daskscope.errors import SettingsError
from daskscope.records import Records
from daskscope.session.base import Base
from daskscope.session.tail import follow_lines

_LOGS = ("time", "level", "role", "worker", "logger", "text")


class Lines(Base):
    """Of a session: what processes logged."""

    @overload
    def logs(
        self, cluster_id: Cluster | None = None, workers: str | Iterable[str] | None = None, filter: str | None = None,
        since: Moment = AUTO, follow: Literal[False] = False, *, until: Moment = None, level: str | int | None = None,
        role: Logging | None = None, scheduler: bool = True, user: str | None = None,
        order: Literal["asc", "desc"] = "desc", account: str | None = None, limit: int | None = None,
        workspace: str | None = None,
    ) -> Records: ...  # fmt: skip
    @overload
    def logs(
        self, cluster_id: Cluster | None, workers: str | Iterable[str] | None = None, filter: str | None = None,
        since: Moment = AUTO, *, follow: Literal[True], level: str | int | None = None, role: Logging | None = None,
        scheduler: bool = True, account: str | None = None, workspace: str | None = None,
    ) -> Iterator[dict[str, Any]]: ...  # fmt: skip
    def logs(
        self,
        cluster_id: Cluster | None = None,
        workers: str | Iterable[str] | None = None,
        filter: str | None = None,
        since: Moment = AUTO,
        follow: bool = False,
        *,
        until: Moment = None,
        level: str | int | None = None,
        role: Logging | None = None,
        scheduler: bool = True,
        user: str | None = None,
        order: Literal["asc", "desc"] = "desc",
        account: str | None = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records | Iterator[dict[str, Any]]:
        """Log lines with `filter` in them, whatever its case, of this `level` or worse: of one cluster, or of all (a
        week of them, unless `since` says otherwise) or those of one `user`. The latest first; `order="asc"` turns that
        around.

        `workers` are addresses, hosts or names, one or several; `scheduler=False` leaves the scheduler's lines out.
        With `follow=True`, an iterator: lines of one cluster, oldest first, and new ones as they come, until it has
        ended or somebody interrupts.
        """
        query: dict[str, Any] = {
            "level": level_of(level),
            "text": filter,
            "workers": comma_list("workers", workers),
            "role": among("role", role, get_args(Logging)),
            "scheduler": None if scheduler else "false",
            "since": begin(since, cluster_id),
        }
        if cluster_id is not None:
            without("beside a cluster, which has one", user=user)
        if follow:
            if cluster_id is None:
                raise SettingsError("cluster_id", None, "a cluster, to follow its lines")
            without("with follow=True, which goes on", until=until, limit=limit)
            asked = self._asked(account, workspace, limit)
            return follow_lines(self._connection, asked, cluster_id, query)
        among("order", order, ("asc", "desc"))
        query |= {"until": moment(until, "until"), "user": user, "order": None if order == "desc" else order}
        asked = self._asked(account, workspace, limit)
        if cluster_id is None:
            return self._list(asked, "logs", query, limit, ("cluster_id", *_LOGS), size=LINES_PAGE)
        return self._of_cluster(asked, cluster_id, "logs", query, limit, _LOGS, size=LINES_PAGE)

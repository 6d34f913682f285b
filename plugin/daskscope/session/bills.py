"""Questions about money."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from daskscope.arguments import Moment, comma_list, moment
from daskscope.records import Record, Records
from daskscope.session.base import Base

_FIGURES = ("n_clusters", "thread_hours", "machine_hours", "dollars", "idle", "failed", "quality")
_COLUMNS = {"cluster": ("cluster_id", "name")}
"""Of what is not named as its column is."""


class Bills(Base):
    """Of a session: what it cost."""

    def costs(
        self,
        account: str | None = None,
        since: Moment = "30 days",
        by: str | Iterable[str] = "user",
        *,
        until: Moment = None,
        user: str | None = None,
        tag: str | None = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records:
        """What clusters cost, in dollars, by `user`, `tag` (whose name `tag` says), `day`, `week`, `instance_type`,
        `cluster` or `kind`, or by several.

        Days count whole, in UTC, those in which `since` and `until` fall, too. `idle` is the part of it in which no
        task ran, `failed` that of tasks that failed. `quality` is `measured`, `estimated` or `unknown`, `basis` a
        sentence that says of what. The records' `note` says what it saved that idle clusters closed.
        """
        keys = comma_list("by", by) or "user"
        query: dict[str, Any] = {
            "since": moment(since, "since"),
            "until": moment(until, "until"),
            "by": keys,
            "user": user,
            "tag": tag,
        }
        columns = (*(column for key in keys.split(",") for column in _COLUMNS.get(key, (key,))), *_FIGURES)
        return self._list(self._asked(account, workspace, limit), "costs", query, limit, columns, note="saved")

    def prices(self, account: str | None = None, *, workspace: str | None = None) -> Record:
        """The prices in force, and whence they are."""
        return Record(self._connection.get(f"/{self._asked(account, workspace)}/prices", {}))

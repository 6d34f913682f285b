"""Questions in SQL, of a lake that is read in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from daskscope import direct
from daskscope.arguments import Moment, moment
from daskscope.errors import BadRequest
from daskscope.records.result import Result
from daskscope.remote import Remote
from daskscope.session.base import Base


class Query(Base):
    """Of a session: SQL."""

    def sql(
        self,
        query: str,
        account: str | None = None,
        *,
        params: Sequence[Any] | Mapping[str, Any] | None = None,
        since: Moment = None,
        until: Moment = None,
        workspace: str | None = None,
    ) -> Result:
        """What a SELECT in DuckDB's SQL finds in the account's tables; `since` and `until` leave out whole days.

        Answered by a lake that this process can read: `connect("s3://...")`, a folder, or the data folder of the
        `daskscope serve` on this machine. Raises BadRequest with DuckDB's words, and for any other server.
        """
        between = moment(since, "since"), moment(until, "until")
        asked = self._asked(account, workspace)
        source = self._connection.source
        if isinstance(source, direct.Lake):
            return Result(source.sql(query, asked, params, *between))
        folder = source.server.data if isinstance(source, Remote) else None
        if folder is None:
            raise BadRequest(
                f"{source.name} answers no SQL, for it is not this machine's own: read the lake itself, with "
                "daskscope.connect('s3://BUCKET/PREFIX') or the folder that it is in."
            )
        lake = direct.Lake(folder, asked, None)
        try:
            return Result(lake.sql(query, asked, params, *between))
        finally:
            lake.close()

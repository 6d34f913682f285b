"""What was done to an account by those who look after it. Needs a token that may `admin`."""

from __future__ import annotations

from daskscope.arguments import Moment, moment
from daskscope.connection import LONG_PAGE
from daskscope.records import Records
from daskscope.session.base import Base

_ACTS = ("time", "actor", "role", "action", "target", "detail", "address")


class Acts(Base):
    """Of a session: the audit."""

    def list_audit(
        self,
        account: str | None = None,
        since: Moment = "30 days",
        *,
        until: Moment = None,
        actor: str | None = None,
        action: str | None = None,
        limit: int | None = None,
        workspace: str | None = None,
    ) -> Records:
        """What was done, latest first: by whom (`actor`), what (`action`, like `token.create`), to what (`target`) and
        how (`detail`). It is written down before it is done, and never changed."""
        query = {
            "since": moment(since, "since"),
            "until": moment(until, "until"),
            "actor": actor,
            "action": action,
        }
        return self._list(self._asked(account, workspace, limit), "audit", query, limit, _ACTS, size=LONG_PAGE)

"""What an account wants: of reports, of idle clusters, of how long rows are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from daskscope.arguments import Subject, among
from daskscope.records import Record
from daskscope.session.base import Base


class Rules(Base):
    """Of a session: policies."""

    def policy(self, account: str | None = None, *, workspace: str | None = None) -> Record:
        """What is in force: of `reports` (`public`, `keep_days`), of `idle` clusters (`timeout_s`, and those of `users`
        and `clusters`), and `retention` (days that a table's rows are kept, where somebody said)."""
        return Record(self._connection.get(f"/{self._asked(account, workspace)}/policy", {}))

    def set_policy(
        self, subject: Subject, wish: Mapping[str, Any], account: str | None = None, *, workspace: str | None = None
    ) -> Record:
        """What the account wants of one subject from now on, in place of all that it wanted of it; needs a token that
        may `admin`. Returns what is in force then, with a `sentence` where it names users of whom nobody knows. Raises
        BadRequest that names what is not allowed."""
        among("subject", subject, get_args(Subject))
        return Record(self._connection.put(f"/{self._asked(account, workspace)}/policy/{subject}", wish))

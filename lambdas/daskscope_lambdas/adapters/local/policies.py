"""Policies on SQLite."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from daskscope_lambdas.adapters.arguments import check_days
from daskscope_lambdas.adapters.local.database import Database


class SqlitePolicies:
    """One row per account that wants anything."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def retention(self, account: str) -> dict[str, int]:
        with self._database.reading() as connection:
            row = connection.execute("SELECT retention FROM policies WHERE account = ?", (account,)).fetchone()
        return json.loads(row["retention"]) if row else {}

    def set_retention(self, account: str, days: Mapping[str, int]) -> None:
        check_days(days)
        with self._database.writing() as connection:
            if days:
                connection.execute("REPLACE INTO policies VALUES (?, ?)", (account, json.dumps(dict(days))))
            else:
                connection.execute("DELETE FROM policies WHERE account = ?", (account,))

    def accounts(self) -> Sequence[str]:
        with self._database.reading() as connection:
            return [row["account"] for row in connection.execute("SELECT account FROM policies ORDER BY account")]

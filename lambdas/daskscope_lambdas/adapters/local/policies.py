"""Policies on SQLite."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from daskscope_lambdas.adapters.local.database import Database
from daskscope_lambdas.ports import Subject


class SqlitePolicies:
    """One row for each subject of which an account wants anything."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def wish(self, account: str, subject: Subject) -> dict[str, Any]:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT told FROM wishes WHERE account = ? AND subject = ?", (account, subject)
            ).fetchone()
        return json.loads(row["told"]) if row else {}

    def set_wish(self, account: str, subject: Subject, told: Mapping[str, Any]) -> None:
        with self._database.writing() as connection:
            if told:
                connection.execute("REPLACE INTO wishes VALUES (?, ?, ?)", (account, subject, json.dumps(dict(told))))
            else:
                connection.execute("DELETE FROM wishes WHERE account = ? AND subject = ?", (account, subject))

    def accounts(self) -> Sequence[str]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT DISTINCT account FROM wishes ORDER BY account").fetchall()
        return [row["account"] for row in rows]

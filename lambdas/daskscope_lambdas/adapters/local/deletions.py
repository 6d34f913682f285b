"""Deletions on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from daskscope_lambdas.adapters.local.database import Database
from daskscope_lambdas.ports import Deletion

_WHICH = "account = ? AND cluster = ? AND asked_at = ?"
"""Nobody asked again since."""


class SqliteDeletions:
    """One row each until it is done. When its rows are gone, so are their bytes in the file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, deletion: Deletion) -> None:
        with self._database.writing() as connection:
            connection.execute(
                """
                INSERT INTO deletions (account, cluster, asked_at, by) VALUES (?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET asked_at = excluded.asked_at, by = excluded.by, swept_through = NULL
                WHERE cluster = '' AND excluded.asked_at > asked_at
                """,
                (deletion.account, deletion.cluster or "", deletion.asked_at, deletion.by),
            )

    def pending(self, account: str | None = None) -> Sequence[Deletion]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT * FROM deletions WHERE ?1 IS NULL OR account = ?1", (account,)).fetchall()
        return [
            Deletion(
                account=row["account"],
                cluster=row["cluster"] or None,
                asked_at=row["asked_at"],
                by=row["by"],
                swept_through=date.fromisoformat(row["swept_through"]) if row["swept_through"] else None,
            )
            for row in rows
        ]

    def swept(self, deletion: Deletion, day: date) -> None:
        if deletion.swept_through is None:
            self._database.scrub()
        with self._database.writing() as connection:
            connection.execute(
                f"UPDATE deletions SET swept_through = ? WHERE {_WHICH}",  # noqa: S608  our own words
                (day.isoformat(), *_key(deletion)),
            )

    def done(self, deletion: Deletion) -> None:
        with self._database.writing() as connection:
            connection.execute(f"DELETE FROM deletions WHERE {_WHICH}", _key(deletion))  # noqa: S608  our own words
        self._database.scrub()


def _key(deletion: Deletion) -> tuple[str, str, float]:
    return deletion.account, deletion.cluster or "", deletion.asked_at

"""Users on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from daskscope_lambdas.adapters.local.database import Database
from daskscope_lambdas.ports import Membership, Missing


class SqliteUsers:
    """One row per name that was ever claimed, one per membership."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, user: str, at: float) -> None:
        with self._database.writing() as connection:
            connection.execute("INSERT INTO users VALUES (?, ?)", (user, at))

    def is_claimed(self, user: str) -> bool:
        with self._database.reading() as connection:
            return connection.execute("SELECT 1 FROM users WHERE user = ?", (user,)).fetchone() is not None

    def put(self, membership: Membership) -> None:
        with self._database.writing() as connection:
            connection.execute(
                "REPLACE INTO memberships VALUES (:account, :user, :role, :added_at, :added_by)", asdict(membership)
            )

    def find(self, account: str, user: str) -> Membership:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT * FROM memberships WHERE account = ? AND user = ?", (account, user)
            ).fetchone()
        if row is None:
            raise Missing(f"{user} is not in account {account}.")
        return Membership(**row)

    def remove(self, account: str, user: str) -> None:
        with self._database.writing() as connection:
            connection.execute("DELETE FROM memberships WHERE account = ? AND user = ?", (account, user))

    def list(self, account: str) -> Sequence[Membership]:
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT * FROM memberships WHERE account = ? ORDER BY user", (account,)
            ).fetchall()
        return [Membership(**row) for row in rows]

    def of(self, user: str) -> Sequence[Membership]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT * FROM memberships WHERE user = ? ORDER BY account", (user,)).fetchall()
        return [Membership(**row) for row in rows]

    def accounts(self) -> Sequence[str]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT DISTINCT account FROM memberships ORDER BY account").fetchall()
        return [row["account"] for row in rows]

    def forget(self, account: str, until: float) -> None:
        with self._database.writing() as connection:
            connection.execute("DELETE FROM memberships WHERE account = ? AND added_at <= ?", (account, until))

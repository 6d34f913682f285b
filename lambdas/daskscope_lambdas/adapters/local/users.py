"""Users on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict

from daskscope_lambdas.adapters.local.database import Database
from daskscope_lambdas.ports import Conflict, Membership, Missing, Role


class SqliteUsers:
    """One row per name that was ever claimed, one per membership."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, user: str, at: float) -> None:
        with self._database.writing() as connection:
            connection.execute("INSERT INTO users VALUES (?, ?)", (user, at))

    def claimed(self, user: str) -> str | None:
        with self._database.reading() as connection:
            row = connection.execute("SELECT user FROM users WHERE user = ?", (user,)).fetchone()
        return row["user"] if row else None

    def put(self, membership: Membership) -> None:
        with self._database.writing() as connection:
            connection.execute(
                "REPLACE INTO memberships VALUES (:account, :user, :role, :added_at, :added_by)", asdict(membership)
            )

    def set_role(self, account: str, user: str, role: Role, *, last_too: bool = False) -> None:
        with self._database.writing() as connection:
            if role != "admin" and not last_too:
                _check_not_last(connection, account, user)
            done = connection.execute(
                "UPDATE memberships SET role = ? WHERE account = ? AND user = ?", (role, account, user)
            )
        if done.rowcount == 0:
            raise Missing(f"{user} is not in account {account}.")

    def find(self, account: str, user: str) -> Membership:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT * FROM memberships WHERE account = ? AND user = ?", (account, user)
            ).fetchone()
        if row is None:
            raise Missing(f"{user} is not in account {account}.")
        return Membership(**row)

    def remove(self, account: str, user: str, *, last_too: bool = False) -> None:
        with self._database.writing() as connection:
            if not last_too:
                _check_not_last(connection, account, user)
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


def _check_not_last(connection: sqlite3.Connection, account: str, user: str) -> None:
    query = "SELECT user FROM memberships WHERE account = ? AND role = 'admin' LIMIT 2"
    if [row["user"] for row in connection.execute(query, (account,))] == [user]:
        raise Conflict(f"{user} is the last admin of account {account}.")

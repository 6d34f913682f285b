"""Tokens on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

from daskscope_lambdas.adapters.local.database import Database
from daskscope_lambdas.ports import EXPIRED_KEPT_S, Missing, TokenRow


class SqliteTokens:
    """One row per token. Revoked ones stay, as long as their account does: whoever still uses one is told so.
    Whenever one is added, those that expired long ago go.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, row: TokenRow) -> None:
        day = row.used_on and row.used_on.isoformat()
        values = asdict(row) | {"scopes": " ".join(sorted(row.scopes)), "used_on": day}
        with self._database.writing() as connection:
            connection.execute("DELETE FROM tokens WHERE expires_at < ?", (row.created_at - EXPIRED_KEPT_S,))
            connection.execute(
                """
                INSERT INTO tokens VALUES (
                    :key_id, :secret_sha256, :account, :scopes, :name, :created_at, :expires_at, :revoked_at,
                    :user, :kind, :parent, :used_on, :made_by, :replaces
                )
                """,
                values,
            )

    def find(self, key_id: str) -> TokenRow:
        with self._database.reading() as connection:
            row = connection.execute("SELECT * FROM tokens WHERE key_id = ?", (key_id,)).fetchone()
        if row is None:
            raise Missing(f"No token has key id {key_id}.")
        return _token(row)

    def revoke(self, key_id: str, at: float) -> None:
        self._change("revoked_at = coalesce(revoked_at, ?1)", at, key_id)

    def expire(self, key_id: str, at: float) -> None:
        self._change("expires_at = min(coalesce(expires_at, ?1), ?1)", at, key_id)

    def used(self, key_id: str, on: date) -> None:
        self._change("used_on = max(coalesce(used_on, ?1), ?1)", on.isoformat(), key_id)

    def _change(self, change: str, value: float | str, key_id: str) -> None:
        with self._database.writing() as connection:
            done = connection.execute(f"UPDATE tokens SET {change} WHERE key_id = ?2", (value, key_id))  # noqa: S608  our own words
        if done.rowcount == 0:
            raise Missing(f"No token has key id {key_id}.")

    def list(self, account: str) -> Sequence[TokenRow]:
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT * FROM tokens WHERE account = ? ORDER BY created_at, key_id", (account,)
            ).fetchall()
        return [_token(row) for row in rows]

    def forget(self, account: str, until: float) -> None:
        with self._database.writing() as connection:
            connection.execute("DELETE FROM tokens WHERE account = ? AND created_at <= ?", (account, until))


def _token(row: sqlite3.Row) -> TokenRow:
    values: dict[str, Any] = dict(row)
    values["scopes"] = frozenset(row["scopes"].split())
    values["used_on"] = date.fromisoformat(row["used_on"]) if row["used_on"] else None
    return TokenRow(**values)

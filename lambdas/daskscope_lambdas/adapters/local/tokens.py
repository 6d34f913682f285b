"""Tokens on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from daskscope_lambdas.adapters.local.database import Database
from daskscope_lambdas.ports import Missing, TokenRow


class SqliteTokens:
    """One row per token. Revoked ones stay, as long as their account does: whoever still uses one is told so."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, row: TokenRow) -> None:
        values = asdict(row) | {"scopes": " ".join(sorted(row.scopes))}
        with self._database.writing() as connection:
            connection.execute(
                """
                INSERT INTO tokens VALUES (
                    :key_id, :secret_sha256, :account, :scopes, :name, :created_at, :expires_at, :revoked_at
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
        with self._database.writing() as connection:
            change = connection.execute(
                "UPDATE tokens SET revoked_at = coalesce(revoked_at, ?) WHERE key_id = ?", (at, key_id)
            )
        if change.rowcount == 0:
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
    return TokenRow(**values)

"""Tickets on SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from daskscope_lambdas.adapters.local.database import Database
from daskscope_lambdas.ports import Clock, Missing, Ticket


class SqliteTickets:
    """One row each. Whenever one is added, those that have expired go."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def add(self, ticket: Ticket) -> None:
        values = (ticket.key, ticket.kind, json.dumps(dict(ticket.told)), ticket.expires_at)
        with self._database.writing() as connection:
            connection.execute("DELETE FROM tickets WHERE expires_at <= ?", (self._clock.now(),))
            connection.execute("INSERT INTO tickets VALUES (?, ?, ?, ?)", values)

    def find(self, key: str) -> Ticket:
        with self._database.reading() as connection:
            return _ticket(connection.execute("SELECT * FROM tickets WHERE key = ?", (key,)).fetchone())

    def take(self, key: str) -> Ticket:
        with self._database.writing() as connection:
            return _ticket(connection.execute("DELETE FROM tickets WHERE key = ? RETURNING *", (key,)).fetchone())

    def list(self, account: str) -> Sequence[Ticket]:
        asked = "SELECT * FROM tickets WHERE json_extract(told, '$.account') = ? ORDER BY expires_at, key"
        with self._database.reading() as connection:
            return [_ticket(row) for row in connection.execute(asked, (account,)).fetchall()]

    def forget(self, account: str) -> None:
        with self._database.writing() as connection:
            connection.execute("DELETE FROM tickets WHERE json_extract(told, '$.account') = ?", (account,))


def _ticket(row: sqlite3.Row | None) -> Ticket:
    if row is None:
        raise Missing("No such ticket.")
    return Ticket(key=row["key"], kind=row["kind"], told=json.loads(row["told"]), expires_at=row["expires_at"])

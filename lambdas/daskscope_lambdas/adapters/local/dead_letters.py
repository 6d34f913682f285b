"""DeadLetters on SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from daskscope_lambdas.adapters.local.database import Database
from daskscope_lambdas.ports import Buried, Clock

_AT_A_TIME = 50
"""Rows in memory, and moved in one transaction: each may have 1 MiB."""


class SqliteDeadLetters:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def list(self) -> Iterator[Buried]:
        after = -1
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(
                    "SELECT id, body, reason, buried_at FROM dead_letters WHERE id > ? ORDER BY id LIMIT ?",
                    (after, _AT_A_TIME),
                ).fetchall()
            for row in rows:
                after = row["id"]
                yield Buried(body=row["body"], reason=row["reason"], buried_at=row["buried_at"])
            if not rows:
                return

    def lasting(self) -> Iterator[str]:
        return (each.body for each in self.list())

    def send_back(self, chosen: Callable[[str], bool]) -> int:
        with self._database.reading() as connection:
            # A message gets a new number when it is sent back: what dies again comes after this one.
            last = connection.execute("SELECT max(id) FROM dead_letters").fetchone()[0] or 0
        sent, after = 0, -1
        while after < last:
            with self._database.reading() as connection:
                rows = connection.execute(
                    "SELECT id, body FROM dead_letters WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
                    (after, last, _AT_A_TIME),
                ).fetchall()
            if not rows:
                break
            after = rows[-1]["id"]
            sent += self._move([row["id"] for row in rows if chosen(row["body"])])
        return sent

    def _move(self, ids: list[int]) -> int:
        """In one transaction, so that nobody ever sees one twice; returns how many were still there."""
        sent = 0
        if ids:
            with self._database.writing() as connection:
                for number in ids:
                    gone = connection.execute(
                        "DELETE FROM dead_letters WHERE id = ? RETURNING body", (number,)
                    ).fetchone()
                    if gone is not None:
                        connection.execute(
                            "INSERT INTO messages (body, sent_at) VALUES (?, ?)", (gone["body"], self._clock.now())
                        )
                        sent += 1
        return sent

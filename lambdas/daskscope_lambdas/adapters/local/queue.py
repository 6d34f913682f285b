"""Queue and QueueFeed on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from daskscope_lambdas.adapters.arguments import check_body, check_limit
from daskscope_lambdas.adapters.local.database import Database
from daskscope_lambdas.ports import Clock, Delivery


class SqliteQueue:
    """Both ends of the queue. A receipt is the message's number and how often it was delivered."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def send(self, body: str) -> None:
        check_body(body)
        with self._database.writing() as connection:
            connection.execute("INSERT INTO messages (body, sent_at) VALUES (?, ?)", (body, self._clock.now()))

    def receive(self, limit: int, hidden_s: float) -> Sequence[Delivery]:
        check_limit(limit)
        now = self._clock.now()
        with self._database.reading() as connection:
            # An empty queue is asked all the time: that shall keep nobody from writing.
            waiting = connection.execute("SELECT 1 FROM messages WHERE visible_at <= ? LIMIT 1", (now,)).fetchone()
        if waiting is None:
            return []
        with self._database.writing() as connection:
            rows = connection.execute(
                """
                UPDATE messages SET visible_at = ?, receive_count = receive_count + 1
                WHERE id IN (SELECT id FROM messages WHERE visible_at <= ? ORDER BY id LIMIT ?)
                RETURNING id, receive_count, body
                """,
                (now + hidden_s, now, limit),
            ).fetchall()
        return [
            Delivery(id=str(row["id"]), receipt=f"{row['id']}.{row['receive_count']}", body=row["body"],
                     receive_count=row["receive_count"])
            for row in sorted(rows, key=lambda row: row["id"])
        ]  # fmt: skip

    def delete(self, receipts: Sequence[str]) -> None:
        with self._database.writing() as connection:
            connection.executemany(
                "DELETE FROM messages WHERE id = ? AND receive_count = ?", [_parts(receipt) for receipt in receipts]
            )

    def release(self, receipts: Sequence[str]) -> None:
        with self._database.writing() as connection:
            connection.executemany(
                "UPDATE messages SET visible_at = 0 WHERE id = ? AND receive_count = ?",
                [_parts(receipt) for receipt in receipts],
            )

    def bury(self, receipt: str, reason: str) -> None:
        with self._database.writing() as connection:
            row = connection.execute(
                """
                DELETE FROM messages WHERE id = ? AND receive_count = ? RETURNING id, body, sent_at, receive_count
                """,
                _parts(receipt),
            ).fetchone()
            if row is not None:
                connection.execute(
                    """
                    INSERT INTO dead_letters (id, body, sent_at, receive_count, buried_at, reason)
                    VALUES (?, ?, ?, ?, ?, ?)
                    """,
                    (*row, self._clock.now(), reason),
                )


def _parts(receipt: str) -> tuple[str, str]:
    """Number and count, still as text: SQLite compares them as numbers, and any other text equals none."""
    number, _, count = receipt.partition(".")
    return number, count

"""Seals on SQLite."""

from __future__ import annotations

from datetime import date

from daskscope_lambdas.adapters.arguments import check_forward
from daskscope_lambdas.adapters.local.database import Database
from daskscope_lambdas.ports import Conflict


class SqliteSeals:
    """The boundary, in a table of one row or none."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def boundary(self) -> date | None:
        with self._database.reading() as connection:
            row = connection.execute("SELECT day FROM seals").fetchone()
        return date.fromisoformat(row["day"]) if row else None

    def advance(self, expected: date | None, day: date) -> None:
        check_forward(expected, day)
        with self._database.writing() as connection:
            if expected is None:
                change = connection.execute("INSERT OR IGNORE INTO seals (one, day) VALUES (1, ?)", (day.isoformat(),))
            else:
                days = (day.isoformat(), expected.isoformat())
                change = connection.execute("UPDATE seals SET day = ? WHERE day = ?", days)
        if change.rowcount != 1:
            raise Conflict(f"The boundary is at {self.boundary()}, not at {expected}: another run sealed {day}.")

"""Reports on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from daskscope_lambdas.adapters.arguments import check_limit
from daskscope_lambdas.adapters.cursors import HIGHEST
from daskscope_lambdas.adapters.local.database import Database
from daskscope_lambdas.ports import Missing, ReportDraft, ReportRow


class SqliteReports:
    """One row per report; the last number of each account stands apart, so that none is given twice."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, draft: ReportDraft) -> ReportRow:
        with self._database.writing() as connection:
            (number,) = connection.execute(
                "INSERT INTO report_numbers VALUES (?, 1) ON CONFLICT DO UPDATE SET last = last + 1 RETURNING last",
                (draft.account,),
            ).fetchone()
            connection.execute(
                """
                INSERT INTO reports VALUES (
                    :account, :id, :link, :filename, :title, :private, :user, :user_claimed, :key_id, :size_bytes,
                    :created_at, NULL
                )
                """,
                asdict(draft) | {"id": number},
            )
        return ReportRow(**asdict(draft), id=number)

    def get(self, account: str, id: int) -> ReportRow:
        with self._database.reading() as connection:
            row = connection.execute("SELECT * FROM reports WHERE account = ? AND id = ?", _key(account, id)).fetchone()
        return _found(row, account, id)

    def keep(self, account: str, id: int, at: float) -> ReportRow:
        return self._change("kept_at = coalesce(kept_at, ?)", at, account, id)

    def set_private(self, account: str, id: int, private: bool) -> ReportRow:
        return self._change("private = ?", private, account, id)

    def _change(self, change: str, value: float | bool, account: str, id: int) -> ReportRow:
        with self._database.writing() as connection:
            row = connection.execute(
                f"UPDATE reports SET {change} WHERE account = ? AND id = ? RETURNING *",  # noqa: S608  our own words
                (value, *_key(account, id)),
            ).fetchone()
        return _found(row, account, id)

    def remove(self, account: str, id: int) -> None:
        with self._database.writing() as connection:
            connection.execute("DELETE FROM reports WHERE account = ? AND id = ?", _key(account, id))

    def page(
        self, account: str, limit: int, before: int | None = None, *, oldest_first: bool = False
    ) -> Sequence[ReportRow]:
        check_limit(limit)
        beyond, order = (">", "ASC") if oldest_first else ("<", "DESC")
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT * FROM reports WHERE account = ?1 AND (?2 IS NULL OR id {beyond} ?2) "  # noqa: S608  our own
                f"ORDER BY id {order} LIMIT ?3",
                (account, None if before is None else _number(before), limit),
            ).fetchall()
        return [_report(row) for row in rows]

    def accounts(self) -> Sequence[str]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT account FROM report_numbers ORDER BY account").fetchall()
        return [row["account"] for row in rows]

    def forget_numbers(self, account: str) -> None:
        with self._database.writing() as connection:
            connection.execute(
                """
                DELETE FROM report_numbers
                WHERE account = ?1 AND NOT EXISTS (SELECT 1 FROM reports WHERE account = ?1)
                """,
                (account,),
            )


def _number(id: int) -> int:
    """SQLite knows no larger ones, and no report has one that is not above 0."""
    return min(max(id, 0), HIGHEST)


def _key(account: str, id: int) -> tuple[str, int]:
    return account, _number(id)


def _found(row: sqlite3.Row | None, account: str, id: int) -> ReportRow:
    if row is None:
        raise Missing(f"No report {id} in account {account}.")
    return _report(row)


def _report(row: sqlite3.Row) -> ReportRow:
    values: dict[str, Any] = dict(row)
    values |= {name: bool(row[name]) for name in ("private", "user_claimed")}
    return ReportRow(**values)

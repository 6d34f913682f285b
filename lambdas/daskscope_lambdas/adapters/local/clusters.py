"""Clusters, the registry, on SQLite."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from daskscope_lambdas.adapters.arguments import check_limit
from daskscope_lambdas.adapters.cursors import HIGHEST, cursor_at, position
from daskscope_lambdas.adapters.fingerprint import fingerprint
from daskscope_lambdas.adapters.local.database import Database
from daskscope_lambdas.ports import (
    Beat,
    ClusterPage,
    ClusterRow,
    Gone,
    Heard,
    Missing,
    Taken,
    identity_key,
    start_of_day,
)

_TOGETHER = 500
"""Rows that `living` and `changed` hold at a time."""

_NEWER = """
    UPDATE clusters SET
        boot = :boot, seq = :seq, made_at = :made_at, next_s = :next_s, phase = :phase, reason = :reason,
        identity = coalesce(:identity, identity), identity_of = max(identity_of, :identity_of),
        totals = :totals, lost = :lost, uptime_s = :uptime_s,
        skew_s = coalesce(:skew_s, skew_s), skew_of = max(skew_of, :skew_of),
        last_received_at = max(last_received_at, :received_at), retired = 0
    WHERE uuid = :uuid AND account = :account AND (boot, seq) < (:boot, :seq)
    RETURNING close_asked_at
"""
_OLDER = """
    UPDATE clusters SET
        identity = CASE WHEN :identity_of > identity_of THEN :identity ELSE identity END,
        identity_of = max(identity_of, :identity_of),
        skew_s = CASE WHEN :skew_of > skew_of THEN :skew_s ELSE skew_s END,
        skew_of = max(skew_of, :skew_of),
        last_received_at = CASE WHEN last_received_at < :day_at THEN :received_at ELSE last_received_at END
    WHERE uuid = :uuid AND account = :account
        AND (last_received_at < :day_at OR identity_of < :identity_of OR skew_of < :skew_of)
"""


class SqliteClusters:
    """One row per cluster; what is JSON in a message is JSON in its column."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def enrol(self, account: str, uuid: str, started_at: float, received_at: float) -> ClusterRow:
        try:
            row = self._find(uuid)
        except Missing:
            with self._database.writing() as connection:
                # Nobody else writes in this transaction: found after all, or made with a number of its own.
                found = connection.execute("SELECT 1 FROM clusters WHERE uuid = ?", (uuid,)).fetchone()
                if found is None:
                    _refuse_deleted(connection, uuid)
                    (number,) = connection.execute(
                        """
                        INSERT INTO numbers VALUES (?, 1) ON CONFLICT DO UPDATE SET last = last + 1 RETURNING last
                        """,
                        (account,),
                    ).fetchone()
                    connection.execute(
                        """
                        INSERT INTO clusters (uuid, account, id, started_at, first_received_at, last_received_at)
                        VALUES (?, ?, ?, ?, ?, ?)
                        """,
                        (uuid, account, number, started_at, received_at, received_at),
                    )
            row = self._find(uuid)
        if row.account != account:
            raise Taken(f"Cluster {uuid} belongs to another account than {account}.")
        return row

    def beat(self, account: str, uuid: str, beat: Beat) -> Heard:
        values = _values(account, uuid, beat)
        with self._database.writing() as connection:
            changed = connection.execute(_NEWER, values).fetchone()
            if changed is None:
                connection.execute(_OLDER, values)
                _refuse_deleted(connection, uuid)
        if changed is None:
            return Heard(False, self.find(account, uuid).close_asked_at)
        return Heard(True, changed["close_asked_at"])

    def ask_close(self, account: str, uuid: str, by: str, reason: str | None, at: float) -> bool:
        with self._database.writing() as connection:
            change = connection.execute(
                """
                UPDATE clusters SET close_asked_at = ?, close_asked_by = ?, close_asked_reason = ?
                WHERE uuid = ? AND account = ? AND phase = 'running'
                """,
                (at, by, reason, uuid, account),
            )
        if change.rowcount == 0:
            self.find(account, uuid)
        return change.rowcount == 1

    def get(self, account: str, id: int) -> ClusterRow:
        known = None
        if 0 < id <= HIGHEST:
            with self._database.reading() as connection:
                known = connection.execute(
                    "SELECT * FROM clusters WHERE account = ? AND id = ?", (account, id)
                ).fetchone()
        if known is None:
            raise Missing(f"No cluster {id} in account {account}.")
        return _cluster(known)

    def find(self, account: str, uuid: str) -> ClusterRow:
        row = self._find(uuid)
        if row.account != account:
            raise Missing(f"No cluster {uuid} in account {account}.")
        return row

    def _find(self, uuid: str) -> ClusterRow:
        with self._database.reading() as connection:
            row = connection.execute("SELECT * FROM clusters WHERE uuid = ?", (uuid,)).fetchone()
        if row is None:
            raise Missing(f"No cluster {uuid}.")
        return _cluster(row)

    def page(self, account: str, since: float | None, limit: int, cursor: str | None) -> ClusterPage:
        check_limit(limit)
        started_at, number = (math.inf, HIGHEST) if cursor is None else position(cursor)
        with self._database.reading() as connection:
            rows = connection.execute(
                """
                SELECT * FROM clusters
                WHERE account = ? AND (started_at, id) < (?, ?) AND last_received_at >= ?
                ORDER BY started_at DESC, id DESC LIMIT ?
                """,
                (account, started_at, number, -math.inf if since is None else since, limit + 1),
            ).fetchall()
        page = [_cluster(row) for row in rows[:limit]]
        return ClusterPage(page, cursor_at(page[-1].started_at, page[-1].id) if len(rows) > limit else None)

    def get_many(self, account: str, uuids: Sequence[str]) -> list[ClusterRow]:
        with self._database.reading() as connection:
            # By the UUIDs: the `+` keeps SQLite from going through all clusters of the account.
            rows = connection.execute(
                "SELECT * FROM clusters WHERE uuid IN (SELECT value FROM json_each(?)) AND +account = ?",
                (json.dumps(list(uuids)), account),
            ).fetchall()
        found = {row["uuid"]: row for row in rows}
        return [_cluster(found[uuid]) for uuid in uuids if uuid in found]

    def changed(
        self,
        account: str,
        since_at: float,
        last_id: int = 0,
        running: Collection[str] = (),  # noqa: ARG002  the index holds when each was heard of
    ) -> Iterator[ClusterRow]:
        cursor = None
        while True:
            page = self.page(account, since_at, _TOGETHER, cursor)
            yield from page.rows
            cursor = page.cursor
            if cursor is None:
                break
        if last_id > 0:
            yield from self._new_but_earlier(account, since_at, last_id)

    def _new_but_earlier(self, account: str, since_at: float, last_id: int) -> Iterator[ClusterRow]:
        """With higher numbers, by them, and last heard of before `since_at`."""
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(
                    """
                    SELECT * FROM clusters WHERE account = ? AND id > ? AND last_received_at < ? ORDER BY id LIMIT ?
                    """,
                    (account, last_id, since_at, _TOGETHER),
                ).fetchall()
            if not rows:
                return
            yield from map(_cluster, rows)
            last_id = rows[-1]["id"]

    def accounts(self) -> set[str]:
        with self._database.reading() as connection:
            return {row["account"] for row in connection.execute("SELECT account FROM numbers")}

    def living(self) -> Iterator[ClusterRow]:
        last = ""
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(
                    """
                    SELECT * FROM clusters WHERE phase = 'running' AND NOT retired AND uuid > ? ORDER BY uuid LIMIT ?
                    """,
                    (last, _TOGETHER),
                ).fetchall()
            if not rows:
                return
            yield from map(_cluster, rows)
            last = rows[-1]["uuid"]

    def retire(self, row: ClusterRow) -> bool:
        with self._database.writing() as connection:
            change = connection.execute(
                """
                UPDATE clusters SET retired = 1
                WHERE uuid = ? AND account = ? AND boot = ? AND seq = ? AND phase = 'running' AND NOT retired
                """,
                (row.uuid, row.account, row.boot, row.seq),
            )
        if change.rowcount == 0:
            self.find(row.account, row.uuid)
        return change.rowcount == 1

    def drop(self, row: ClusterRow) -> bool:
        with self._database.writing() as connection:
            connection.execute(
                """
                DELETE FROM clusters
                WHERE uuid = ? AND account = ? AND boot = ? AND seq = ? AND last_received_at = ?
                """,
                (row.uuid, row.account, row.boot, row.seq, row.last_received_at),
            )
            left = connection.execute("SELECT 1 FROM clusters WHERE uuid = ?", (row.uuid,)).fetchone()
        return left is None

    def forget(self, account: str, uuid: str, at: float) -> None:
        with self._database.writing() as connection:
            change = connection.execute("DELETE FROM clusters WHERE uuid = ? AND account = ?", (uuid, account))
            if change.rowcount == 1:
                connection.execute(
                    "INSERT INTO deleted VALUES (?, ?, ?)", (fingerprint(uuid), fingerprint(account, uuid), at)
                )
                return
            known = connection.execute(
                "SELECT 1 FROM deleted WHERE owner_sha256 = ? AND uuid_sha256 = ?",
                (fingerprint(account, uuid), fingerprint(uuid)),
            ).fetchone()
        if known is None:
            raise Missing(f"No cluster {uuid} in account {account}.")

    def deleted(self, uuids: Iterable[str]) -> set[str]:
        with self._database.reading() as connection:
            return {uuid for uuid in uuids if _is_deleted(connection, uuid)}

    def forget_numbers(self, account: str) -> None:
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM numbers WHERE account = ?1 AND NOT EXISTS (SELECT 1 FROM clusters WHERE account = ?1)",
                (account,),
            )


def _is_deleted(connection: sqlite3.Connection, uuid: str) -> bool:
    found = connection.execute("SELECT 1 FROM deleted WHERE uuid_sha256 = ?", (fingerprint(uuid),)).fetchone()
    return found is not None


def _refuse_deleted(connection: sqlite3.Connection, uuid: str) -> None:
    if _is_deleted(connection, uuid):
        raise Gone(f"Cluster {uuid} was deleted.")


def _values(account: str, uuid: str, beat: Beat) -> dict[str, Any]:
    return {
        "account": account,
        "uuid": uuid,
        "boot": beat.boot,
        "seq": beat.seq,
        "received_at": beat.received_at,
        "day_at": start_of_day(beat.received_at),
        "made_at": beat.made_at,
        "next_s": beat.next_s,
        "phase": beat.phase,
        "reason": beat.reason,
        "identity": None if beat.identity is None else _json(beat.identity),
        "identity_of": "" if beat.identity is None else identity_key(beat.boot, beat.seq),
        "totals": _json(beat.totals),
        "lost": _json(beat.lost),
        "uptime_s": beat.uptime_s,
        "skew_s": beat.skew_s,
        "skew_of": "" if beat.skew_s is None else identity_key(beat.boot, beat.seq),
    }


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _cluster(row: sqlite3.Row) -> ClusterRow:
    values = dict(row)
    del values["retired"]
    return ClusterRow(**values | {name: json.loads(values[name]) for name in ("identity", "totals", "lost")})

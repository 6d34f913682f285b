"""The SQLite file behind queue, registry, seals and tokens: its schema, connections and transactions."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from daskscope_lambdas.adapters.local.disk import sync_folder
from daskscope_lambdas.adapters.local.mapping import mapped
from daskscope_lambdas.ports import StoreError

VERSION = 5
"""In the file's `user_version`. A change of the schema raises it and brings the way from the version before."""

_LIVING = "CREATE INDEX clusters_living ON clusters (uuid) WHERE phase = 'running' AND NOT retired"
_SINCE_4 = (
    # Fingerprints: who looks into the file shall not read who was there.
    "CREATE TABLE deleted (uuid_sha256 TEXT PRIMARY KEY, owner_sha256 TEXT NOT NULL, at REAL NOT NULL) STRICT",
    """
    CREATE TABLE deletions (
        account TEXT NOT NULL,
        cluster TEXT NOT NULL, -- empty: the whole account
        asked_at REAL NOT NULL,
        by TEXT NOT NULL,
        swept_through TEXT,
        PRIMARY KEY (account, cluster)
    ) STRICT
    """,
)
_SINCE_5 = (
    """
    CREATE TABLE wishes (
        account TEXT NOT NULL,
        subject TEXT NOT NULL,
        told TEXT NOT NULL, -- JSON
        PRIMARY KEY (account, subject)
    ) STRICT
    """,
    "CREATE TABLE users (user TEXT PRIMARY KEY COLLATE NOCASE, claimed_at REAL NOT NULL) STRICT",
    """
    CREATE TABLE memberships (
        account TEXT NOT NULL,
        user TEXT NOT NULL,
        role TEXT NOT NULL,
        added_at REAL NOT NULL,
        added_by TEXT NOT NULL,
        PRIMARY KEY (account, user)
    ) STRICT
    """,
    "CREATE INDEX memberships_by_user ON memberships (user, account)",
    """
    CREATE TABLE tickets (
        key TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        told TEXT NOT NULL, -- JSON
        expires_at REAL NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE reports (
        account TEXT NOT NULL,
        id INTEGER NOT NULL,
        link TEXT NOT NULL UNIQUE,
        filename TEXT NOT NULL,
        title TEXT,
        private INTEGER NOT NULL,
        user TEXT,
        user_claimed INTEGER NOT NULL,
        key_id TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        created_at REAL NOT NULL,
        kept_at REAL,
        PRIMARY KEY (account, id)
    ) STRICT
    """,
    "CREATE INDEX tickets_by_end ON tickets (expires_at)",
    "CREATE TABLE report_numbers (account TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT",
)
_WAYS = {
    1: ("ALTER TABLE clusters ADD COLUMN retired INTEGER NOT NULL DEFAULT 0", _LIVING),
    2: (
        "ALTER TABLE clusters ADD COLUMN close_asked_at REAL",
        "ALTER TABLE clusters ADD COLUMN close_asked_by TEXT",
        "ALTER TABLE clusters ADD COLUMN close_asked_reason TEXT",
    ),
    3: (
        "ALTER TABLE clusters ADD COLUMN uptime_s REAL NOT NULL DEFAULT 0.0",
        "ALTER TABLE clusters ADD COLUMN skew_s REAL",
        "ALTER TABLE clusters ADD COLUMN skew_of TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE clusters ADD COLUMN identity_of TEXT NOT NULL DEFAULT ''",
        "UPDATE clusters SET identity_of = boot || '-' || printf('%012d', seq) WHERE identity <> '{}'",
        *_SINCE_4,
        "CREATE TABLE policies (account TEXT PRIMARY KEY, retention TEXT NOT NULL) STRICT",
    ),
    4: (
        "ALTER TABLE tokens ADD COLUMN user TEXT",
        "ALTER TABLE tokens ADD COLUMN kind TEXT NOT NULL DEFAULT 'token'",
        "ALTER TABLE tokens ADD COLUMN parent TEXT",
        "ALTER TABLE tokens ADD COLUMN used_on TEXT",
        "ALTER TABLE tokens ADD COLUMN made_by TEXT",
        "ALTER TABLE tokens ADD COLUMN replaces TEXT",
        *_SINCE_5,
        "INSERT INTO wishes SELECT account, 'retention', retention FROM policies",
        "DROP TABLE policies",
    ),
}
"""By version, the statements that make the next one of it."""

ANEW_BYTES = 32 << 20
"""A file up to this size is written anew within a quarter of a second."""
_BUSY_S = 10.0
"""How long a transaction waits for those of other processes, each of which takes milliseconds."""

_SCHEMA = f"""
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice: a receipt names it
    body TEXT NOT NULL,
    sent_at REAL NOT NULL,
    visible_at REAL NOT NULL DEFAULT 0.0,
    receive_count INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE dead_letters (
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL,
    sent_at REAL NOT NULL,
    receive_count INTEGER NOT NULL,
    buried_at REAL NOT NULL,
    reason TEXT NOT NULL
) STRICT;

CREATE TABLE clusters (
    uuid TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    id INTEGER NOT NULL,
    started_at REAL NOT NULL,
    first_received_at REAL NOT NULL,
    last_received_at REAL NOT NULL,
    boot TEXT NOT NULL DEFAULT '',
    seq INTEGER NOT NULL DEFAULT -1,
    made_at REAL NOT NULL DEFAULT 0.0,
    next_s REAL NOT NULL DEFAULT 0.0,
    phase TEXT NOT NULL DEFAULT 'running',
    reason TEXT,
    identity TEXT NOT NULL DEFAULT '{{}}', -- JSON, as the next two
    totals TEXT NOT NULL DEFAULT '{{}}',
    lost TEXT NOT NULL DEFAULT '{{}}',
    retired INTEGER NOT NULL DEFAULT 0,
    close_asked_at REAL,
    close_asked_by TEXT,
    close_asked_reason TEXT,
    uptime_s REAL NOT NULL DEFAULT 0.0,
    skew_s REAL,
    skew_of TEXT NOT NULL DEFAULT '',
    identity_of TEXT NOT NULL DEFAULT '',
    UNIQUE (account, id)
) STRICT;
-- In the order of lists; last_received_at is in it so that rows outside a list's window are not even looked up.
CREATE INDEX clusters_by_start ON clusters (account, started_at DESC, id DESC, last_received_at);
{_LIVING};

CREATE TABLE numbers (
    account TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) STRICT;

CREATE TABLE seals (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    day TEXT NOT NULL
) STRICT;

CREATE TABLE tokens (
    key_id TEXT PRIMARY KEY,
    secret_sha256 TEXT NOT NULL,
    account TEXT NOT NULL,
    scopes TEXT NOT NULL, -- sorted, a space between
    name TEXT NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL,
    revoked_at REAL,
    user TEXT,
    kind TEXT NOT NULL DEFAULT 'token',
    parent TEXT,
    used_on TEXT, -- a UTC day
    made_by TEXT,
    replaces TEXT
) STRICT;
CREATE INDEX tokens_by_account ON tokens (account, created_at, key_id);
{"; ".join(_SINCE_4 + _SINCE_5)};
"""


class Database:
    """One SQLite file, made (mode 0600) if it is not there. Threads and processes may share the file; a fork may not
    share this object.

    A thread takes a connection out of the pool while it needs one: there are as many as ever were in use at once.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: deque[sqlite3.Connection] = deque()
        self._turn = threading.Lock()
        self.close = weakref.finalize(self, _close_all, self._idle)
        """Close the idle connections; runs by itself at the end of the object or the process."""
        with mapped(path):
            if not path.exists():
                _make(path)
        with self.reading() as connection:
            version = _version(connection)
        while version in _WAYS:
            version = self._make_next(version)
        if version != VERSION:
            raise StoreError(
                f"{path} has version {version}, this daskscope reads version {VERSION}: run the release that wrote it, "
                "or move the file away to start afresh."
            )

    def scrub(self) -> None:
        """Empty the log of what was deleted: in the file itself zeros stand in its place. A small file is written anew
        besides, for pages that were made of others may hold a copy; nobody can write meanwhile.

        A log that somebody reads at that moment keeps the bytes until it is written over.
        """
        with self._turn, self.reading() as connection:
            if self._path.stat().st_size <= ANEW_BYTES:
                connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _make_next(self, version: int) -> int:
        """Make the next version of the file, unless another process was faster; returns which it has then."""
        with self.writing() as connection:
            if _version(connection) == version:
                for statement in _WAYS[version]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            return _version(connection)

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """A connection for single statements that change nothing."""
        with mapped(self._path):
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = _open(self._path)
            try:
                yield connection
            except (sqlite3.Error, sqlite3.Warning):
                connection.close()
                raise
            except BaseException:
                self._idle.append(connection)
                raise
            self._idle.append(connection)

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """A connection in a transaction that alone may write; durable when the block ends, undone if it raises."""
        # Threads of one process take turns here: SQLite's own waiting sleeps up to 100 ms at a time.
        with self._turn, self.reading() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _open(path: Path) -> sqlite3.Connection:
    # mode=rw: should the file vanish, that is an error and not an empty database.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
    )
    try:
        # What is committed is on the disk: 2xx means that the queue has it.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
    except sqlite3.Error:
        connection.close()
        raise
    connection.row_factory = sqlite3.Row
    return connection


def _make(path: Path) -> None:
    """A whole database under another name, then linked: of several processes that start at once, one wins."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}-draft-")
    os.close(handle)
    try:
        with closing(_open(Path(draft))) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        with suppress(FileExistsError):
            os.link(draft, path)
        sync_folder(path.parent)
    finally:
        Path(draft).unlink()


def _close_all(idle: deque[sqlite3.Connection]) -> None:
    while idle:
        idle.pop().close()

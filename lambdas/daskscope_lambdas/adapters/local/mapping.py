"""What SQLite and the file system raise, turned into the ports' errors at this one place.

    IntegrityError on a primary key or unique index    Taken
    FileNotFoundError, NotADirectoryError              Missing
    OSError for want of room (disk, quota)             Full
    any other sqlite3 exception, OSError               StoreError
    OverflowError (an integer over 64 bits)            StoreError

The cause is always kept. Which call may rightly meet a file that exists already is known only there (disk.py).
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from daskscope_lambdas.ports import Full, Missing, StoreError, Taken

_TAKEN = ("SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_ROWID")


@contextmanager
def mapped(where: object) -> Generator[None]:
    """Within, foreign errors become ports errors that name `where`: a path or what was done to it."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
        taken = getattr(error, "sqlite_errorname", None) in _TAKEN
        raise (Taken if taken else StoreError)(f"{where}: {error} ({type(error).__name__})") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Missing(f"{where}: not there.") from error
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise (Full if full else StoreError)(f"{where}: {error.strerror or error} ({type(error).__name__})") from error

"""The DuckDB of a process: without tables, it only lends cursors, and what one registers no other sees.

It opens no file but those it makes itself, in a folder of its own, when it sorts more than its memory holds.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache, partial

import duckdb

from daskscope_query import families

_OF_MEMORY, _OF_DISK = 0.5, 0.75
"""What of the process's memory and of the free disk is DuckDB's: the rest is for Python and rows on their way in and
out, and for others."""
_memory_bytes: int | None = None

_MACROS = """
CREATE MACRO capped(x) AS CASE WHEN x IS NOT NULL
    THEN least(greatest(x::HUGEINT, -9223372036854775808), 9223372036854775807)::BIGINT END;
CREATE MACRO finite(x) AS CASE WHEN isnan(x) THEN 0 WHEN x IS NOT NULL THEN least(greatest(x, -1e300), 1e300) END;
CREATE MACRO fingerprint(code) AS left(md5(nullif(array_to_string(list_sort(list_distinct(
    [frame.code || ':' || coalesce(frame.line_in_code, 0) for frame in flatten(code)])), ' '), '')), 16);
"""
"""`capped`, `finite`: for numbers that no cluster can have measured, which a lake may hold all the same: what sums them
may be wrong then, but it answers. A sum is a HUGEINT, which holds that of any rows.

`fingerprint`: the same for the code of two computations if their frames have the same texts and stand at the same lines
of them, whatever their files are called and however often each was met; null without code."""


def limit_memory(process_bytes: int | None) -> None:
    """How much memory the process has in all, to be said before the first question where the machine does not tell.

    None, as unsaid: DuckDB takes up to 80 % of what it believes to be there.
    """
    global _memory_bytes
    _memory_bytes = process_bytes


def cursor() -> duckdb.DuckDBPyConnection:
    return _engine(os.getpid()).cursor()


@cache
def _engine(pid: int) -> duckdb.DuckDBPyConnection:
    # By process: a forked child must not use its parent's threads.
    scratch = _scratch(pid)
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "python_enable_replacements": "false",
        "threads": "2",
        # Not below the working directory, as DuckDB would have it: that may be read-only, and is others' business.
        "temp_directory": scratch,
        "max_temp_directory_size": _part(shutil.disk_usage(scratch).free, _OF_DISK),
    }
    if _memory_bytes is not None:
        config["memory_limit"] = _part(_memory_bytes, _OF_MEMORY)
    engine = duckdb.connect(":memory:", config=config)
    engine.execute(_MACROS + families.MACROS)
    engine.execute("SET GLOBAL TimeZone = 'UTC'; SET enable_external_access = false; SET lock_configuration = true")
    return engine


def _part(n_bytes: int, share: float) -> str:
    return f"{int(n_bytes * share)}B"


def _scratch(pid: int) -> str:
    """A folder for this process and its user alone, which goes when the process ends."""
    folder = tempfile.mkdtemp(prefix="daskscope-")
    atexit.register(partial(_remove, pid, folder))
    return folder


def _remove(pid: int, folder: str) -> None:
    if os.getpid() == pid:  # A forked child ends too.
        shutil.rmtree(folder, ignore_errors=True)

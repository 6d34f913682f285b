import os
import subprocess
import sys
from pathlib import Path

SPILL = """
import atexit, os, pathlib, tempfile
from daskscope_query import engine

os.mkdir("gone")
os.chdir("gone")
os.rmdir("../gone")  # as good as read-only, also for root
engine.limit_memory(256 << 20)
cursor = engine.cursor()
settings = "SELECT value FROM duckdb_settings() WHERE name IN ('memory_limit', 'temp_directory') ORDER BY name"
(memory,), (scratch,) = cursor.execute(settings).fetchall()
assert memory == "128.0 MiB", memory
scratch = pathlib.Path(scratch)
assert scratch.parent == pathlib.Path(tempfile.gettempdir()), scratch
assert scratch.stat().st_mode & 0o777 == 0o700
rows = cursor.execute(
    "SELECT i, repeat(md5(i::VARCHAR), 8) AS text FROM range(1000000) AS numbers(i) ORDER BY text DESC, i"
)
(spilled,) = engine.cursor().execute("SELECT sum(size) FROM duckdb_temporary_files()").fetchone()
assert spilled, "nothing was spilled: this shows nothing"
assert len(rows.fetchmany(10)) == 10
if os.fork() == 0:
    atexit._run_exitfuncs()
    os._exit(0)  # what is left of an end would wait for DuckDB's threads, which a child has not
os.wait()
assert scratch.is_dir(), "the end of a child is not the end of its parent"
"""
UNSAID = """
import duckdb
from daskscope_query import engine
memory = "SELECT value FROM duckdb_settings() WHERE name = 'memory_limit'"
engine.limit_memory(None)
assert engine.cursor().execute(memory).fetchone() == duckdb.connect().execute(memory).fetchone()
"""


def run(script: str, folder: Path) -> None:
    temporary, working = folder / "tmp", folder / "task"
    temporary.mkdir()
    working.mkdir()
    # Python warns that the process that forks has threads: DuckDB's, which is what the fork is about.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]
    environment = os.environ | {"TMPDIR": str(temporary)}
    done = subprocess.run(command, cwd=working, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(temporary.iterdir()) == list(working.iterdir()) == [], "something stayed behind"


def test_a_sort_over_the_memory_goes_to_disk_and_leaves_nothing(tmp_path: Path) -> None:
    run(SPILL, tmp_path)


def test_unsaid_the_memory_is_what_duckdb_takes(tmp_path: Path) -> None:
    run(UNSAID, tmp_path)

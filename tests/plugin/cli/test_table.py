"""Tables on a terminal: as wide as that, coloured, and with what else a person is told."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.cli.table import fitting
from daskscope.records import Records
from tests.plugin.api_server import Answer, ApiServer

CLUSTER = {"id": 12, "name": "nightly-etl " * 9, "user": "ann", "status": "lost", "created": "2026-11-21T08:00:00.000Z"}
ROWS = [
    {"id": "0195a0c2b400da5c00000001-3", "text": "x" * 90, "n": 3, "start": "2026-11-21T08:00:00.000Z", "z": "y" * 40}
]


def api(path: str, query: dict[str, str]) -> Answer:
    if path.endswith("/exceptions"):
        return 200, {"items": [], "cursor": None}
    return 200, {"items": [CLUSTER], "cursor": "1", "total": 1234} if "limit" in query else CLUSTER


@pytest.fixture
def on_terminal(serve: Any) -> Callable[..., str]:
    """Runs a command as in a terminal of so many columns, and gives what stood on it."""

    def run(columns: int, *arguments: str, **environment: str) -> str:
        server: ApiServer = serve()
        ours, theirs = pty.openpty()
        told = {"COLUMNS": str(columns), "DASK_DASKSCOPE__SERVER": server.url, "DASK_DASKSCOPE__ACCOUNT": "acme"}
        command = [sys.executable, "-m", "daskscope.cli", *arguments]
        process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | told | environment
        )
        os.close(theirs)
        shown = b""
        while piece := _read(ours):
            shown += piece
        os.close(ours)
        assert process.wait() in (0, 2)
        return shown.decode()

    return run


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # as Linux tells that nobody writes there any more
        return b""


def test_a_table_is_no_wider_than_the_terminal_and_says_what_it_leaves_out(on_terminal: Callable[..., str]) -> None:
    lines = on_terminal(60, "clusters", "--limit", "1").splitlines()
    assert lines[0] == "\x1b[1mid  name                   user  status  created\x1b[0m"
    assert lines[1] == "12  nightly-etl nightly-…  ann   lost    2026-11-21 08:00:00"
    assert len(lines[1]) == 60
    assert lines[2] == "No room for duration, cost, peak_workers, n_tasks, n_tasks_erred."
    assert lines[3] == "1 of 1,234: --limit takes more."


def test_colours_can_be_turned_off(on_terminal: Callable[..., str]) -> None:
    assert "\x1b" not in on_terminal(60, "clusters", "--limit", "1", "--no-color")
    assert "\x1b" not in on_terminal(60, "clusters", "--limit", "1", NO_COLOR="1")


def test_a_person_is_told_that_there_is_nothing(on_terminal: Callable[..., str]) -> None:
    assert on_terminal(60, "exceptions") == "No exceptions.\r\n"


def test_parquet_is_not_for_a_terminal(on_terminal: Callable[..., str]) -> None:
    assert "send it to a file" in on_terminal(60, "clusters", "--limit", "1", "--format", "parquet")


@given(st.integers(min_value=28, max_value=300))
def test_what_is_shown_fits_and_what_names_a_thing_is_whole(width: int) -> None:
    widths = fitting(Records(ROWS), width)
    assert sum(widths.values()) + 2 * (len(widths) - 1) <= width
    assert list(widths) == list(ROWS[0])[: len(widths)]
    assert widths["id"] == 26
    assert widths.get("start", 19) == 19


def test_with_room_everything_is_shown() -> None:
    assert fitting(Records(ROWS), 200) == {"id": 26, "text": 60, "n": 1, "start": 19, "z": 40}
    assert fitting(Records(ROWS), 3) == {"id": 26}

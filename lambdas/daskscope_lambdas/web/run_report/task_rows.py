"""Task rows as few bytes: in lanes, where one begins as a rule when the last one ends.

A lane is what a thread of a worker may have run: no two of its tasks overlap. Its rows are seven columns of whole
numbers, each column for itself: what kind (the index of a prefix), the pause since the task before (ms, by zigzag), its
time (us) without the zeroes at its end: all digits but the last, the last one, the number of zeroes; whether it failed,
how many tasks it stands for. All numbers in seven bits a byte, low ones first; each column by DEFLATE and in base64.
Nothing is rounded that the lake has. `from` (ms after the start of the run) is where the first one begins. tasks.js
reads it.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

FORGOTTEN = "(forgotten)"
"""Stands for the prefix of tasks whose group the scheduler had forgotten."""
_ROUNDED_US, _EARLY_US = 500, 2_000
"""Starts are whole milliseconds, and times have three digits; so a task may begin before the one ends that ran before
it in its thread: as a rule by no more than the first, rarely by the second."""
_MOST_LANES = 64
"""Of a worker. Tasks that left their threads may overlap without end: the others go where there is room first."""

Row = tuple[int, int, int, bool, int]
"""Kind, start (ms), time (us), failed, weight."""


@dataclass(frozen=True, slots=True)
class Packed:
    """`text`: JSON for a script element. `n`: rows in it, `of`: in the lake; `n_tasks` of those in it, for a row may
    stand for many."""

    text: str
    n: int
    of: int
    n_tasks: int
    n_lanes: int


def packed(rows: pa.Table, start: datetime) -> Packed:
    """`rows` as the query `run_tasks` tells them: those of a worker together, earliest first. `start`: of the run."""
    columns = [rows[name].to_pylist() for name in ("worker", "prefix", "start_ms", "duration_us", "erred", "weight")]
    kinds: dict[str, int] = {}
    lanes: list[tuple[str, list[Row]]] = []
    worker, mine = None, list[_Lane]()
    for name, prefix, start_ms, duration_us, erred, weight in zip(*columns, strict=True):
        if name != worker:
            worker, mine = name, list[_Lane]()
        row = (kinds.setdefault(prefix or FORGOTTEN, len(kinds)), start_ms, duration_us, bool(erred), weight or 1)
        lane = _free(mine, start_ms * 1000)
        if lane is None:
            mine.append(lane := _Lane())
            lanes.append((name or "", lane.rows))
        lane.add(row)
    first_ms = min(columns[2], default=0)
    told: dict[str, Any] = {
        "from": first_ms - round(start.timestamp() * 1000),
        "kinds": list(kinds),
        "workers": list(dict.fromkeys(name for name, _ in lanes)),
        "lanes": _lengths(lanes),
        "columns": [_deflated(column) for column in _columns([row for _, row in lanes], first_ms)],
    }
    return Packed(
        text=json.dumps(told, separators=(",", ":")).replace("<", "\\u003c"),
        n=rows.num_rows,
        of=rows["n_rows"][0].as_py() if rows.num_rows else 0,
        n_tasks=sum(row[4] for _, mine in lanes for row in mine),
        n_lanes=len(lanes),
    )


class _Lane:
    def __init__(self) -> None:
        self.rows = list[Row]()
        self.free_us = 0

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.free_us = row[1] * 1000 + row[2]


def _free(lanes: Sequence[_Lane], start_us: int) -> _Lane | None:
    """The one that was free last: a thread goes on with the next task at once. None for one more."""
    free = [lane for lane in lanes if lane.free_us <= start_us + _ROUNDED_US]
    if free:
        return max(free, key=lambda lane: lane.free_us)
    soonest = min(lanes, key=lambda lane: lane.free_us, default=None)
    if soonest and (soonest.free_us <= start_us + _EARLY_US or len(lanes) >= _MOST_LANES):
        return soonest
    return None


def _lengths(lanes: Sequence[tuple[str, list[Row]]]) -> list[list[int]]:
    """For each worker, how many rows its lanes have."""
    found: dict[str, list[int]] = {}
    for worker, rows in lanes:
        found.setdefault(worker, []).append(len(rows))
    return list(found.values())


def _columns(lanes: Sequence[Sequence[Row]], first_ms: int) -> list[list[int]]:
    columns: list[list[int]] = [[] for _ in range(7)]
    for rows in lanes:
        ended_ms = first_ms
        for kind, start_ms, duration_us, failed, weight in rows:
            digits, zeroes = _digits(duration_us)
            pause_ms = start_ms - ended_ms
            pause = 2 * pause_ms if pause_ms >= 0 else -2 * pause_ms - 1
            row = (kind, pause, digits // 10, digits % 10, zeroes, int(failed), weight)
            for column, value in zip(columns, row, strict=True):
                column.append(value)
            ended_ms = (start_ms * 1000 + duration_us) // 1000
    return columns


def _digits(value: int) -> tuple[int, int]:
    """Without the zeroes at its end, and how many these were: the plugin keeps three digits."""
    zeroes = 0
    while value >= 1000 and value % 10 == 0:
        value, zeroes = value // 10, zeroes + 1
    return value, zeroes


def _deflated(column: Iterable[int]) -> str:
    """In base64. What repeats and what is all but random want to be packed in different ways: the shortest counts."""
    made = bytearray()
    for value in column:
        while value > 127:
            made.append(value & 127 | 128)
            value >>= 7
        made.append(value)
    tried = [zlib.compressobj(9, zlib.DEFLATED, -15, strategy=strategy) for strategy in _STRATEGIES]
    return base64.b64encode(min((each.compress(bytes(made)) + each.flush() for each in tried), key=len)).decode()


_STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY)

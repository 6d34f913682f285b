import base64
import json
import random
import zlib
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from daskscope_lambdas.web.run_report.task_rows import FORGOTTEN, Packed, packed

START_MS = 1_795_248_000_000
START = datetime.fromtimestamp(START_MS / 1000, UTC)
Told = tuple[str, str, int, int, bool, int]
"""Worker, prefix, start (ms after that of the run), time (us), failed, weight."""


def table(*rows: Told, n_rows: int | None = None) -> pa.Table:
    names = ("worker", "prefix", "start_ms", "duration_us", "erred", "weight")
    columns: dict[str, Any] = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    columns["start_ms"] = [START_MS + ms for ms in columns["start_ms"]]
    return pa.table({**columns, "n_rows": [n_rows or len(rows)] * len(rows)})


def read(found: Packed) -> list[tuple[Told, int]]:
    """Its rows, each with the number of its lane, as tasks.js reads them."""
    told = json.loads(found.text)

    def numbers(text: str) -> list[int]:
        column, unit = [0], 1
        for byte in zlib.decompress(base64.b64decode(text), -15):
            column[-1] += byte % 128 * unit
            unit *= 128
            if byte < 128:
                column.append(0)
                unit = 1
        assert column.pop() == 0, "no number is cut short"
        return column

    columns = [numbers(text) for text in told["columns"]]
    rows = list[tuple[Told, int]]()
    cells = zip(*columns, strict=True)
    lengths = [(w, length) for w, lanes in enumerate(told["lanes"]) for length in lanes]
    for lane, (worker, length) in enumerate(lengths):
        ended = told["from"]
        for _ in range(length):
            kind, pause, digits, last, zeroes, failed, weight = next(cells)
            start = ended + (-(pause + 1) // 2 if pause % 2 else pause // 2)
            us = (10 * digits + last) * 10**zeroes
            ended = start + us // 1000
            row = (told["workers"][worker], told["kinds"][kind], start, us, bool(failed), weight)
            rows.append((row, lane))
    assert next(cells, None) is None, "nothing else is in it"
    return rows


def test_every_row_comes_back_as_it_was():
    dice = random.Random(8)
    rows: list[Told] = [
        (
            f"w{dice.randrange(3)}", dice.choice("abc"), dice.randrange(5_000),
            dice.choice((0, 7, 999, 1_230, 45_600_000, 3_000_000_000)), dice.random() < 0.1, dice.choice((1, 1, 4)),
        )
        for _ in range(500)
    ]  # fmt: skip
    rows.sort(key=lambda row: (row[0], row[2]))
    found = packed(table(*rows), START)
    assert sorted(row for row, _ in read(found)) == sorted(rows)
    assert (found.n, found.of, found.n_tasks) == (500, 500, sum(row[5] for row in rows))


def test_tasks_of_one_thread_share_a_lane_and_no_two_at_once():
    rows: list[Told] = [
        ("w", "a", 0, 10_000, False, 1),
        ("w", "a", 4, 10_000, False, 1),
        ("w", "a", 10, 5_000, False, 1),
        ("w", "a", 14, 5_000, False, 1),
        ("x", "a", 0, 1_000, False, 1),
    ]
    found = packed(table(*rows), START)
    assert found.n_lanes == 3
    assert {(row[0], row[2]): lane for row, lane in read(found)} == {
        ("w", 0): 0, ("w", 4): 1, ("w", 10): 0, ("w", 14): 1, ("x", 0): 2,
    }  # fmt: skip


def test_tasks_that_overlap_without_end_take_no_more_lanes_than_can_be_drawn():
    rows: list[Told] = [("w", "a", n, 60_000_000, False, 1) for n in range(200)]
    found = packed(table(*rows), START)
    assert found.n_lanes == 64
    assert sorted(row for row, _ in read(found)) == rows


def test_hostile_names_end_no_script_element():
    found = packed(table(("</script><script>", "<!--", 0, 1, False, 1)), START)
    assert "<" not in found.text
    ((row, _),) = read(found)
    assert row[:2] == ("</script><script>", "<!--")


def test_rows_that_were_left_out_are_counted_and_forgotten_groups_have_a_name():
    row: Any = ("w", None, 0, 1, None, None)
    found = packed(table(row, n_rows=7), START)
    assert (found.n, found.of) == (1, 7)
    assert read(found)[0][0] == ("w", FORGOTTEN, 0, 1, False, 1)


def test_a_task_takes_few_bytes():
    dice = random.Random(8)
    rows: list[Told] = []
    for worker in "vw":
        at_us = 0
        for _ in range(2_000):
            us = dice.randrange(100, 1_000) * 10
            rows.append((worker, "abc"[at_us // 1_000_000 % 3], at_us // 1000, us, False, 1))
            at_us += us + dice.randrange(500, 3_000)
    found = packed(table(*rows), START)
    assert len(found.text) / found.n < 3.5

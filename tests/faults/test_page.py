"""What was tried stands in docs/reliability.md, each row with its line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from tests.faults.catalog import runs, tried
from tests.faults.page import fill
from tests.faults.peers import PEERS
from tests.faults.peers.trial import ROWS
from tests.faults.row import Form, Row, from_json

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
MARKED = "before\n<!-- rows -->\nold\n<!-- end -->\nbetween\n<!-- peers -->\nold\n<!-- end -->\nafter\n"


def _part(name: str) -> str:
    return PAGE.read_text().partition(f"<!-- {name} -->")[2].partition("<!-- end -->")[0]


def test_every_row_has_its_line() -> None:
    assert re.findall(r"^\| ([A-Z]\d+) \|", _part("rows"), re.M) == list(runs())


def test_others_stand_beside_the_rows_they_can_be_held_against() -> None:
    assert re.findall(r"^\| ([A-Z]\d+) \|", _part("peers"), re.M) == list(ROWS)
    assert all(name in _part("peers") for name in PEERS)


def test_rows_are_written_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(MARKED)
    peers = {"theirs": {"version": "2.0", "lost": 60, "came_again": 2}}
    bad = Row("B2", "another", 7, 1, 0, held=False, figures={"reported_lost_events": 3}, peers=peers, form="short")
    fill(page, [Row("B1", "a fault", 1200, 0, 0, held=True, figures={"drained_in_s": 30.5}, form="long"), bad])
    text = page.read_text()
    assert "| B1 | a fault | long | 1,200 | 0 | 0 | yes | drained in s 30.5 |" in text
    assert "| B2 | another | short | 7 | 1 | 0 | **no** |" in text
    assert "| B2 | another | 7 | 1 lost, 3 lost and reported | 60 lost, 2 doubled |" in text
    assert "theirs 2.0" in text
    assert "old" not in text
    assert [text.startswith("before\n"), "\nbetween\n" in text, text.endswith("after\n")] == [True] * 3


def test_what_came_of_others_stays_where_they_were_not_tried(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(MARKED)
    fill(page, [Row("B1", "a fault", 3, 0, 0, held=True, form="part")])
    assert "| B1 | a fault | part | 3 | 0 | 0 | yes |" in page.read_text()
    assert page.read_text().partition("between")[2] == MARKED.partition("between")[2]


def test_a_row_says_how_much_of_it_was_tried() -> None:
    def run(short: bool) -> Row:
        return Row("B1", "a fault", 1 if short else 10, 0, 0, held=True)

    def bounded(short: bool, most: int = 10) -> Row:
        return Row("B9", "a fault", min(1 if short else 10, most), 0, 0, held=True)

    found = tried(run, True, None), tried(run, False, 5), tried(bounded, False, 5)
    assert [(row.form, row.tried) for row in found] == [("short", 1), ("long", 10), ("part", 5)]
    row = tried(bounded, False, None)
    assert from_json(row.to_json()) == row
    assert row.to_json()["form"] == "long"


def test_every_line_of_the_page_says_how_much_was_tried() -> None:
    forms = re.findall(r"^\| [A-Z]\d+ \|[^|]*\| ([^|]*) \|", _part("rows"), re.M)
    assert len(forms) == len(runs())
    assert set(forms) <= set(get_args(Form))


def test_a_page_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing to fill")
    with pytest.raises(ValueError, match="has no <!-- rows -->"):
        fill(page, [])
    assert page.read_text() == "nothing to fill"

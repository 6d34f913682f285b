"""What was tried stands in docs/reliability.md, each row with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.faults.catalog import runs
from tests.faults.page import fill
from tests.faults.peers import PEERS
from tests.faults.peers.trial import ROWS
from tests.faults.row import Row

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
    bad = Row("B2", "another", 7, 1, 0, held=False, figures={"reported_lost_events": 3}, peers=peers)
    fill(page, [Row("B1", "a fault", 1200, 0, 0, held=True, figures={"drained_in_s": 30.5}), bad])
    text = page.read_text()
    assert "| B1 | a fault | 1,200 | 0 | 0 | yes | drained in s 30.5 |" in text
    assert "| B2 | another | 7 | 1 | 0 | **no** |" in text
    assert "| B2 | another | 7 | 1 lost, 3 lost and reported | 60 lost, 2 doubled |" in text
    assert "theirs 2.0" in text
    assert "old" not in text
    assert [text.startswith("before\n"), "\nbetween\n" in text, text.endswith("after\n")] == [True] * 3


def test_a_page_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing to fill")
    with pytest.raises(ValueError, match="has no <!-- rows -->"):
        fill(page, [])
    assert page.read_text() == "nothing to fill"

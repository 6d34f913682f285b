"""Every row of the harness, in small: what it promises holds."""

import pytest

from tests.faults.catalog import runs
from tests.faults.row import text

RUNS = runs()


@pytest.mark.parametrize("id", RUNS)
def test_the_row_holds(id: str) -> None:
    row = RUNS[id](True)
    assert row.id == id
    assert row.tried > 0
    assert not row.lost, text(row.figures)
    assert not row.doubled, text(row.figures)
    assert row.held, text(row.figures)

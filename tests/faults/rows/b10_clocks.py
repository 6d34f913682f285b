"""B10: a scheduler whose clock is wrong, is set, drifts or leaps."""

from __future__ import annotations

from tests.faults import clocks
from tests.faults.row import Row

MOST_S = 2.0


def run(short: bool) -> Row:
    found = clocks.run(1 if short else 20)
    return Row(
        id="B10",
        what="clocks an hour ahead and behind, 5 minutes of drift, 1970, a leap; in order and shuffled",
        tried=int(found["messages"]),
        lost=None,
        doubled=None,
        held=not found["negative_durations"]
        and not found["out_of_order"]
        and found["worst_error_s"] <= MOST_S
        and found["states"] == 1,
        figures=found,
    )

"""B8: the server has the message, and the connection is cut before its answer comes."""

from __future__ import annotations

import random

from tests.faults.proxy import PASS, Choose, Fault
from tests.faults.rig import rig, story
from tests.faults.row import Row

PART = 0.5
CUT = Fault("lose-answer")


def chooser() -> Choose:
    """What happens to each request, the same in every run."""
    chance = random.Random(8)
    return lambda _: CUT if chance.random() < PART else PASS


def run(short: bool) -> Row:
    n = 200 if short else 10_000
    with rig() as it:
        it.proxy.choose = chooser()
        it.line.put_every(story(it.line, last=n - 1), n)
        it.line.run()
        found = it.verdict()
        cut = sum(seen.fault is CUT for seen in it.proxy.seen)
    return Row(
        id="B8",
        what="half of all acknowledgements lost on the way",
        tried=found.numbered,
        lost=found.lost,
        doubled=found.doubled,
        held=found.is_whole and found.stored_again == cut > 0,
        figures={"acknowledgements_lost": cut, "stored_again": found.stored_again, "merged": found.merged},
    )

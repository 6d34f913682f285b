"""B3: three requests in ten fail, each in a way of its own."""

from __future__ import annotations

import random

from tests.faults.proxy import PASS, Choose, Fault, status
from tests.faults.rig import rig, story
from tests.faults.row import Row

PART = 0.3
FAULTS = (
    *map(status, (500, 502, 503, 504)),
    *(Fault(kind) for kind in ("reset", "silence", "drip", "half-close", "garbage", "lose-answer")),
)
TIMEOUT_S = 0.05
"""A request that has no answer by then: on loopback, where 2 ms are usual. One that has it later was stored, and its
acknowledgement lost."""


def chooser() -> Choose:
    """What happens to each request, the same in every run."""
    chance = random.Random(3)
    return lambda _: chance.choice(FAULTS) if chance.random() < PART else PASS


def run(short: bool) -> Row:
    n = 200 if short else 10_000
    with rig(TIMEOUT_S) as it:
        it.proxy.choose = chooser()
        it.line.put_every(story(it.line, last=n - 1), n)
        it.line.run()
        found = it.verdict()
        attempts = it.line.n_attempts
        n_faults = sum(seen.fault is not PASS for seen in it.proxy.seen)
    return Row(
        id="B3",
        what="three requests in ten answered 500 to 504, with garbage, a byte at a time, half, never, or reset",
        tried=found.numbered,
        lost=found.lost,
        doubled=found.doubled,
        held=found.is_whole and n_faults > 0,
        figures={
            "attempts": attempts,
            "faults": n_faults,
            "merged": found.merged,
            "stored_again": found.stored_again,
        },
    )

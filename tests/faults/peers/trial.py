"""The same trouble for everybody: so many events, one every ten seconds, and what the proxy does meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.proxy import PASS, Choose
from tests.faults.rows import b1_refused, b2_long, b3_random, b8_ack_lost

PACE_S = 10.0


@dataclass(frozen=True, slots=True)
class Trial:
    """`down` events are made while nobody listens, then `up` more; `choose` is the proxy's once it listens."""

    down: int
    up: int
    choose: Choose

    @property
    def n(self) -> int:
        return self.down + self.up


def trial(row: str, short: bool) -> Trial:
    """As our own row of that id has it."""
    many = 200 if short else 10_000
    trials = {
        "B1": Trial(b1_refused.N_MISSED, b1_refused.N_MISSED, lambda _: PASS),
        "B2": Trial(b2_long.n_missed(short), b2_long.N_AFTER, lambda _: PASS),
        "B3": Trial(0, many, b3_random.chooser()),
        "B8": Trial(0, many, b8_ack_lost.chooser()),
    }
    return trials[row]


ROWS = ("B1", "B2", "B3", "B8")

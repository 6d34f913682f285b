"""C6: clusters that are late, silent and back, and a server that is down: lost is said of the silent alone, in time."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from daskscope.errors import NotLoggedIn
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.service.gate import Gate
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters, connect
from tests.faults.row import Row
from tests.faults.scratch import scratch
from tests.faults.silence import HOUR_S, Simulation
from tests.faults.stores import opened
from tests.faults.telemetry import ACCOUNT

DETECTED_S = 90.0
DAYS_LATE = 2


def run(short: bool) -> Row:
    n_clusters, hours = (20, 2) if short else (500, 20)
    clock = FakeClock()
    with scratch() as folder, opened(connect(LocalEnv(data=str(Path(folder) / "data")), clock)) as world:
        found = Simulation(world, clock, Random(6), n_clusters, hours * HOUR_S).run()
        false = found.shown_falsely + found.told_falsely + found.not_back
        in_time = max(found.shown_after_s, found.told_after_s) <= DETECTED_S
        return Row(
            id="C6",
            what="hours of clusters that are late, silent and back",
            tried=int(found.hours),
            lost=false,
            doubled=0,
            held=not false and not found.n_missed and in_time and expired_is_refused(world, clock),
            figures={
                "messages": found.messages,
                "falsely shown as lost": found.shown_falsely,
                "falsely told": found.told_falsely,
                "silences": found.n_silent,
                "of them told": found.n_told,
                "untold with the server up": found.n_missed,
                "shown after s": found.shown_after_s,
                "told after s": round(found.told_after_s, 1),
                "after an outage of the server still shown as lost, s": round(found.shown_after_outage_s, 1),
            },
        )


def expired_is_refused(world: LocalAdapters, clock: FakeClock) -> bool:
    """A token that its store should have forgotten days ago, and has not."""
    text, row = mint(world.tokens, clock, ACCOUNT, ["ingest"], "expired", clock.now() + 60)
    clock.advance(60 + DAYS_LATE * 24 * HOUR_S)
    assert world.tokens.find(row.key_id) == row
    with pytest.raises(NotLoggedIn, match="expired"):
        Gate(world.tokens, world.users, clock).principal(f"Bearer {text}")
    return True

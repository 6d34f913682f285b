"""B1: nobody listens for ten minutes, then the server is there."""

from __future__ import annotations

from tests.faults.line import PACE_S
from tests.faults.rig import rig, story
from tests.faults.row import Row

OUTAGE_S = 600.0
N_MISSED = round(OUTAGE_S / PACE_S)
MAX_PER_S = 2
MAX_DRAIN_S = 60.0


def run(short: bool) -> Row:
    """The same in both forms: it takes no time."""
    del short
    with rig() as it:
        make = story(it.line, last=2 * N_MISSED - 1)
        it.proxy.refuse()
        it.line.put_every(make, 2 * N_MISSED)
        back_at = it.clock.now() + OUTAGE_S
        it.line.at(back_at, it.proxy.listen)
        it.line.run()
        found = it.verdict()
        times = [seen.at for seen in it.proxy.seen]
        backlog_s = times[N_MISSED - 1] - times[0]
        at_once = max(sum(begun <= time < begun + 1 for time in times) for begun in times)
    return Row(
        id="B1",
        what="server refuses for 10 minutes of simulated time, 60 messages wait",
        tried=found.numbered,
        lost=found.lost,
        doubled=found.doubled,
        held=found.is_whole and backlog_s <= MAX_DRAIN_S and at_once <= MAX_PER_S,
        figures={
            "drained_in_s": round(backlog_s, 1),
            "first_after_s": round(times[0] - back_at, 1),
            "most_requests_per_s": at_once,
            "merged": found.merged,
        },
    )

"""B5: a token that the server denies for the better part of an hour, and then takes."""

from __future__ import annotations

from itertools import pairwise

from tests.faults.line import PACE_S
from tests.faults.proxy import PASS, Fault, Request, status
from tests.faults.rig import rig, story
from tests.faults.row import Row

DENIED_S = 3100.0
"""Amid two probes: what it takes until the next one is seen."""
PROBE_S = 600.0


def run(short: bool) -> Row:
    """The same in both forms: it takes no time."""
    del short
    n_missed = round(DENIED_S / PACE_S)
    with rig() as it:
        mended_at = it.clock.now() + DENIED_S

        def choose(request: Request) -> Fault:
            if it.clock.now() >= mended_at:
                return PASS
            return status(401 if len(it.proxy.seen) % 2 else 403)

        it.proxy.choose = choose
        it.line.put_every(story(it.line, last=n_missed + 119), n_missed + 120)
        it.line.run()
        found = it.verdict()
        denied = [seen.at for seen in it.proxy.seen if seen.status in (401, 403)]
        resumed_s = min(seen.at for seen in it.proxy.seen if seen.status == 200) - mended_at
    closest_s = min(after - before for before, after in pairwise(denied))
    return Row(
        id="B5",
        what="401 and 403 for 52 minutes, then the token is mended",
        tried=found.numbered,
        lost=found.lost,
        doubled=found.doubled,
        held=found.is_whole and closest_s >= PROBE_S and 0 < resumed_s <= PROBE_S,
        figures={
            "requests_denied": len(denied),
            "closest_s": round(closest_s, 1),
            "resumed_after_s": round(resumed_s, 1),
            "merged": found.merged,
        },
    )

"""B4: 429, and what it may say of when to come again."""

from __future__ import annotations

import time
from email.utils import formatdate
from itertools import pairwise

from tests.faults.proxy import PASS, Fault, Request, status
from tests.faults.rig import rig, story
from tests.faults.row import Row

BARE_S, MOST_S = 60.0, 300.0


def run(short: bool) -> Row:
    """The same in both forms: it takes no time."""
    del short
    date_s = 40.0
    # What the header says, and how long nobody may come.
    asked = {
        "seconds": ("7", 7.0),
        "fraction": ("2.5", 2.5),
        # A date has no fraction of a second, and real time passes until it is read.
        "date": (formatdate(time.time() + date_s, usegmt=True), date_s - 5.0),
        "past_date": (formatdate(0, usegmt=True), BARE_S),
        "none": (None, BARE_S),
        "negative": ("-5", BARE_S),
        "garbage": ("soon", BARE_S),
        "nan": ("nan", BARE_S),
        "huge": ("1e9", MOST_S),
    }
    answers = iter(asked.values())
    waits = list[tuple[float, float]]()
    """When such an answer was given, and when the next request may come."""

    with rig() as it:

        def choose(request: Request) -> Fault:
            if (answer := next(answers, None)) is None:
                return PASS
            header, wait_s = answer
            waits.append((it.clock.now(), wait_s))
            return status(429, **({"retry_after": header} if header is not None else {}))

        it.proxy.choose = choose
        it.line.put_every(story(it.line, last=99), 100)
        it.line.run()
        found = it.verdict()
        times = [seen.at for seen in it.proxy.seen]
    came = [after - before for before, after in pairwise(times)][: len(waits)]
    early = sum(gap < wait_s for gap, (_, wait_s) in zip(came, waits, strict=True))
    longest = max(came)
    return Row(
        id="B4",
        what="429 with Retry-After as seconds, date, none, negative, garbage, a thousand million",
        tried=found.numbered,
        lost=found.lost,
        doubled=found.doubled,
        held=found.is_whole and len(waits) == len(asked) and not early and longest <= MOST_S + BARE_S,
        figures={
            "requests_too_early": early,
            **{f"{name}_s": round(gap, 1) for name, gap in zip(asked, came, strict=True)},
            "merged": found.merged,
        },
    )

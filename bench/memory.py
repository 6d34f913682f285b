"""Memory of a scheduler's process after a day of a cluster's life, with us and without."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from bench.churn import Life
from bench.rows import Budget, Row, progress
from bench.soak import BARE, UP, VARIANTS

MIB = 1 << 20
BUDGET = Budget("at most", 32.0)


def memory(tiny: bool) -> Iterator[Row]:
    """What the process has more, what our objects have, and how they grow."""
    day = Life()
    n_rounds = 20 if tiny else day.n_rounds
    found = {variant: _live(variant, n_rounds) for variant in ((BARE, UP) if tiny else VARIANTS)}
    bare = found.pop(BARE)
    more = {variant: (figures["rss"] - bare["rss"]) / MIB for variant, figures in found.items()}
    held = {variant: figures["held"] / MIB for variant, figures in found.items()}
    run = (
        f"{n_rounds:,} intervals with {day.so_far(day.n_groups, n_rounds):,} names of task groups, "
        f"{day.so_far(day.n_workers, n_rounds):,} of workers, {day.so_far(day.n_clients, n_rounds):,} of clients; fake "
        "workers on a real Scheduler, rows of tasks and a topic of events on"
    )
    yield Row(
        name="memory/process",
        value=more.pop(UP),
        unit="MiB",
        budget=BUDGET,
        peers=more,
        how=f"RSS of a process over that of a bare scheduler's ({bare['rss'] / MIB:.0f} MiB) after {run}. Peers: the "
        "same with a server that takes nothing; a plain SchedulerPlugin that keeps a dict per group.",
    )
    yield Row(
        name="memory/held",
        value=held.pop(UP) + found[UP]["peak"] / MIB,
        unit="MiB",
        budget=BUDGET,
        peers=held,
        how=f"size of our objects after {run}, and the most that one report takes besides. Peers without that.",
    )
    up = found[UP]
    yield Row(
        name="memory/growth",
        value=max(up["held"] - up["held_half_way"], 0) / MIB / (n_rounds / 2 / 1000),
        unit="MiB per 1,000 intervals",
        budget=Budget("at most", 1.0),
        how=f"growth of our objects over the second half of {run}.",
    )


def _live(variant: str, n_rounds: int) -> dict[str, float]:
    progress(f"{n_rounds} intervals: {variant}")
    command = [sys.executable, "-m", "bench.soak", variant, str(n_rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)

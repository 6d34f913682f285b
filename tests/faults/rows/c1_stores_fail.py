"""C1: stores fail in 30 % of their calls, then for ten minutes in all: what was acknowledged is there."""

from __future__ import annotations

from pathlib import Path

from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import connect
from tests.emulator import Emulator
from tests.faults.aws_trial import in_aws
from tests.faults.row import Figure, Row
from tests.faults.scratch import scratch
from tests.faults.store_trial import Outcome, Place, Trial
from tests.faults.stores import Trouble, failing, opened

SHARE = 0.3


def run(short: bool, most: int = 100_000) -> Row:
    """In small on disk alone; tests/faults/test_aws_faults.py has AWS's share of it."""
    with scratch() as folder:
        if short:
            return row(on_disk(Path(folder), 300, 20))
        with Emulator(Path(folder)) as emulator:
            return row(on_disk(Path(folder), min(100_000, most), 1_000), in_aws(emulator, SHARE, 4_000, 40))


def row(*outcomes: Outcome) -> Row:
    """The first is that of disk and SQLite, the second that of AWS."""
    lost = sum(each.lost + each.lost_sealed for each in outcomes)
    doubled = sum(each.doubled + each.doubled_sealed for each in outcomes)
    kept = not lost and not doubled
    return Row(
        id="C1",
        what="acknowledged messages while stores fail in 30 % of their calls, then in all for 10 min",
        tried=sum(each.tried for each in outcomes),
        lost=lost,
        doubled=doubled,
        held=kept and all(not each.acked_while_out and not each.dead and each.failed_calls for each in outcomes),
        figures={
            name: figure
            for place, each in zip(("disk", "AWS"), outcomes, strict=False)
            for name, figure in _figures(place, each).items()
        },
    )


def _figures(place: str, outcome: Outcome) -> dict[str, Figure]:
    return {
        f"{place}: messages": outcome.tried,
        f"{place}: posts": outcome.posts,
        f"{place}: calls of stores": outcome.store_calls,
        f"{place}: of them failed": outcome.failed_calls,
        f"{place}: acknowledged while out": outcome.acked_while_out,
        f"{place}: dead letters": outcome.dead,
    }


def on_disk(folder: Path, n: int, clusters: int) -> Outcome:
    env, clock, trouble = LocalEnv(data=str(folder / "data")), FakeClock(), Trouble(seed=1)
    with opened(connect(env, clock)) as sound:
        weak = failing(sound, trouble)
        place = Place(env=env, sound=sound, weak=weak, feed=weak.feed, trouble=trouble, clock=clock)
        return Trial(place, SHARE).run(n, clusters)

"""B2: nobody listens for a day, and what a busy cluster tells meanwhile is more than there is room for."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from daskscope import buffer, testing, wire
from tests.faults.line import PACE_S, Line
from tests.faults.proxy import PASS, Choose, Fault
from tests.faults.rig import rig, story
from tests.faults.row import Row

OUTAGE_S = 86_400.0
N_AFTER = 60
N_STORED = 2
"""So many messages at the beginning of the outage reach the server all the same: only its answers are lost."""


def n_missed(short: bool) -> int:
    return 120 if short else round(OUTAGE_S / PACE_S)


def run(short: bool) -> Row:
    n = n_missed(short)
    with _room(short), rig() as it:
        it.proxy.choose = _answers_lost(N_STORED)
        it.line.put_every(story(it.line, last=n + N_AFTER - 1, **_busy(it.line, short)), n + N_AFTER)
        down_at = it.clock.now() + N_STORED * PACE_S / 2
        it.line.at(down_at, it.proxy.refuse)
        it.line.at(down_at + n * PACE_S, it.proxy.listen)
        it.line.run()
        found = it.verdict()
    return Row(
        id="B2",
        what=f"server away for {n * PACE_S / 3600:.3g} hours of simulated time, more to tell than there is room for",
        tried=found.numbered,
        lost=found.lost,
        doubled=found.doubled,
        held=found.is_clean and found.merged > 0 and "profiles" in found.missing and "messages" not in found.missing,
        figures={
            "merged": found.merged,
            **{f"reported_lost_{kind.replace('-', '_')}": n for kind, n in found.missing.items()},
            "reported_less_real": found.untold,
        },
    )


@contextmanager
def _room(short: bool) -> Generator[None]:
    """The buffer's own, or a sixth of it."""
    part = 6 if short else 1
    with (
        mock.patch.object(buffer, "MAX_MESSAGES", buffer.MAX_MESSAGES // part),
        mock.patch.object(buffer, "MAX_BYTES", buffer.MAX_BYTES // part),
    ):
        yield


def _answers_lost(n: int) -> Choose:
    left = iter(range(n))
    return lambda _: PASS if next(left, None) is None else Fault("lose-answer")


def _busy(line: Line, short: bool) -> dict[str, Callable[[int], Any]]:
    """What does not press well: lines of a log, tasks one by one, a profile of the interval."""
    chance = random.Random(2)
    n_lines, n_tasks, n_stacks = (40, 200, 40) if short else (8, 50, 8)

    def text() -> str:
        return chance.randbytes(500).hex()

    def logs(seq: int) -> wire.Logs:
        return testing.logs(*({"no": seq * n_lines + n, "text": text()} for n in range(n_lines)))

    def tasks(seq: int) -> wire.Tasks:
        return testing.tasks(
            n_tasks, first_no=seq * n_tasks, duration_us=[chance.randrange(1 << 30) for _ in range(n_tasks)]
        )

    def profiles(seq: int) -> list[wire.Profile]:
        now_ms = round(line.clock.now() * 1e3)
        frames = [text() for _ in range(n_stacks)]
        return [
            testing.profile(
                from_ms=now_ms - 10_000, to_ms=now_ms, frames=frames, prefix=["sum"] * n_stacks,
                stack=[[n] for n in range(n_stacks)], count=[1] * n_stacks,
            )
        ]  # fmt: skip

    return {"logs": logs, "tasks": tasks, "profiles": profiles}

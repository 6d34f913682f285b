"""C4: messages that fit no table, by a mistake of ours, are put aside with the reason; it is mended, they come back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from daskscope_lambdas.admin_command import admin
from daskscope_lambdas.embedded.schedule import HIDDEN_S, Schedule
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import ingest, sweep, write
from daskscope_lambdas.service import write as service
from daskscope_lambdas.service.envelope import Envelope
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import connect
from daskscope_query import layout
from tests.faults.functions import Here, functions
from tests.faults.poster import Poster
from tests.faults.row import Row
from tests.faults.scratch import scratch
from tests.faults.stores import opened
from tests.faults.telemetry import owed

REASON = "no column takes an odd number"


def run(short: bool) -> Row:
    n = 60 if short else 10_000
    clock = FakeClock()
    with scratch() as folder:
        env = LocalEnv(data=str(Path(folder) / "data"))
        with opened(connect(env, clock)) as world:
            poster = Poster(world, env)
            poster.send(n)
            none = Path(folder) / "no-spool"
            here = Here(write.handler)
            schedule = Schedule(world.feed, here, here, ingest.handler, sweep.handler, "token", none)

            def drain() -> None:
                with functions(world, env):
                    while asyncio.run(schedule.drain_once()):
                        pass
                clock.advance(HIDDEN_S + 1)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(service, "to_rows", mistaken(service.to_rows))
                drain()
            first = layout.day_of(FakeClock().now())
            without, _ = owed(poster.kept, world.lake_root, None, first)
            told = command("dead-letters", env, "--json", "--limit", str(n))
            reasons = sum(REASON in letter["reason"] for letter in json.loads(told))
            command("replay", env)
            drain()
            lost, doubled = owed(poster.kept, world.lake_root, None, first)
            left = sum(1 for _ in world.objects.list(layout.DEAD))
    return Row(
        id="C4",
        what="messages put aside for a mistake of ours, mended, and sent back by `daskscope admin replay`",
        tried=without,
        lost=lost,
        doubled=doubled,
        held=0 < without == reasons and not lost and not doubled and not left,
        figures={"messages in all": n, "letters with their reason": reasons, "letters left": left},
    )


def command(name: str, env: LocalEnv, *options: str) -> str:
    done = CliRunner().invoke(admin, [name, "--data", env.data, *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def mistaken(to_rows: Callable[..., Any]) -> Callable[..., Any]:
    def odd_ones_fail(envelopes: Sequence[Envelope]) -> Iterable[Any]:
        if any(envelope.message.seq % 2 for envelope in envelopes):
            raise ValueError(REASON)
        return to_rows(envelopes)

    return odd_ones_fail

"""C8: the plugins of two earlier releases and one of a later one post: all of it is taken, and stands in the lake."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from daskscope import wire
from daskscope.compression import compress
from daskscope_lambdas.embedded.schedule import Schedule
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import ingest, sweep, write
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import connect
from daskscope_query import layout
from daskscope_query.lake import Lake
from tests.faults.functions import Here, functions, posted
from tests.faults.row import Row
from tests.faults.scratch import scratch
from tests.faults.stores import opened
from tests.faults.telemetry import ACCOUNT, made

EARLIER = Path(__file__).parents[2] / "lambdas" / "service" / "earlier"
RELEASES = ("before-members", "before-parts")
"""What they posted, in bytes of their own."""
LATER = wire.VERSION + 1


def run(short: bool) -> Row:
    bodies = [*earlier(), *later(5 if short else 500)]
    clock = FakeClock()
    with scratch() as folder:
        env = LocalEnv(data=str(Path(folder) / "data"))
        with opened(connect(env, clock)) as world, functions(world, env):
            token, _ = mint(world.tokens, clock, ACCOUNT, ["ingest"], "ages")
            answers = [ingest.handler(posted(body, encoding, token), None) for body, encoding in bodies]
            nothing = Path(folder) / "no-spool"
            schedule = Schedule(
                world.feed, Here(write.handler), Here(write.handler), ingest.handler, sweep.handler, token, nothing
            )
            while asyncio.run(schedule.drain_once()):
                pass
            day = layout.day_of(clock.now())
            rows = Lake(world.lake_root, None).day("samples", account=ACCOUNT, day=day).rows
    kept = {(row["cluster"], row["boot"], row["seq"]) for row in rows.to_pylist(maps_as_pydicts="strict")}
    refused = sum(1 for answer in answers if answer["statusCode"] != 200)
    return Row(
        id="C8",
        what=f"messages of two earlier releases and of a later one (version {LATER}, with fields nobody knows)",
        tried=len(bodies),
        lost=len(bodies) - len(kept),
        doubled=rows.num_rows - len(kept),
        held=not refused and len(kept) == len(bodies) == rows.num_rows,
        figures={"refused": refused, "of earlier releases": len(list(earlier()))},
    )


def earlier() -> Iterator[tuple[bytes, str]]:
    for release in RELEASES:
        for path in sorted((EARLIER / release).glob("message-*.zst")):
            yield path.read_bytes(), "zstd"


def later(n: int) -> Iterator[tuple[bytes, str]]:
    for seq in range(n):
        message: dict[str, Any] = json.loads(wire.encode(made("c" * 32, seq)))
        message |= {"v": LATER, "weather": {"sky": ["blue"]}, "tides": [{"no": seq, "metres": 3.5}]}
        message["totals"]["mood"] = "good"
        message["workers"]["colour"] = ["red"] * len(message["workers"]["address"])
        message["events"][0]["song"] = None
        yield compress(json.dumps(message).encode())

"""C7: one token posts a thousand times a second: it is told to come later, and nobody else is.

That it takes no thread from others is promised, and holds or not; how much longer they wait for a core that both need
is a figure, beside the one that was wished for.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from daskscope_lambdas.adapters.system import SystemClock
from daskscope_lambdas.embedded.turns import AT_ONCE, WAITING
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import connect
from tests.faults.crowd import Posting, crowd, felt
from tests.faults.functions import functions
from tests.faults.row import Figure, Row
from tests.faults.scratch import scratch
from tests.faults.stores import opened
from tests.lambdas.serving import Serving

N_CROWD, N_OTHERS = 500, 20
PER_S, CONNECTIONS, LENGTH_S = 1_000, 200, 20.0
OTHERS_PER_S, OTHERS = 20, 4
WISHED = 2
"""Times what their posts take alone, at the 99th percentile. Not reached where all share one machine."""
REFUSED = "others refused"


def run(short: bool) -> Row:
    with scratch() as folder:
        env = LocalEnv(data=str(Path(folder) / "data"))
        with opened(connect(env)) as world, functions(world, env):
            tokens = [mint(world.tokens, world.clock, account, ["ingest"], account)[0] for account in ("a", "b")]
            flood, others = asyncio.run(crowd(tokens[0], tokens[1], N_CROWD, N_OTHERS))
        figures: dict[str, Figure] = {"of the crowd told to come later": flood[429]}
        if not short:
            figures |= measured(Path(folder) / "real")
    taken = AT_ONCE + WAITING
    refused = figures.get(REFUSED, 0)
    return Row(
        id="C7",
        what="posts of others beside a token that posts without end, to `daskscope serve`",
        tried=N_OTHERS,
        lost=N_OTHERS - others[200],
        doubled=0,
        held=not refused and others == {200: N_OTHERS} and flood == {200: taken, 429: N_CROWD - taken},
        figures=figures,
    )


def measured(folder: Path) -> dict[str, Figure]:
    """Of a real server, by the clock on the wall."""
    with Serving(folder) as serving, opened(connect(LocalEnv(data=str(serving.data)), SystemClock())) as world:
        tokens = [mint(world.tokens, world.clock, account, ["ingest"], account)[0] for account in ("a", "b")]
        others = Posting(serving.url, tokens[1], OTHERS_PER_S, OTHERS, LENGTH_S)
        flood = Posting(serving.url, tokens[0], PER_S, CONNECTIONS, LENGTH_S)
        alone, beside = felt(others, None), felt(others, flood)
    return {
        "others alone, p99 ms": round(alone.p99_ms, 1),
        "beside it, p99 ms": round(beside.p99_ms, 1),
        f"times (wished: {WISHED})": round(beside.p99_ms / alone.p99_ms, 2),
        REFUSED: sum(n for status, n in beside.others.items() if status != 200),
        "posts of the crowd a second": round(beside.crowd.total() / LENGTH_S),
        "of them refused, %": round(100 * beside.crowd[429] / max(1, beside.crowd.total())),
    }

"""B6: a server, or something before it, that calls messages too large: of any size, and of a size that ours reach."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from daskscope import testing, wire
from tests.faults.oracle import Verdict
from tests.faults.proxy import PASS, Fault, Request, status
from tests.faults.rig import rig, story
from tests.faults.row import Row

N, N_EVENTS = 10, 60
ODD, ODD_BYTES = 3, 120_000
"""Of this message, one event is larger than any limit but the last."""
LIMITS = (2_000, 8_000, 40_000)
LARGE_EVENTS = 3_000
"""Over a mebibyte of them, once compressed: no server's limit is waited for."""


def run(short: bool) -> Row:
    limits = LIMITS[1:2] if short else LIMITS
    tried = lost = doubled = requests = repeated = largest = 0
    as_told = True
    for limit in limits:
        found, bodies, seen = _under(limit, _with_odd_one)
        as_told &= found.missing == {"events": 1}
        tried, lost, doubled = tried + found.numbered, lost + found.lost, doubled + found.doubled
        requests, repeated = requests + seen, repeated + sum(n - 1 for n in bodies.values())
    whole, bodies, in_parts = _under(wire.MAX_BODY_BYTES, _with_large_one)
    largest = max(map(len, bodies), default=0)
    as_told &= whole.is_whole and not largest and in_parts > N
    none, bodies, hopeless = _under(0, _with_odd_one)
    as_told &= none.numbered == N and hopeless < 100 * N
    repeated += sum(n - 1 for n in bodies.values())
    return Row(
        id="B6",
        what=f"413 for bodies over {', '.join(f'{limit:,}' for limit in limits)} B, over the usual, and for all",
        tried=tried + whole.numbered,
        lost=lost + whole.lost,
        doubled=doubled + whole.doubled,
        held=as_told and not (lost or doubled or repeated),
        figures={
            "requests": requests,
            "same_body_after_413": repeated,
            "dropped_and_counted_events": len(limits),
            "requests_for_a_message_of_1_MiB": in_parts - N + 1,
            "requests_where_none_is_taken": hopeless,
        },
    )


def _under(limit: int, events: Callable[[int], list[wire.Event]]) -> tuple[Verdict, Counter[bytes], int]:
    """What was found; the bodies that were called too large; how many requests there were."""
    with rig() as it:

        def choose(request: Request) -> Fault:
            return status(413) if len(request.body) > limit else PASS

        it.proxy.choose = choose
        it.line.put_every(story(it.line, last=N - 1, events=events), N)
        it.line.run()
        found = it.verdict()
        too_large = Counter(seen.body for seen in it.proxy.seen if seen.status == 413)
        return found, too_large, len(it.proxy.seen)


def _with_odd_one(seq: int) -> list[wire.Event]:
    return _events(seq, N_EVENTS, 200, ODD_BYTES if seq == ODD else 200)


def _with_large_one(seq: int) -> list[wire.Event]:
    return _events(seq, LARGE_EVENTS if seq == ODD else 1, 1000, 1000)


def _events(seq: int, n: int, n_bytes: int, n_last_bytes: int) -> list[wire.Event]:
    chance = random.Random(seq)
    return [
        testing.event(no=seq * LARGE_EVENTS + number, detail=chance.randbytes(size // 2).hex())
        for number, size in enumerate([n_bytes] * (n - 1) + [n_last_bytes])
    ]

"""B11: a scheduler that is killed, with a spool and without, at rest and amid a try."""

from __future__ import annotations

import json
import random
import re
from itertools import chain, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from daskscope.compression import decompress
from daskscope_lambdas.testing import FakeClock
from tests.faults.proxy import PASS, Fault, Proxy
from tests.faults.row import Row
from tests.faults.schedulers import scheduler, until
from tests.faults.server import ACCOUNT, serving

QUICK, USUAL = "100ms", "10s"
MARKED_S = 90.0
N_DELIVERED = 3
"""Messages of the backlog that are through when the scheduler is killed."""

Moment = Literal["away", "hanging", "half delivered"]
"""When it is killed: while nobody listens, amid a try that nobody answers, amid its backlog."""
MOMENTS: tuple[Moment, ...] = ("half delivered", "hanging", "away")


def run(short: bool) -> Row:
    chance = random.Random(11)
    kills: list[tuple[int, Moment]] = [(7, MOMENTS[0])]
    if not short:
        kills = [(chance.randrange(1, 30), MOMENTS[number % len(MOMENTS)]) for number in range(10)]
    tried = lost = doubled = 0
    for n, moment in kills:
        made, found, repeats = _with_spool(n, moment)
        tried, lost, doubled = tried + len(made), lost + len(made - found), doubled + repeats
    n_tried, n_lost, holes, marked_after_s = _without(*((5, QUICK) if short else (3, USUAL)))
    return Row(
        id="B11",
        what=f"scheduler killed (SIGKILL) {len(kills)} times with a spool (server away, a try that hangs, a backlog "
        "half delivered), once without, amid a try",
        tried=tried + n_tried,
        lost=lost + holes,
        doubled=doubled,
        held=not (lost or holes or doubled)
        and tried >= sum(n for n, _ in kills)
        and n_lost <= 1
        and marked_after_s <= MARKED_S,
        figures={
            "without_a_spool_lost": n_lost,
            "of_messages": n_tried,
            "marked_lost_after_s": marked_after_s,
        },
    )


def _with_spool(n: int, moment: Moment) -> tuple[set[tuple[str, int]], set[tuple[str, int]], int]:
    """What it had made when it was killed, after `n` messages or more; what came, in the end by the next scheduler of
    the user, and how much of it twice. No number below the last that was written may be missing."""
    with TemporaryDirectory(prefix="faults-") as name, serving(FakeClock()) as server:
        folder, proxy = Path(name), Proxy(server.port)
        spool = folder / "spool"
        with proxy.running():
            if moment == "hanging":
                proxy.choose = lambda _: Fault("silence")
            else:
                proxy.refuse()
            with scheduler(folder, proxy.url, server.token, QUICK, spool) as child:
                until(lambda: len(_written(spool)) >= n and (moment != "hanging" or proxy.seen), child, folder)
                made = _written(spool)
                if moment == "half delivered":
                    answers = chain(repeat(PASS, N_DELIVERED), repeat(Fault("silence")))
                    proxy.choose = lambda _: next(answers)
                    proxy.listen()
                    until(lambda: len(proxy.seen) > min(N_DELIVERED, n), child, folder)
                child.kill()
                child.wait()
            made |= _written(spool)
            boot = next(iter(made))[0]
            made |= {(boot, seq) for seq in range(max(seq for _, seq in made))}
            proxy.choose = lambda _: PASS
            proxy.listen()
            with scheduler(folder, proxy.url, server.token, QUICK, spool) as child:
                until(lambda: not {key for key in _written(spool) if key[0] == boot}, child, folder)
        server.settle()
        keys = [(row["boot"], row["seq"]) for row in server.rows("samples")]
    return made, set(keys), len(keys) - len(set(keys))


def _written(spool: Path) -> set[tuple[str, int]]:
    """Boots and numbers of the messages in files."""
    found = [re.fullmatch(r"[0-9a-f]{32}-([0-9a-f]{24})-([0-9]{8})\..*\.msg", path.name) for path in spool.glob("*/*")]
    return {(match[1], int(match[2])) for match in found if match}


def _without(n: int, interval: str) -> tuple[int, int, int, float]:
    """Killed amid the try of the message after `n` that arrived: how many it had tried, how many of them are lost, how
    many numbers are missing below the last that arrived, and how long after that the server calls the cluster lost."""
    clock = FakeClock()
    with TemporaryDirectory(prefix="faults-") as name, serving(clock) as server:
        folder, proxy = Path(name), Proxy(server.port)
        answers = chain(repeat(PASS, n), repeat(Fault("silence")))
        proxy.choose = lambda _: next(answers)
        with proxy.running():
            with scheduler(folder, proxy.url, server.token, interval, None) as child:
                until(lambda: len(proxy.seen) > n, child, folder)
                child.kill()
                child.wait()
            server.settle()
            arrived = {row["seq"] for row in server.rows("samples")}
            bodies = [(seen.body, seen.headers["content-encoding"]) for seen in proxy.seen if seen.status is None]
        tried = {json.loads(decompress(body, encoding))["seq"] for body, encoding in bodies} | arrived
        heard_at = clock.now()
        while server.api(f"{ACCOUNT}/clusters/1")["status"] == "running" and clock.now() < heard_at + 10 * MARKED_S:
            clock.advance(1.0)
        return max(tried) + 1, max(tried) + 1 - len(arrived), max(arrived) + 1 - len(arrived), clock.now() - heard_at

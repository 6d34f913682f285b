"""B11: a scheduler that is killed, with a spool and without."""

from __future__ import annotations

import random
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from daskscope_lambdas.testing import FakeClock
from tests.faults.proxy import Proxy
from tests.faults.row import Row
from tests.faults.schedulers import scheduler, until
from tests.faults.server import ACCOUNT, serving

QUICK = "100ms"
USUAL = "10s"
MARKED_S = 90.0


def run(short: bool) -> Row:
    chance = random.Random(11)
    kills = [7] if short else [chance.randrange(1, 30) for _ in range(10)]
    tried = lost = doubled = 0
    for n in kills:
        written, found, repeats = _with_spool(n)
        tried, lost, doubled = tried + len(written), lost + len(written - found), doubled + repeats
    holes, marked_after_s = _without()
    return Row(
        id="B11",
        what=f"scheduler killed (SIGKILL) {len(kills)} times with a spool and the server away, once without",
        tried=tried,
        lost=lost + holes,
        doubled=doubled,
        held=not (lost or holes or doubled) and tried >= sum(kills) and marked_after_s <= MARKED_S,
        figures={"without_a_spool_holes": holes, "marked_lost_after_s": marked_after_s},
    )


def _with_spool(n: int) -> tuple[set[tuple[str, int]], set[tuple[str, int]], int]:
    """What it had written when it was killed, after `n` messages or more; what came by the next scheduler of the user,
    and how much of it twice. No number below the last may be missing among what was written."""
    with TemporaryDirectory(prefix="faults-") as name, serving(FakeClock()) as server:
        folder, proxy = Path(name), Proxy(server.port)
        spool = folder / "spool"
        with proxy.running():
            proxy.refuse()
            with scheduler(folder, proxy.url, server.token, QUICK, spool) as child:
                until(lambda: len(_written(spool)) >= n, child, folder)
                child.kill()
                child.wait()
            written = _written(spool)
            boot = next(iter(written))[0]
            written |= {(boot, seq) for seq in range(max(seq for _, seq in written))}
            proxy.listen()
            with scheduler(folder, proxy.url, server.token, USUAL, spool) as child:
                until(lambda: not {key for key in _written(spool) if key[0] == boot}, child, folder)
        server.settle()
        keys = [(row["boot"], row["seq"]) for row in server.rows("samples")]
    return written, set(keys), len(keys) - len(set(keys))


def _written(spool: Path) -> set[tuple[str, int]]:
    """Boots and numbers of the messages in files."""
    found = [re.fullmatch(r"[0-9a-f]{32}-([0-9a-f]{24})-([0-9]{8})\..*\.msg", path.name) for path in spool.glob("*/*")]
    return {(match[1], int(match[2])) for match in found if match}


def _without() -> tuple[int, float]:
    """Numbers missing below the last that came: so at most what was made after that is lost. And how long after its
    last message the server calls the cluster lost."""
    clock = FakeClock()
    with TemporaryDirectory(prefix="faults-") as name, serving(clock) as server:
        folder, proxy = Path(name), Proxy(server.port)
        with proxy.running():
            with scheduler(folder, proxy.url, server.token, USUAL, None) as child:
                until(lambda: any(seen.status == 200 for seen in proxy.seen), child, folder)
                child.kill()
                child.wait()
            server.settle()
            seqs = {row["seq"] for row in server.rows("samples")}
        heard_at = clock.now()
        while server.api(f"{ACCOUNT}/clusters/1")["status"] == "running" and clock.now() < heard_at + 10 * MARKED_S:
            clock.advance(1.0)
        return max(seqs) + 1 - len(seqs), clock.now() - heard_at

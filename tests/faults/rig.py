"""What most rows are made of: a sender, a proxy that fails, a server, and who tells what must be found."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from daskscope import testing, wire
from daskscope.transport import DEADLINE_S, Http
from daskscope_lambdas.testing import FakeClock
from tests.faults.line import Line
from tests.faults.oracle import Oracle, Verdict
from tests.faults.proxy import Proxy
from tests.faults.server import Server, serving
from tests.faults.telling import content


@dataclass(frozen=True, slots=True)
class Rig:
    server: Server
    proxy: Proxy
    line: Line
    oracle: Oracle
    clock: FakeClock

    def verdict(self) -> Verdict:
        """All that came into the lake, then sealed: nothing may differ by that."""
        n_failed = self.server.settle()
        found = self.oracle.judge(self.server)
        self.server.seal()
        sealed = self.oracle.judge(self.server)
        assert n_failed == 0, f"{n_failed} messages could not be written"
        assert replace(sealed, stored_again=0) == replace(found, stored_again=0), "sealing changed what is found"
        return found


@contextlib.contextmanager
def rig(timeout_s: float = DEADLINE_S, **sender: Any) -> Generator[Rig]:
    """Everything up, nothing sent. `timeout_s` stands for the ten seconds that an attempt may take: where a server says
    nothing, nobody waits for it."""
    clock = FakeClock()
    with serving(clock) as server, mock.patch("daskscope.transport.DEADLINE_S", timeout_s):
        proxy = Proxy(server.port, clock.now)
        with proxy.running():
            transport = Http(proxy.url, server.token)
            oracle = Oracle()
            try:
                yield Rig(server, proxy, Line(transport, clock, oracle, **sender), oracle, clock)
            finally:
                transport.close()


def story(line: Line, last: int, **more: Callable[[int], Any]) -> Callable[[int], wire.Message]:
    """Makes message `seq` when its time has come, as the plugin does: its losses so far, and something of every
    kind by which it is known wherever it ends. `last` closes the cluster."""
    began = line.clock.now()

    def make(seq: int) -> wire.Message:
        now = line.clock.now()
        plain = content(seq, round(now * 1e3))
        return testing.message(
            seq=seq,
            boot=testing.boot_at(round(began * 1e3)),
            made_at_ms=round(now * 1e3),
            uptime_us=round((now - began) * 1e6),
            started_at_ms=round(began * 1e3),
            phase="closed" if seq == last else "running",
            reason="closed" if seq == last else None,
            lost=dict(line.sender.lost),
            **plain | {name: of(seq) for name, of in more.items()},
        )

    return make

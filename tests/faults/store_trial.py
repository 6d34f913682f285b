"""One way of messages through stores that fail: posted until acknowledged, written, compacted; then what is owed."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from daskscope_lambdas.embedded.schedule import HIDDEN_S, Schedule
from daskscope_lambdas.env import FunctionEnv as Told
from daskscope_lambdas.handlers import ingest, sweep, write
from daskscope_lambdas.ports import QueueFeed, StoreError
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters
from daskscope_query import layout
from tests.faults.functions import Here, functions, posted
from tests.faults.stores import Trouble
from tests.faults.telemetry import ACCOUNT, Id, body, ids, owed

TOGETHER = 500
"""Messages between two rounds of the writer."""
GATHER_EVERY = 10
"""Rounds from one run of `compact` to the next."""
TRIES = 200
"""Of a message, until its sender is taken for gone. At 30 % none needs so many."""
OUT_S = 600
OVER_S = 86_400 + 3 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The same world twice: as it is, and behind its trouble."""

    env: Told
    sound: Adapters
    weak: Adapters
    feed: QueueFeed
    """The end of the queue that AWS itself, or the embedded server, looks after."""
    trouble: Trouble
    clock: FakeClock
    wait: Callable[[], None] = lambda: None
    """Whatever the feed hid is to be seen again."""


@dataclass(frozen=True, slots=True)
class Outcome:
    tried: int
    lost: int
    doubled: int
    acked_while_out: int
    posts: int
    store_calls: int
    failed_calls: int
    dead: int
    lost_sealed: int
    doubled_sealed: int


class Trial:
    def __init__(self, place: Place, share: float) -> None:
        self._place, self._share = place, share
        self._token, _ = mint(place.sound.tokens, place.clock, ACCOUNT, ["ingest"], "trial")
        self._acked = set[Id]()
        self._posts = 0
        self._first = layout.day_of(place.clock.now())
        no_spool = Path(place.sound.lake_root) / "no-spool"
        self._schedule = Schedule(
            place.feed, Here(write.handler), Here(_compact), ingest.handler, sweep.handler, self._token, no_spool
        )

    def run(self, n: int, clusters: int) -> Outcome:
        with functions(self._place.weak, self._place.env):
            wanted = ids(n, clusters)
            half = n // 2
            self._report(wanted[:half])
            acked_while_out = self._outage(wanted[half:])
            self._report(wanted[half:])
            self._place.trouble.share = 0.0
            self._settle()
            lost, doubled = self._owed()
            self._seal()
            lost_sealed, doubled_sealed = self._owed()
        trouble = self._place.trouble
        dead = sum(1 for _ in self._place.sound.objects.list("dead/"))
        return Outcome(
            len(self._acked), lost, doubled, acked_while_out, self._posts, trouble.calls, trouble.failed, dead,
            lost_sealed, doubled_sealed,
        )  # fmt: skip

    def _post(self, id: Id) -> bool:
        self._posts += 1
        answer = ingest.handler(posted(*body(id), self._token), None)
        assert answer["statusCode"] in (200, 500, 503), answer
        if answer["statusCode"] == 200:
            self._acked.add(id)
        return id in self._acked

    def _report(self, wanted: list[Id]) -> None:
        self._place.trouble.share = self._share
        for start in range(0, len(wanted), TOGETHER):
            for one in wanted[start : start + TOGETHER]:
                assert any(self._post(one) for _ in range(TRIES)), one
            self._round()
            if start // TOGETHER % GATHER_EVERY == 0:
                with suppress(StoreError):
                    _compact({}, None)

    def _outage(self, wanted: list[Id]) -> int:
        """Every store is out; senders go on trying. Returns how many were told that their message is kept."""
        before = len(self._acked)
        self._place.trouble.out = True
        for n in range(OUT_S // 60):
            for one in wanted[n : n + 3]:
                self._post(one)
            self._round()
            self._place.clock.advance(60)
        self._place.trouble.out = False
        return len(self._acked) - before

    def _round(self) -> bool:
        """As the schedule does it: what fails is left to the next round. Whether the queue may hold more."""
        more = True
        with suppress(StoreError):
            more = asyncio.run(self._schedule.drain_once())
        self._place.clock.advance(HIDDEN_S + 1)
        self._place.wait()
        return more

    def _settle(self) -> None:
        while self._round():
            pass
        # What failed in the very last round with trouble is there once more.
        self._round()

    def _seal(self) -> None:
        """A run that meets trouble ends, the next one goes on. A third of the trouble: it makes hundreds of calls."""
        self._place.trouble.share = self._share / 3
        self._place.clock.advance(OVER_S)
        day = layout.day_of(self._place.clock.now()) - timedelta(1)
        while self._place.sound.seals.boundary() != day:
            with suppress(StoreError):
                _compact({}, None)
        self._place.trouble.share = 0.0

    def _owed(self) -> tuple[int, int]:
        sound = self._place.sound
        return owed(self._acked, sound.lake_root, sound.seals.boundary(), self._first)


def _compact(event: dict[str, object], context: object) -> None:
    importlib.import_module("daskscope_lambdas.handlers.compact").handler(event, context)

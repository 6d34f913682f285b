"""Computations and the code that started them.

`Scheduler.computations` keeps the last 100; the watch puts a longer deque in its place (see
`scheduler_plugin`), so that one read an interval misses none. A new graph joins the last computation unless the
scheduler is idle, so only the last one known can grow. The stop is our own: Dask's is 0 when every task failed, and
moves while groups run.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter, deque
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from daskscope import wire
from daskscope.collect.groups import MAX_SNAPSHOTS, GroupReader, snapshots_at_once

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.client import SourceCode
    from distributed.scheduler import Computation

MAX_CODE_BYTES = 64 << 10
"""A longer piece of code is cut there and ends in a line that says so: a whole generated script is nobody's snippet."""
MAX_KNOWN_CODES = 10_000
MAX_KEPT, MAX_KEPT_CHARACTERS = 1_000, 1 << 20
"""So many computations that are over, and so much code, are kept, those told last, should a message be lost."""


@dataclass(slots=True)
class Live:
    """A computation that may still change."""

    no: int
    computation: Computation
    n_groups: int = 0
    code: tuple[tuple[SourceCode, ...], ...] = ()
    stop_ms: int | None = None
    open_at_s: float = 0.0
    """When it was last seen with unfinished tasks."""
    sent: bool = False
    told: wire.Computation | None = None
    """As it was sent last."""


class ComputationReader:
    """Finds new computations, hands their groups to the group reader, and tells when each has stopped."""

    def __init__(self, scheduler: Scheduler, groups: GroupReader, *, transmit_code: bool) -> None:
        self._scheduler, self._groups, self._transmit_code = scheduler, groups, transmit_code
        self._live: dict[int, Live] = {}
        self._last: Live | None = None
        self._known_codes: dict[str, None] = {}
        self._key = secrets.token_bytes(16)
        """Pieces of code have names here that nobody can guess a text by; `privacy.codes` makes hashes of them."""
        self.n_computations = 0
        self._n_unsent = self._n_unseen = 0
        self._kept: deque[wire.Computation] = deque(maxlen=MAX_KEPT)
        self._again: deque[wire.Computation] = deque()
        self._texts: dict[str, wire.Code] = {}
        self._n_characters = 0

    @property
    def waiting(self) -> Counter[str]:
        """What the last read left for the next: `computations`."""
        return Counter({"computations": max(self._n_unsent, self._n_unseen) + len(self._again)})

    @property
    def behind(self) -> bool:
        """Whether the last read left computations for the next."""
        return self.waiting.total() > 0

    @property
    def n_unsent(self) -> int:
        """Computations that were found and not told yet."""
        return self._n_unsent

    def resend(self) -> None:
        """Send code, what is still live and what is kept again: a message with them was lost."""
        self._known_codes.clear()
        self._again.extend(self._kept)
        self._kept.clear()
        self._n_unsent = len(self._live)
        for live in self._live.values():
            live.sent = False

    def discover(self) -> None:
        """Follow new computations and the groups that any of them gained."""
        fresh: list[Computation] = []
        for computation in reversed(self._scheduler.computations):
            if self._last and computation is self._last.computation:
                break
            fresh.append(computation)
        grown = [self._last] if self._last else []
        for computation in reversed(fresh):
            live = Live(self.n_computations, computation)
            self._live[live.no] = self._last = live
            self.n_computations += 1
            self._n_unsent += 1
            grown.append(live)
        for live in grown:
            if len(live.computation.groups) != live.n_groups:
                live.n_groups = len(live.computation.groups)
                self._groups.track(live.computation.groups, live.no)

    def read(self, now_s: float, *, last: bool = False) -> tuple[list[wire.Computation], list[wire.Code]]:
        """Snapshots of the computations that changed, and code not sent before; of those that may still change a
        bounded number is looked at, in turns. Called after the groups were read.

        `last`: look at every one, for no later read will.
        """
        snapshots: list[wire.Computation] = []
        codes: dict[str, wire.Code] = {}
        n_unseen = len(self._live)
        for live in list(islice(self._live.values(), n_unseen if last else snapshots_at_once(n_unseen))):
            if len(snapshots) == MAX_SNAPSHOTS:
                break
            n_unseen -= 1
            del self._live[live.no]
            stop_ms = self._stop_ms(live, now_s)
            code = tuple(live.computation.code) if self._transmit_code else ()
            if not live.sent or stop_ms != live.stop_ms or code != live.code:
                self._n_unsent -= not live.sent
                live.stop_ms, live.code, live.sent = stop_ms, code, True
                live.told = self._snapshot(live, codes)
                snapshots.append(live.told)
            if self._is_over(live):
                self._groups.progress.pop(live.no, None)
                if live.told is not None:
                    self._kept.append(live.told)
            else:
                self._live[live.no] = live
        self._n_unseen = n_unseen if last else 0
        self._tell_again(snapshots, codes)
        return snapshots, list(codes.values())

    def _tell_again(self, snapshots: list[wire.Computation], codes: dict[str, wire.Code]) -> None:
        while self._again and len(snapshots) < MAX_SNAPSHOTS:
            computation = self._again.popleft()
            snapshots.append(computation)
            self._kept.append(computation)
            for frame in chain.from_iterable(computation.code):
                if frame.code not in self._known_codes and frame.code in self._texts:
                    codes[frame.code] = self._texts[frame.code]
                    self._known_codes[frame.code] = None

    def _stop_ms(self, live: Live, now_s: float) -> int | None:
        progress = self._groups.progress[live.no]
        if progress.n_open:
            live.open_at_s = now_s
            return None
        if ended_s := progress.ended_s(live.open_at_s):
            return round(ended_s * 1e3)
        if live.stop_ms is not None:
            return live.stop_ms
        # No task of its own succeeded, or others failed later: Dask knows no end of these. Or its tasks went into
        # groups of an earlier computation: then Dask attributes them to that one, and to its span. It has stopped
        # when nothing is left to do.
        return None if not live.n_groups and self._groups.n_active else round(now_s * 1e3)

    def _is_over(self, live: Live) -> bool:
        nothing_follows = not self._groups.progress[live.no].n_followed
        return live.stop_ms is not None and nothing_follows and live is not self._last

    def _snapshot(self, live: Live, codes: dict[str, wire.Code]) -> wire.Computation:
        calls = [[self._frame(source, codes) for source in call] for call in live.code]
        start_ms = round(live.computation.start * 1e3)
        stop_ms = None if live.stop_ms is None else max(live.stop_ms, start_ms)
        return wire.Computation(no=live.no, start_ms=start_ms, stop_ms=stop_ms, code=calls)

    def _frame(self, source: SourceCode, codes: dict[str, wire.Code]) -> wire.Frame:
        text = _cut(source.code)
        code_hash = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16, key=self._key).hexdigest()
        if code_hash not in self._known_codes:
            codes[code_hash] = wire.Code(hash=code_hash, text=text)
            self._known_codes[code_hash] = None
            if len(self._known_codes) > MAX_KNOWN_CODES:
                del self._known_codes[next(iter(self._known_codes))]
            self._keep(codes[code_hash])
        return wire.Frame(
            code=code_hash, file=source.filename, line=source.lineno_frame, line_in_code=source.lineno_relative + 1
        )

    def _keep(self, code: wire.Code) -> None:
        if code.hash not in self._texts:
            self._texts[code.hash] = code
            self._n_characters += len(code.text)
        while self._n_characters > MAX_KEPT_CHARACTERS:
            self._n_characters -= len(self._texts.pop(next(iter(self._texts))).text)


def _cut(text: str) -> str:
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= MAX_CODE_BYTES:
        return encoded.decode()
    kept = encoded[:MAX_CODE_BYTES].decode("utf-8", "ignore")
    return f"{kept}\n# ... daskscope cut {len(encoded) - MAX_CODE_BYTES} bytes of this source here"

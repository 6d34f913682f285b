"""What a sender could not bring, counted by reason and said once a minute."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterable

from daskscope import wire
from daskscope.attempts import warn
from daskscope.contents import told_once
from daskscope.parcel import Parcel, repacked

QUIET_S = 60.0


class Losses:
    """Of one scheduler; what another one's messages lose, it does not tell."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._quiet_until = 0.0
        self._own = ""
        """What the names of this scheduler's messages begin with."""
        self.counts: Counter[str] = Counter()

    def belong_to(self, message: wire.Message) -> None:
        self._own = f"{message.cluster}-{message.boot}-"

    def is_own(self, parcel: Parcel) -> bool:
        return parcel.name.startswith(self._own)

    def broken(self, message: wire.Message) -> None:
        """It cannot be put into words, or is no message at all."""
        self.counts["not-encodable"] += 1
        with contextlib.suppress(Exception):
            self.counts.update(told_once(message))

    def unpacked(self, reason: str, message: wire.Message) -> None:
        self.counts[reason] += 1
        self.counts.update(told_once(message))

    def parcel(self, reason: str, parcel: Parcel) -> None:
        if not self.is_own(parcel):
            return
        if parcel.seq < 0:  # it was parked meanwhile, and what is in it forgotten
            with contextlib.suppress(Exception):  # or it cannot be read
                parcel = repacked(parcel.opened(), ())
        self.counts[reason] += 1 + parcel.merged
        self.counts.update(parcel.once)
        if parcel.part:
            self.counts["parts"] += 1

    def at_the_end(self, messages: Iterable[wire.Message], parcels: Iterable[Parcel]) -> None:
        """Once: what comes after it is not told any more."""
        if self._quiet_until == math.inf:
            return
        before = self.counts.copy()
        for message in messages:
            self.unpacked("closing", message)
        for parcel in parcels:
            self.parcel("closing", parcel)
        told = self.counts - before
        if n := told.pop("closing", 0):
            self._quiet_until = math.inf
            also = "".join(f", {n_of} {kind}" for kind, n_of in told.items())
            warn("daskscope: %d messages could not be delivered before the scheduler closed%s.", n, also)

    def warn(self, text: str, why: str) -> None:
        """One warning a minute at most."""
        if self._monotonic() >= self._quiet_until:
            self._quiet_until = self._monotonic() + QUIET_S
            warn("daskscope: " + text, why)

    def warn_dropped(self, why: str) -> None:
        self.warn("a message was dropped: %s.", why)

"""Whether messages are compressed after the sample that both sides know: as the server says, and unless it fails."""

from __future__ import annotations

import math
from collections.abc import Callable

from daskscope import wire
from daskscope.parcel import Parcel

SAMPLED_TRIES, PLAIN_S = 3, 3600.0
"""So many tries in vain after the sample, and a message goes plain: whatever is on the way may fail at that encoding
and say that the server does. If plain helps, the sample is left alone for so long."""


class Sampling:
    """Of one sender."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.taken = frozenset[str]()
        """What the server takes beside zstd and gzip. The first message does not know."""
        self._suspect = ""
        """Name of the message that was not taken after the sample, and goes again plain."""
        self._n_in_vain = 0
        """Tries after the sample in a row that were not answered for good."""
        self._suspect_s = self._plain_until_s = 0.0
        """For how long the sample is to be left alone if plain helps, and until when it is."""

    def kept(self, parcel: Parcel, reply: wire.Reply | None) -> None:
        self._n_in_vain = 0
        if parcel.name == self._suspect:
            self._suspect, self._plain_until_s = "", self._monotonic() + self._suspect_s
        if reply is not None:
            self.taken = frozenset(reply.accepts if self._monotonic() >= self._plain_until_s else ())

    def not_taken(self, parcel: Parcel) -> None:
        """After the sample, that is."""
        self._doubt(parcel, math.inf)

    def refused(self) -> None:
        """Whatever was wrong, it was not the sample."""
        self._suspect, self._n_in_vain = "", 0

    def denied(self) -> None:
        self._suspect = ""

    def failed(self, parcel: Parcel, *, is_closing: bool) -> None:
        if not parcel.suits(()):
            self._n_in_vain += 1
            if self._n_in_vain >= (1 if is_closing else SAMPLED_TRIES):  # a close has no third try
                self._doubt(parcel, PLAIN_S)

    def _doubt(self, parcel: Parcel, plain_s: float) -> None:
        """Send it plain, and if that helps, all others for so long."""
        self._suspect, self._suspect_s, self.taken = parcel.name, plain_s, frozenset()

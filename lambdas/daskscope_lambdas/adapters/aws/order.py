"""Numbers as text that sorts like them: DynamoDB's index of lists has a text for its sort key."""

from __future__ import annotations

import struct

_DIGITS = 16
_SIGN = 1 << 63
_ALL = (1 << 64) - 1


def sortable(number: float) -> str:
    """16 hex digits: no two numbers share one, and none is rounded."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))  # -0.0 + 0.0 is 0.0
    # Numbers below zero have their sign bit set, and sort by their other bits the wrong way round.
    return f"{bits ^ _ALL if bits & _SIGN else bits | _SIGN:0{_DIGITS}x}"


def place(started_at: float, number: int) -> str:
    """Where a cluster stands in the list: by start, then by number."""
    return f"{sortable(started_at)}{number:0{_DIGITS}x}"


def placed(place: str) -> tuple[float, int]:
    """What `place` was given."""
    bits = int(place[:_DIGITS], 16)
    (started_at,) = struct.unpack(">d", struct.pack(">Q", bits & ~_SIGN if bits & _SIGN else bits ^ _ALL))
    return started_at, int(place[_DIGITS:], 16)

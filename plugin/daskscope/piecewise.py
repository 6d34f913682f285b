"""A message's file to a server: whole or, where that is too much for one body, in parts.

What cannot be divided any more is left out, and the rest goes; whoever asked hears of it, and keeps the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from daskscope.compression import Encoding, decompress
from daskscope.errors import BadMessage
from daskscope.outcome import Outcome
from daskscope.parcel import Parcel, in_parts
from daskscope.sender import LEAST_BODY_BYTES

Post = Callable[[str, bytes, Encoding], Outcome]


def posted(name: str, body: bytes, encoding: Encoding, post: Post) -> Outcome:
    """What became of it at last; `refused` where any of it was, and `again` or `denied` as soon as the server takes
    nothing. The message itself goes last. Raises BadMessage for what is none."""
    outcome = post(name, body, encoding)
    if outcome.verdict != "split":
        return outcome
    parcels = _parts(body, encoding, outcome.reason)
    if len(parcels) < 2:
        return Outcome("refused", outcome.reason, status=outcome.status)
    refused: Outcome | None = None
    for parcel in parcels:
        outcome = posted(parcel.name, parcel.body, parcel.encoding, post)
        if outcome.verdict == "refused":
            refused = refused or Outcome("refused", f"of a part of it alone: {outcome.reason}", status=outcome.status)
        elif outcome.verdict != "kept":
            return outcome
    return refused or outcome


def _parts(body: bytes, encoding: Encoding, reason: str) -> list[Parcel]:
    if len(body) <= LEAST_BODY_BYTES:
        return []
    try:
        return in_parts(json.loads(decompress(body, encoding)), ())
    except (ImportError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadMessage(f"{reason}, and it cannot be divided here ({error}).") from error

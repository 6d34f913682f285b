"""What messages have in common: a made-up one that both sides know, so that a small message need not tell it.

A message of a small cluster is mostly names of columns. Compressed after the sample, as if that had just been sent, it
has a third fewer bytes (docs/decisions/0005-a-sample-both-sides-know.md).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

NO = 1
"""Which sample. Once released it never changes: another one is another file, with its own number."""


@cache
def sample() -> bytes:
    """The sample as one line. In its file it has many, to be readable: what ends a line is no part of it."""
    return b"".join(Path(__file__).with_name(f"sample_{NO}.json").read_bytes().splitlines())

"""A message packed: the bytes that are sent, however often, and what is lost with them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Protocol

from daskscope import wire
from daskscope.compression import SAMPLED, Encoding, compress, decompress
from daskscope.contents import AGAIN, counted, told_again
from daskscope.parts import halves
from daskscope.slices import Plain

MAX_BODY_BYTES = 700 << 10
MAX_PLAIN_BYTES = 8 << 20
"""What has more of either goes in parts. A server takes a little more."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message, or a part of one, as it will be sent, however often."""

    name: str
    body: bytes
    encoding: Encoding
    once: Counter[str]
    """How much is in it that no later message tells again."""
    again: Counter[str] = field(default_factory=Counter[str])
    """Rows of what a later message tells again."""
    seq: int = -1
    """-1: not known, for another process packed it."""
    part: int = 0
    merged: int = 0
    is_whole: bool = False
    """Whether it is a message with all that it tells, and not one in parts."""
    is_end: bool = False
    """The first message of its boot, the last, or one that tells who the cluster is."""
    n_plain_bytes: int = 0

    def suits(self, taken: Collection[str]) -> bool:
        """Whether a server takes it that takes these encodings beside zstd and gzip."""
        return self.encoding not in SAMPLED or self.encoding in taken

    def plain(self) -> Parcel:
        """The same message, as every server takes it."""
        body, encoding = compress(decompress(self.body, self.encoding))
        return replace(self, body=body, encoding=encoding)

    def opened(self) -> Plain:
        """What it tells, as JSON has it."""
        return json.loads(decompress(self.body, self.encoding))

    @property
    def is_too_large(self) -> bool:
        return len(self.body) > MAX_BODY_BYTES or self.n_plain_bytes > MAX_PLAIN_BYTES


class Shelf(Protocol):
    """Where messages lie besides, so that a process that is killed loses none (`shelf.py`). Nothing of it raises."""

    def keep(self, parcel: Parcel) -> bool:
        """Write it down, before its first try. False where there is no room, or the disk fails: memory alone has it,
        and what lay there under its name lies there until `drop`."""
        ...

    def park(self, name: str) -> None:
        """Nobody has it in memory any more: `next` may give it."""
        ...

    def next(self) -> Parcel | None:
        """What is nobody's: first what was parked here, then what a scheduler of this user left behind that is dead,
        the oldest first. None if there is none. It stays where it is until `drop` or `set_aside`; until then `next`
        gives others."""
        ...

    def drop(self, name: str) -> None:
        """The server has it, or another message tells what it told."""
        ...

    def set_aside(self, name: str, reason: str) -> None:
        """No server will ever take it: kept for a person to look at, and not tried again."""
        ...

    def close(self) -> None:
        """What lies there is anybody's now."""
        ...


def packed(message: wire.Message, taken: Collection[str], once: Counter[str]) -> list[Parcel]:
    """In the smallest form that the server takes, in as many parts as it needs, the message itself last. Raises
    whatever is wrong with the message."""
    encoded = wire.encode(message)
    if len(encoded) <= MAX_PLAIN_BYTES:
        head = {name: getattr(message, name) for name in _LABEL}
        parcel = _packed(head, encoded, taken, once, told_again(message))
        if not parcel.is_too_large:
            return [parcel]
    return in_parts(json.loads(encoded), taken)


def repacked(plain: Plain, taken: Collection[str]) -> Parcel:
    """The same of a message as JSON has it."""
    encoded = json.dumps(plain, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")
    told = counted(plain)
    again = Counter({kind: told.pop(kind) for kind in AGAIN if kind in told})
    return _packed({name: plain.get(name) for name in _LABEL}, encoded, taken, told, again)


def in_parts(plain: Plain, taken: Collection[str]) -> list[Parcel]:
    """What is too much for one body, divided until each part fits one or cannot be divided; the message itself is the
    last of them."""
    pair = halves(plain)
    if pair is None:
        return [repacked(plain, taken)]
    itself, part = pair
    return [*fitting(part, taken), *fitting(itself, taken)]


def fitting(plain: Plain, taken: Collection[str]) -> list[Parcel]:
    """In one body, or in parts."""
    parcel = repacked(plain, taken)
    return in_parts(plain, taken) if parcel.is_too_large else [parcel]


_LABEL = ("cluster", "boot", "seq", "part", "halved", "merged", "phase", "identity")


def _packed(head: Plain, encoded: bytes, taken: Collection[str], once: Counter[str], again: Counter[str]) -> Parcel:
    seq, part, merged = head["seq"], head["part"] or 0, head["merged"] or 0
    body, encoding = compress(encoded, taken)
    return Parcel(
        name=f"{head['cluster']}-{head['boot']}-{seq:08d}" + (f"-p{part}" if part else ""),
        body=body,
        encoding=encoding,
        once=once,
        again=again,
        seq=seq,
        part=part,
        merged=merged,
        is_whole=not (part or head["halved"]),
        is_end=not part and (seq == merged or head["identity"] is not None or head["phase"] == "closed"),
        n_plain_bytes=len(encoded),
    )

"""A message packed: the bytes that are sent, however often, and what is lost with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Protocol

from daskscope import wire
from daskscope.compression import SAMPLED, Encoding, compress, decompress


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message as it will be sent, however often."""

    name: str
    body: bytes
    encoding: Encoding
    once: Counter[str]
    """How much is in it that no later message tells again."""

    def suits(self, taken: Collection[str]) -> bool:
        """Whether a server takes it that takes these encodings beside zstd and gzip."""
        return self.encoding not in SAMPLED or self.encoding in taken

    def plain(self) -> Parcel:
        """The same message, as every server takes it."""
        body, encoding = compress(decompress(self.body, self.encoding))
        return replace(self, body=body, encoding=encoding)


class Shelf(Protocol):
    """Where messages lie besides, so that a process that is killed loses none (`spool.py`). Nothing of it raises."""

    def keep(self, parcel: Parcel) -> bool:
        """Write it down, before its first try. False where there is no room, or the disk fails: memory alone has it."""
        ...

    def park(self, name: str) -> None:
        """Nobody has it in memory any more: `next` may give it."""
        ...

    def next(self) -> Parcel | None:
        """The oldest that is nobody's: parked here, or left behind by a scheduler of this user that is dead. None if
        there is none. It stays where it is until `drop` or `set_aside`; until then `next` gives others."""
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


def packed(message: wire.Message, taken: Collection[str], once: Counter[str]) -> Parcel:
    """In the smallest form that the server takes. Raises whatever is wrong with the message."""
    body, encoding = compress(wire.encode(message), taken)
    part = f"-p{message.part}" if message.part else ""
    return Parcel(f"{message.cluster}-{message.boot}-{message.seq:08d}{part}", body, encoding, once)


def told_once(message: wire.Message) -> Counter[str]:
    """How much of what no later message tells, by kind as in `lost`."""
    told = {
        "exceptions": sum(family.count for family in message.exceptions),
        "events": len(message.events),
        "deaths": len(message.deaths),
        "log-lines": len(message.logs.no),
        "tasks": len(message.tasks.worker) * message.tasks.weight,
        "profiles": len(message.profiles),
    }
    return Counter({kind: n for kind, n in told.items() if n})

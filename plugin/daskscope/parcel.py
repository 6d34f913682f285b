"""A message packed: the bytes that are sent, however often, and what is lost with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

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


def packed(message: wire.Message, taken: Collection[str], once: Counter[str]) -> Parcel:
    """In the smallest form that the server takes. Raises whatever is wrong with the message."""
    body, encoding = compress(wire.encode(message), taken)
    return Parcel(f"{message.cluster}-{message.boot}-{message.seq:08d}", body, encoding, once)


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

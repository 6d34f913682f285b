"""A shelf without a disk: what `parcel.Shelf` promises, and nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from daskscope.compression import Encoding
from daskscope.parcel import Parcel


@dataclass
class MemoryShelf:
    n_most: int = 1_000_000
    is_broken: bool = False
    """Nothing can be written any more, not even in place of what lies there."""
    files: dict[str, tuple[bytes, Encoding]] = field(default_factory=dict)
    out: set[str] = field(default_factory=set)
    """Names of those that a sender has."""
    aside: dict[str, str] = field(default_factory=dict)
    is_closed: bool = False

    def keep(self, parcel: Parcel) -> bool:
        assert parcel.suits(()), "as every server takes it"
        if self.is_broken or (parcel.name not in self.files and len(self.files) >= self.n_most):
            return False
        self.files[parcel.name] = (parcel.body, parcel.encoding)
        self.out.add(parcel.name)
        return True

    def park(self, name: str) -> None:
        self.out.discard(name)

    def next(self) -> Parcel | None:
        for name in sorted(self.files):
            if name not in self.out:
                self.out.add(name)
                return Parcel(name, *self.files[name], Counter())
        return None

    def drop(self, name: str) -> None:
        self.out.discard(name)
        self.files.pop(name, None)

    def set_aside(self, name: str, reason: str) -> None:
        self.drop(name)
        self.aside[name] = reason

    def close(self) -> None:
        self.is_closed = True
        self.out.clear()

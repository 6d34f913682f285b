"""Shelves on a disk, and what lies on them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from daskscope import testing, wire
from daskscope.parcel import Parcel, Shelf, repacked
from daskscope.shelf import WriteAhead
from tests.plugin.rig import Clock

HERE, THERE = "a" * 32, "b" * 32


EARLY, LATE = "0" * 24, "1" * 24


def parcel(seq: int = 0, cluster: str = HERE, boot: str = LATE, taken: tuple[str, ...] = (), **changes: Any) -> Parcel:
    message = testing.message(cluster=cluster, boot=boot, seq=seq, **changes)
    return repacked(json.loads(wire.encode(message)), taken)


def shelf_in(folder: Path, clock: Clock | None = None, max_bytes: int = 1 << 20) -> WriteAhead:
    return WriteAhead(folder / "spool" / "here", max_bytes, monotonic=clock or Clock())


def files(folder: Path, *suffixes: str) -> list[str]:
    return sorted(path.name for path in (folder / "spool" / "here").iterdir() if path.suffix in (suffixes or (".msg",)))


def given(shelf: Shelf) -> list[str]:
    """All that it has, in its order; it is kept as the sender keeps it that cannot deliver."""
    found: list[str] = []
    while (each := shelf.next()) is not None:
        found.append(each.name)
    return found


def left_behind(folder: Path, *seqs: int, cluster: str = THERE, boot: str = EARLY) -> list[Parcel]:
    """By a scheduler that is no more: the system has let go of its lock."""
    shelf, parcels = shelf_in(folder), [parcel(seq, cluster, boot) for seq in seqs]
    for each in parcels:
        assert shelf.keep(each)
    for descriptor in shelf._claims._held.values():
        assert descriptor is not None
        os.close(descriptor)
    return parcels

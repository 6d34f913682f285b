"""A message that is too much for one body, in two: itself, and a part of it.

Both say the same (cluster, boot, seq). Part 0 is the message itself, with its gauges; any other has list-like content
alone. As every row is known by numbers of its own, the rows of all parts are those of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from daskscope.slices import (
    OBJECTS,
    PROFILES,
    REFERRED,
    TABLES,
    Plain,
    n_rows,
    numbered,
    some,
    some_profile,
    with_referred,
)

OF_EACH = ("v", "cluster", "boot", "seq", "made_at_ms", "uptime_us", "next_s", "started_at_ms")
"""What every part tells."""
SUMMED = (
    "cpu_pct",
    "net_read_kib_s",
    "net_write_kib_s",
    "disk_read_kib_s",
    "disk_write_kib_s",
    "gpu_pct",
    "gpu_memory_mib",
)
GREATEST = "loop_interval_ms"


def halves(plain: Plain) -> tuple[Plain, Plain] | None:
    """The piece with the first half of each list, and a new part with the rest; None where there is nothing to divide.

    Pieces of a piece that was halved `d` times, with number p, are numbered p and p + 2^d.
    """
    part, halved = plain.get("part", 0), plain.get("halved", 0)
    first = {name: value for name, value in plain.items() if name not in _DIVIDED}
    second = {name: plain[name] for name in OF_EACH if name in plain}
    sizes = dict(_sizes(plain))
    if sum(sizes.values()) < (2 if part else 1):
        return None
    is_turn = False
    members: dict[int, list[Plain]] = {}
    for name, n in sizes.items():
        n_first = n // 2 + (n % 2 and is_turn)
        is_turn ^= bool(n % 2)  # of lists with a single row each, every other one moves
        for number, (piece, start, stop) in enumerate(((first, 0, n_first), (second, n_first, n))):
            if start == stop:
                continue
            if name == "members":
                members[number] = plain[name][start:stop]
            elif name == PROFILES:
                piece[name] = list(_profiles(plain[name], start, stop))
            else:
                piece[name] = some(name, plain[name], range(start, stop)) if name in TABLES else plain[name][start:stop]
    for number, kept in members.items():
        (first, second)[number].update(with_referred(kept, plain))
    if "workers" in plain and "sums" not in plain and not part:
        first["sums"] = _sums(plain["workers"])
    first["halved"] = second["halved"] = halved + 1
    second["part"] = part + (1 << halved)
    return first, second


def n_elements(plain: Plain) -> int:
    """How much there is to divide."""
    return sum(n for _, n in _sizes(plain))


_DIVIDED = {*TABLES, *OBJECTS, *REFERRED, PROFILES}


def _sizes(plain: Plain) -> Iterator[tuple[str, int]]:
    for name in TABLES:
        if name in plain:
            yield name, n_rows(plain[name], name)
    for name in OBJECTS:
        if name in plain:
            yield name, len(plain[name])
    if PROFILES in plain:
        yield PROFILES, sum(map(_n_stacks, plain[PROFILES]))


def _n_stacks(profile: Plain) -> int:
    return max(len(profile.get("stack", ())), 1)  # one without stacks tells what was cut


def _profiles(profiles: list[Plain], start: int, stop: int) -> Iterator[Plain]:
    """Stacks from `start` up to `stop`, counted over all of them."""
    for profile in numbered(profiles):
        n = _n_stacks(profile)
        first, last = max(start, 0), min(stop, n)
        if first < last:
            yield some_profile(profile, first, last) if "stack" in profile else profile
        start, stop = start - n, stop - n


def _sums(workers: dict[str, Any]) -> dict[str, int]:
    sums = {name: sum(workers[name]) for name in SUMMED if workers.get(name)}
    return sums | {GREATEST: max(workers[GREATEST])} if workers.get(GREATEST) else sums

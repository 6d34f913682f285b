"""What workers spend their time in: the payloads of their agents, and one profile made of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from daskscope import wire

MAX_STACKS = 2000
"""Of a merged profile: the most frequent ones, the samples of the others are in `cut`."""
MAX_WAITING = 200_000
"""Stacks and frames between two reads, some 50 MB: what comes beyond is left out and counted."""
MAX_OF_PAYLOAD, MAX_DEPTH, MAX_FRAMES, MAX_CHARACTERS = 2000, 256, 20_000, 2_000_000
"""More than any agent sends. Its topic is open to the user's own events, too."""
MAX_NAME = 1000

_MOST = 1 << 53


class ProfileReader:
    """Takes what agents send, checked, and hands it out as it came: O(what came)."""

    def __init__(self) -> None:
        self.lost = Counter[str]()
        self.wanted = True
        """If not, what comes is only counted."""
        self._waiting: list[wire.Profile] = []
        self._told: set[tuple[str, int]] = set()
        self._n_waiting = 0

    def take(self, worker: str, payload: Mapping[str, Any]) -> None:
        """One payload; counted under `profiles` if it is not what an agent sends, or there is no room for it."""
        profile = _checked(payload) if self.wanted else None
        if profile is None or self._n_waiting >= MAX_WAITING:
            self.lost["profiles"] += 1
            return
        looked_at = (worker, profile.sample_us)
        profile.n_workers = 0 if looked_at in self._told else 1  # who told twice since the last read is one worker
        self._told.add(looked_at)
        self._n_waiting += len(profile.stack) + len(profile.frames)
        self._waiting.append(profile)

    def read(self) -> list[wire.Profile]:
        """What came since the last time, one per payload: to be `merged` off the event loop."""
        waiting, self._waiting = self._waiting, []
        self._told, self._n_waiting = set(), 0
        return waiting


def merged(profiles: list[wire.Profile]) -> list[wire.Profile]:
    """The same samples in as few profiles as there are times from one look to the next, mostly one.

    Samples of a stack that points to no frame are counted in `cut`, too.
    """
    by_pace: dict[int, list[wire.Profile]] = {}
    for profile in profiles:
        by_pace.setdefault(profile.sample_us, []).append(profile)
    return [_one(group) for group in by_pace.values()]


def _one(profiles: list[wire.Profile]) -> wire.Profile:
    numbers: dict[str, int] = {}
    counts: dict[tuple[str, tuple[int, ...]], int] = {}
    cut = sum(profile.cut for profile in profiles)
    for profile in profiles:
        # A dict rather than a list: what only looks like a number becomes one.
        number = {n: numbers.setdefault(frame, len(numbers)) for n, frame in enumerate(profile.frames)}.__getitem__
        for prefix, stack, count in zip(profile.prefix, profile.stack, profile.count, strict=True):
            try:
                entry = (prefix, tuple(map(number, stack)))
            except (KeyError, TypeError):  # not within the list of frames
                cut += count
                continue
            counts[entry] = counts.get(entry, 0) + count
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    kept, rare = ranked[:MAX_STACKS], ranked[MAX_STACKS:]
    names, used = list(numbers), dict[int, int]()
    stacks = [[used.setdefault(number, len(used)) for number in stack] for (_, stack), _ in kept]
    return wire.Profile(
        from_ms=min(profile.from_ms for profile in profiles),
        to_ms=max(profile.to_ms for profile in profiles),
        n_workers=sum(profile.n_workers for profile in profiles),
        sample_us=profiles[0].sample_us,
        frames=[names[number] for number in used],
        prefix=[prefix for (prefix, _), _ in kept],
        stack=stacks,
        count=[count for _, count in kept],
        cut=cut + sum(count for _, count in rare),
    )


def _checked(payload: Mapping[str, Any]) -> wire.Profile | None:
    """The payload as a profile, None if it is none. Dask turns an event's lists into tuples."""
    whole = [payload.get(name) for name in ("from_ms", "to_ms", "sample_us", "cut")]
    columns = [payload.get(name) for name in ("frames", "prefix", "stack", "count")]
    if not _wholes(whole) or not all(isinstance(column, (list, tuple)) for column in columns):
        return None
    from_ms, to_ms, sample_us, cut = cast("list[int]", whole)
    frames, prefix, stack, count = cast("list[Sequence[Any]]", columns)
    if not (from_ms <= to_ms <= wire.LATEST_MS and sample_us and len(prefix) == len(stack) == len(count)):
        return None
    if not (_texts(frames, MAX_FRAMES) and _texts(prefix, MAX_OF_PAYLOAD) and _wholes(count) and _stacks(stack)):
        return None
    return wire.Profile(
        from_ms=from_ms,
        to_ms=to_ms,
        sample_us=sample_us,
        frames=list(frames),
        prefix=[each[:MAX_NAME] for each in prefix],
        stack=[list(each) for each in stack],
        count=list(count),
        cut=cut,
    )


def _wholes(values: Sequence[Any]) -> bool:
    return set(map(type, values)) <= {int} and (not values or (min(values) >= 0 and max(values) < _MOST))


def _texts(values: Sequence[Any], n_most: int) -> bool:
    return len(values) <= n_most and set(map(type, values)) <= {str} and sum(map(len, values)) <= MAX_CHARACTERS


def _stacks(values: Sequence[Any]) -> bool:
    """Whether all are lists; what is in them is looked at when they are merged, where nobody waits."""
    return set(map(type, values)) <= {list, tuple} and max(map(len, values), default=0) <= MAX_DEPTH

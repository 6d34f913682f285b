"""Messages that wait for the server, in a room that is bounded, and what gives way where there is none left.

First what lies on the shelf besides leaves memory. Then neighbours become one, the oldest first: of the older half of
the story every other moment stays, and no time is missing. Then the oldest lose their profiles, then their tasks, task
groups, events; and at last messages go whole, but neither the first nor the last of a scheduler. The head is left as it
is: it may have arrived although nobody said so. A new message costs a few steps of this, however much waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from daskscope.contents import STAGES, counted, without
from daskscope.losses import Losses
from daskscope.merging import joined
from daskscope.parcel import Parcel, Shelf, repacked
from daskscope.parts import n_elements

MAX_MESSAGES = 360
"""An hour at the usual pace."""
MAX_BYTES = 16 << 20
MAX_JOINED_BYTES = 1 << 20
"""As JSON: two that are more together stay apart, for a merge holds the interpreter for as long as that takes."""
MAX_STEPS = 64
"""For one new message: after so many merged, or relieved of something, messages go whole."""
MAX_MERGES = 8
"""Of these: where bytes are short rather than places, a merge frees few, and what gives way first frees many."""


class Buffer:
    """A queue. `taken()` are the encodings that the server takes."""

    def __init__(self, shelf: Shelf | None, losses: Losses, taken: Callable[[], Collection[str]]) -> None:
        self._shelf, self._losses, self._taken = shelf, losses, taken
        self._parcels: list[Parcel] = []
        self._kept = set[str]()
        """Names of those that lie on the shelf besides."""
        self._apart = set[str]()
        """Names of those that cannot be merged with the next one."""
        self._next = 1
        """Where the next two are merged: it moves through the older half, again and again."""
        self.n_bytes = 0

    def __len__(self) -> int:
        return len(self._parcels)

    @property
    def head(self) -> Parcel | None:
        return self._parcels[0] if self._parcels else None

    def in_memory_alone(self) -> list[Parcel]:
        return [parcel for parcel in list(self._parcels) if parcel.name not in self._kept]

    def add(self, parcel: Parcel) -> None:
        """At the end, and make room for it."""
        self._keep(parcel)
        self._parcels.append(parcel)
        self.n_bytes += len(parcel.body)
        self._make_room()

    def add_kept(self, parcel: Parcel) -> None:
        """What the shelf gave, where nothing else waits."""
        self._kept.add(parcel.name)
        self._parcels.append(parcel)
        self.n_bytes += len(parcel.body)

    def recode_head(self, parcel: Parcel) -> None:
        """The same in another encoding."""
        self._set(0, parcel)

    def divide_head(self, parts: list[Parcel]) -> None:
        """By its parts, the last of which has its name."""
        self.n_bytes += sum(len(part.body) for part in parts) - len(self._parcels[0].body)
        self._parcels[:1] = parts
        for part in parts:
            self._keep(part)

    def done(self, aside: str = "") -> None:
        """The head is not to be sent again: the server has it, or `aside` says why it never will."""
        name = self._parcels[0].name
        if self._shelf is not None and name in self._kept:
            if aside:
                self._shelf.set_aside(name, aside)
            else:
                self._shelf.drop(name)
        self._remove(0)

    def park(self) -> None:
        """Let the head wait on the shelf, where it lies."""
        self._park(0)

    def _keep(self, parcel: Parcel) -> None:
        if self._shelf is not None and self._shelf.keep(parcel):
            self._kept.add(parcel.name)

    def _park(self, place: int) -> None:
        name = self._parcels[place].name
        self._remove(place)
        if self._shelf is not None:
            self._shelf.park(name)

    def _remove(self, place: int) -> None:
        parcel = self._parcels.pop(place)
        self.n_bytes -= len(parcel.body)
        self._kept.discard(parcel.name)
        self._apart.discard(parcel.name)

    @property
    def _is_over(self) -> bool:
        return len(self._parcels) > MAX_MESSAGES or self.n_bytes > MAX_BYTES

    def _make_room(self) -> None:
        for step in range(MAX_STEPS):
            if not self._is_over:
                return
            may_merge = step < MAX_MERGES or len(self._parcels) > MAX_MESSAGES
            if not (self._park_oldest() or (may_merge and self._merge()) or self._strip()):
                break
        while self._is_over and len(self._parcels) > 1:
            self._drop_oldest()

    def _park_oldest(self) -> bool:
        for place, parcel in enumerate(self._parcels[1:], 1):
            if parcel.name in self._kept:
                self._park(place)
                return True
        return False

    def _merge(self) -> bool:
        """Two that are neighbours; False where no two can be."""
        half = len(self._parcels) // 2
        for place in (*range(self._next, half), *range(1, self._next), *range(half, len(self._parcels) - 1)):
            if place < len(self._parcels) - 1 and self._may_merge(place):
                earlier, later = self._parcels[place : place + 2]
                plain = joined(earlier.opened(), later.opened())
                parcel = None if plain is None else repacked(plain, self._taken())
                if parcel is None or parcel.is_too_large:
                    self._apart.add(earlier.name)
                else:
                    self._remove(place)
                    self._set(place, parcel)
                    self._next = place + 1 if place + 1 < half else 1
                return True
        return False

    def _may_merge(self, place: int) -> bool:
        earlier, later = self._parcels[place : place + 2]
        return (
            self._are_neighbours(earlier, later)
            and earlier.name not in self._apart
            and earlier.n_plain_bytes + later.n_plain_bytes <= MAX_JOINED_BYTES
        )

    def _are_neighbours(self, earlier: Parcel, later: Parcel) -> bool:
        return earlier.is_whole and later.is_whole and earlier.seq + 1 == later.seq - later.merged

    def _strip(self) -> bool:
        """Take from the oldest that has any what gives way first. Where there are too many messages, rather than too
        many bytes, only of the oldest two that may become one then."""
        places = range(1, len(self._parcels))
        if self.n_bytes <= MAX_BYTES:
            first = next((place for place in places[:-1] if self._may_come_together(place)), 0)
            places = range(first, first + 2) if first else range(0)
        for kinds in STAGES:
            for place in places:
                if self._holds(place, kinds):
                    self._relieve(place, kinds)
                    return True
        return False

    def _may_come_together(self, place: int) -> bool:
        earlier, later = self._parcels[place : place + 2]
        return self._are_neighbours(earlier, later) and any(
            self._holds(each, kinds) for each in (place, place + 1) for kinds in STAGES
        )

    def _holds(self, place: int, kinds: tuple[str, ...]) -> bool:
        parcel = self._parcels[place]
        return any(parcel.once[kind] or parcel.again[kind] for kind in kinds)

    def _relieve(self, place: int, kinds: tuple[str, ...]) -> None:
        parcel = self._parcels[place]
        plain = parcel.opened()
        told = counted(plain)
        self._losses.counts.update({kind: told[kind] for kind in kinds if told[kind]})
        rest = without(plain, kinds)
        if parcel.part and not n_elements(rest):
            self._remove(place)
            return
        self._set(place, repacked(rest, self._taken()))
        self._apart -= {each.name for each in self._parcels[place - 1 : place + 1]}

    def _set(self, place: int, parcel: Parcel) -> None:
        self.n_bytes += len(parcel.body) - len(self._parcels[place].body)
        self._parcels[place] = parcel

    def _drop_oldest(self) -> None:
        place = next((n for n, parcel in enumerate(self._parcels) if n and not parcel.is_end), 1)
        parcel = self._parcels[place]
        self._losses.parcel("buffer-full", parcel)
        self._remove(place)

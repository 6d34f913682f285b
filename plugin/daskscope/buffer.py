"""Messages that wait for the server, in a room that is bounded, and what gives way where there is none left.

First what lies on the shelf besides leaves memory. Then neighbours become one, of the older half of the story the two
smallest: fewer of its moments stay, and no time is missing. Then the oldest lose their profiles, then their tasks, task
groups, events; and at last messages go whole, but neither the first nor the last of a scheduler. The head is left as it
is: it may have arrived although nobody said so. A new message costs a few steps of this, however much waits. One that
the server fails at while it takes others is passed over, and waits beside the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from daskscope.contents import STAGES, counted, without
from daskscope.losses import Losses
from daskscope.merging import joined
from daskscope.parcel import Parcel, Shelf, repacked
from daskscope.parts import n_elements
from daskscope.slices import Plain

MAX_MESSAGES = 360
"""An hour at the usual pace."""
MAX_BYTES = 16 << 20
RESERVE_PART = 16
"""One in so many of both is in reserve: messages go whole only where it is used up, too, for how much can be made room
for at one new message is bounded, and the next one goes on with it."""
MAX_JOINED_BYTES = 2 << 20
"""As JSON: what is more stays as it is, for the interpreter is held for as long as it takes to read that."""
MAX_STEPS = 64
"""For one new message: after so many merged, or relieved of something, messages go whole."""
MAX_OPENED_BYTES = 8 << 20
"""The same as JSON that is read for it."""
MAX_PASSED, PASSED_PART = 4, 4
"""So many are passed over, in one part in so many of the room."""
MAX_MERGES = 8
"""Of these: where bytes are short rather than places, a merge frees few, and what gives way first frees many."""
LEAST_FREED = 0.25
"""Of the earlier one's bytes: where bytes are short, a merge that frees less is none. What is told once stays in it,
and a few giants would be left, of which nothing can be taken any more without reading all of them."""


class Buffer:
    """A queue. `taken()` are the encodings that the server takes."""

    def __init__(self, shelf: Shelf | None, losses: Losses, taken: Callable[[], Collection[str]]) -> None:
        self._shelf, self._losses, self._taken = shelf, losses, taken
        self._parcels: list[Parcel] = []
        self._kept = set[str]()
        """Names of those that lie on the shelf besides."""
        self._apart = set[str]()
        """Names of those that cannot be merged with the next one."""
        self._in_vain = set[str]()
        """Of those that can, but it would free hardly a byte."""
        self._passed: list[Parcel] = []
        """Those that were passed over."""
        self._n_to_open = 0
        """Bytes of JSON that may still be read for the newest message."""
        self.n_bytes = 0

    def __len__(self) -> int:
        return len(self._parcels)

    @property
    def head(self) -> Parcel | None:
        return self._parcels[0] if self._parcels else None

    def in_memory_alone(self) -> list[Parcel]:
        return [parcel for parcel in [*self._passed, *self._parcels] if parcel.name not in self._kept]

    def add(self, parcel: Parcel) -> None:
        """At the end, and make room for it. Whatever is raised, it is in."""
        self._parcels.append(parcel)
        self.n_bytes += len(parcel.body)
        try:
            self._keep(parcel)
        finally:
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
        self._remove(0)
        if self._shelf is not None:  # also where it lies there in an older form alone
            if aside:
                self._shelf.set_aside(name, aside)
            else:
                self._shelf.drop(name)

    def pass_over(self, *, even_alone: bool) -> None:
        """Let the head wait beside the queue; `even_alone`: also where that holds no other. Where too many do, the
        first of them comes back for it."""
        if len(self._parcels) > 1 or even_alone:
            self._passed.append(self._parcels.pop(0))
            n_bytes = sum(len(parcel.body) for parcel in self._passed)
            if len(self._passed) > MAX_PASSED or n_bytes > MAX_BYTES // PASSED_PART:
                self._parcels.insert(0, self._passed.pop(0))

    def bring_back(self, is_due: Callable[[str], bool]) -> None:
        """Before the head, which was not tried yet: the first of those that were passed over whose turn it is."""
        place = next((place for place, parcel in enumerate(self._passed) if is_due(parcel.name)), None)
        if place is not None:
            self._parcels.insert(0, self._passed.pop(place))

    def last_first(self) -> None:
        """The newest message before all others; not where it needs its other parts to have arrived."""
        if self._parcels and self._parcels[-1].is_whole:
            self._parcels.insert(0, self._parcels.pop())

    def park(self) -> None:
        """Let the head wait on the shelf, where it lies."""
        self._park(0)

    def _keep(self, parcel: Parcel) -> None:
        self._kept.discard(parcel.name)  # what lies there under its name is not the same
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
        for names in (self._kept, self._apart, self._in_vain):
            names.discard(parcel.name)

    @property
    def _is_full(self) -> bool:
        return self._n_messages > MAX_MESSAGES or self.n_bytes > MAX_BYTES

    @property
    def _gets_full(self) -> bool:
        return self._are_too_many or self.n_bytes > MAX_BYTES - MAX_BYTES // RESERVE_PART

    @property
    def _are_too_many(self) -> bool:
        return self._n_messages > MAX_MESSAGES - MAX_MESSAGES // RESERVE_PART

    @property
    def _n_messages(self) -> int:
        return len(self._parcels) + len(self._passed)

    def _make_room(self) -> None:
        try:
            self._make_do()
        finally:
            while self._is_full and len(self._parcels) > 1:
                self._drop_oldest()

    def _make_do(self) -> None:
        """With less of each rather than with fewer."""
        self._n_to_open = MAX_OPENED_BYTES
        for step in range(MAX_STEPS):
            if not self._gets_full or self._n_to_open <= 0:
                break
            may_merge = step < MAX_MERGES or self._are_too_many
            if not (self._park_oldest() or (may_merge and self._merge()) or self._strip()):
                break

    def _park_oldest(self) -> bool:
        for place, parcel in enumerate(self._parcels[1:], 1):
            if parcel.name in self._kept:
                self._park(place)
                return True
        return False

    def _merge(self) -> bool:
        """Two that are neighbours, of the older half if any can be; False where no two can."""
        half, end = len(self._parcels) // 2, len(self._parcels) - 1
        place = self._smallest_two(range(1, min(half, end))) or self._smallest_two(range(max(half, 1), end))
        if place is None:
            return False
        earlier, later = self._parcels[place : place + 2]
        plain = joined(self._opened(earlier), self._opened(later))
        parcel = None if plain is None else repacked(plain, self._taken())
        if parcel is None or parcel.is_too_large:
            self._apart.add(earlier.name)
        elif not (self._are_too_many or _frees(earlier, later, parcel)):
            self._in_vain.add(earlier.name)
        else:
            self._remove(place)
            self._set(place, parcel)
        return True

    def _smallest_two(self, places: Iterable[int]) -> int | None:
        """Where the two are that make the smallest one: so all grow alike, and none to a giant."""
        return min(filter(self._may_merge, places), key=self._n_plain_bytes_of_two, default=None)

    def _n_plain_bytes_of_two(self, place: int) -> int:
        return self._parcels[place].n_plain_bytes + self._parcels[place + 1].n_plain_bytes

    def _may_merge(self, place: int) -> bool:
        earlier, later = self._parcels[place : place + 2]
        is_worth_it = self._are_too_many or earlier.name not in self._in_vain
        return is_worth_it and earlier.name not in self._apart and self._are_neighbours(earlier, later)

    def _are_neighbours(self, earlier: Parcel, later: Parcel) -> bool:
        """And no larger than may be read. Of the earlier one most is gauges, which are in no merged message: how large
        that will be, both together do not tell."""
        return (
            earlier.is_whole
            and later.is_whole
            and earlier.seq + 1 == later.seq - later.merged
            and max(earlier.n_plain_bytes, later.n_plain_bytes) <= MAX_JOINED_BYTES
        )

    def _opened(self, parcel: Parcel) -> Plain:
        self._n_to_open -= parcel.n_plain_bytes
        return parcel.opened()

    def _strip(self) -> bool:
        """Take from the oldest that has any what gives way first. Where there are too many messages, rather than too
        many bytes, only of the oldest two that may become one then."""
        places = range(1, len(self._parcels))
        if self.n_bytes <= MAX_BYTES - MAX_BYTES // RESERVE_PART:
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
        plain = self._opened(parcel)
        rest = without(plain, kinds)
        if parcel.part and not n_elements(rest):
            self._remove(place)
        else:
            self._set(place, repacked(rest, self._taken()))
            changed = {each.name for each in self._parcels[place - 1 : place + 1]}
            self._apart -= changed
            self._in_vain -= changed
        told = counted(plain)
        self._losses.counts.update({kind: told[kind] for kind in kinds if told[kind]})

    def _set(self, place: int, parcel: Parcel) -> None:
        self.n_bytes += len(parcel.body) - len(self._parcels[place].body)
        self._parcels[place] = parcel

    def _drop_oldest(self) -> None:
        place = next((n for n, parcel in enumerate(self._parcels) if n and not parcel.is_end), 1)
        parcel = self._parcels[place]
        self._losses.parcel("buffer-full", parcel)
        self._remove(place)


def _frees(earlier: Parcel, later: Parcel, both: Parcel) -> bool:
    """Whether it takes noticeably less room as one."""
    return len(earlier.body) + len(later.body) - len(both.body) >= LEAST_FREED * len(earlier.body)

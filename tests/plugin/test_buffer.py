"""What waits, within its bounds, and what gives way in which order."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from daskscope import buffer as module
from daskscope import testing, wire
from daskscope.buffer import MAX_MESSAGES, RESERVE_PART, Buffer
from daskscope.contents import told_again, told_once
from daskscope.losses import Losses
from daskscope.parcel import Parcel, Shelf, in_parts, packed
from tests.plugin.memory_shelf import MemoryShelf
from tests.plugin.sending import Clock
from tests.plugin.stories import everything


class Waiting:
    """A buffer, what was put in, and what is in it."""

    def __init__(self, shelf: Shelf | None = None) -> None:
        self.losses = Losses(Clock())
        self.buffer = Buffer(shelf, self.losses, frozenset)
        self.put: Counter[str] = Counter()

    def add(self, message: wire.Message) -> None:
        self.losses.belong_to(message)
        self.put += Counter({"messages": 1}) + told_once(message) + told_again(message)
        for parcel in packed(message, (), told_once(message)):
            self.buffer.add(parcel)

    @property
    def parcels(self) -> list[Parcel]:
        return self.buffer.in_memory_alone()

    @property
    def messages(self) -> list[wire.Message]:
        return [wire.decode(json.dumps(parcel.opened()).encode()) for parcel in self.parcels]

    def held(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for message in self.messages:
            found += Counter({"messages": 1 + message.merged}) + told_once(message) + told_again(message)
        return found


N_BEFORE_RESERVE = MAX_MESSAGES - MAX_MESSAGES // RESERVE_PART


def covered(messages: list[wire.Message]) -> list[int]:
    """Numbers of the messages that these tell of."""
    return [seq for message in messages for seq in range(message.seq - message.merged, message.seq + 1)]


def test_a_day_without_a_server_fits_in_no_moment_is_missing_and_the_newer_half_is_whole() -> None:
    waiting = Waiting()
    n = 1_200
    for seq in range(n):
        waiting.add(testing.message(seq=seq, events=[testing.event(no=seq)], workers=wire.Workers()))
        assert len(waiting.buffer) <= MAX_MESSAGES
    messages = waiting.messages
    assert len(messages) == N_BEFORE_RESERVE
    assert covered(messages) == [*range(n)]
    assert [event.no for message in messages for event in message.events] == [*range(n)]
    assert not waiting.losses.counts
    assert all(message.merged == 0 for message in messages[-N_BEFORE_RESERVE // 2 + 1 :])
    assert max(message.merged for message in messages) < 32, "no moment stands for five minutes"


def test_the_head_is_left_as_it_is_for_it_may_have_arrived() -> None:
    waiting = Waiting()
    for seq in range(500):
        waiting.add(testing.message(seq=seq))
        assert waiting.messages[0].seq == 0 if seq % 100 == 99 else True
    head = waiting.messages[0]
    assert (head.seq, head.merged) == (0, 0)


def test_a_new_message_costs_a_few_steps_however_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    repacked = module.repacked

    def counting(*args: Any) -> Parcel:
        nonlocal calls
        calls += 1
        return repacked(*args)

    monkeypatch.setattr(module, "repacked", counting)
    waiting = Waiting()
    for seq in range(1_000):
        before = calls
        waiting.add(testing.message(seq=seq, profiles=[testing.profile()], tasks=testing.tasks(2, first_no=2 * seq)))
        assert calls - before <= 1
    assert calls == 1_000 - N_BEFORE_RESERVE


KINDS = [("profiles",), ("tasks",), ("groups", "metrics", "spans"), ("events", "log-lines")]


def test_what_gives_way_goes_in_this_order_and_all_of_it_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that are too large to be merged, and less and less room for them."""
    monkeypatch.setattr(module, "MAX_JOINED_BYTES", 0)
    waiting = Waiting()
    for seq in range(40):
        waiting.add(everything(seq))
    assert not waiting.losses.counts
    seen: list[str] = []
    for seq in range(40, 400):
        monkeypatch.setattr(module, "MAX_BYTES", waiting.buffer.n_bytes)
        waiting.add(everything(seq))
        assert waiting.buffer.n_bytes <= module.MAX_BYTES
        assert waiting.held() + _dropped(waiting.losses.counts) == waiting.put, "to the last line"
        seen += [kind for kind in waiting.losses.counts if kind not in seen]
        if "buffer-full" in waiting.losses.counts:
            break
    ranks = [next(n for n, kinds in enumerate([*KINDS, ("buffer-full", "exceptions", "deaths")]) if kind in kinds)
             for kind in seen]  # fmt: skip
    assert ranks == sorted(ranks)
    assert set(seen) >= {kind for kinds in KINDS for kind in kinds} | {"buffer-full"}


def _dropped(lost: Counter[str]) -> Counter[str]:
    counts = lost.copy()
    return Counter({"messages": counts.pop("buffer-full", 0)}) + counts


def test_where_too_many_cannot_be_merged_they_give_way_until_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that stand for different numbers of them are no one table."""
    monkeypatch.setattr(module, "MAX_MESSAGES", 20)
    waiting = Waiting()
    for seq in range(40):
        tasks = testing.tasks(2, first_no=2 * seq, weight=1 + seq % 2)
        waiting.add(testing.message(seq=seq, tasks=tasks, events=[testing.event(no=seq)]))
    assert len(waiting.buffer) <= 20
    assert waiting.losses.counts["tasks"] > 0
    assert set(waiting.losses.counts) == {"tasks"}
    assert covered(waiting.messages) == [*range(40)]
    assert waiting.held() + waiting.losses.counts == waiting.put


def test_the_first_and_the_last_message_are_never_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_JOINED_BYTES", 0)
    monkeypatch.setattr(module, "MAX_BYTES", 4_000)
    waiting = Waiting()
    waiting.add(testing.message(seq=5))  # the head
    for seq in range(6, 100):
        phase = "closed" if seq == 50 else "running"
        identity = testing.identity() if seq == 7 else None
        waiting.add(testing.message(seq=seq, phase=phase, identity=identity))
    left = [message.seq for message in waiting.messages]
    assert {5, 7, 50} <= set(left)
    assert waiting.losses.counts == {"buffer-full": 95 - len(left)}
    assert len(left) < 20


def test_merging_stops_at_a_gap() -> None:
    waiting = Waiting()
    for seq in range(0, 2 * MAX_MESSAGES, 2):
        waiting.add(testing.message(seq=seq))
    waiting.add(testing.message(seq=2 * MAX_MESSAGES))
    assert waiting.losses.counts == {"buffer-full": 1}
    assert [message.merged for message in waiting.messages] == [0] * MAX_MESSAGES
    assert waiting.messages[0].seq == 0


def test_what_lies_on_the_shelf_leaves_memory_and_nothing_is_merged() -> None:
    shelf = MemoryShelf()
    waiting = Waiting(shelf)
    for seq in range(1_000):
        waiting.add(testing.message(seq=seq))
    assert len(waiting.buffer) == N_BEFORE_RESERVE
    assert waiting.parcels == [], "none in memory alone"
    assert len(shelf.files) == 1_000
    assert len(shelf.out) == N_BEFORE_RESERVE
    assert not waiting.losses.counts


def test_where_the_shelf_is_full_neighbours_are_merged_as_without_one() -> None:
    shelf = MemoryShelf(n_most=100)
    waiting = Waiting(shelf)
    for seq in range(1_000):
        waiting.add(testing.message(seq=seq, workers=wire.Workers()))
    on_disk = [int(name.rpartition("-")[2]) for name in shelf.files]
    assert len(waiting.buffer) == N_BEFORE_RESERVE
    assert sorted(on_disk + covered(waiting.messages)) == [*range(1_000)]
    assert not waiting.losses.counts


def test_a_part_that_has_nothing_left_goes_and_is_no_message_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting()
    waiting.add(testing.message(seq=0))
    (whole,) = packed(testing.message(seq=1, events=[testing.event()], workers=wire.Workers()), (), Counter())
    for part in in_parts(whole.opened(), ()):
        waiting.buffer.add(part)
    assert [parcel.part for parcel in waiting.parcels] == [0, 1, 0]
    monkeypatch.setattr(module, "MAX_BYTES", waiting.buffer.n_bytes)
    monkeypatch.setattr(module, "MAX_STEPS", 1)
    waiting.add(testing.message(seq=2, workers=wire.Workers()))
    assert waiting.losses.counts["events"] == 1
    assert all(parcel.part == 0 for parcel in waiting.parcels)


def gauges(n: int) -> wire.Workers:
    chance = random.Random(n)
    numbers = {name: [chance.randrange(60_000) for _ in range(n)] for name in ("memory_mib", "managed_mib", "ready")}
    return testing.workers([f"tls://10.0.{k // 250}.{k % 250}:40000" for k in range(n)], **numbers)


@pytest.mark.parametrize("short_of", ["places", "bytes"])
def test_of_a_large_cluster_gauges_go_and_nothing_else(monkeypatch: pytest.MonkeyPatch, short_of: str) -> None:
    """Two of its messages are more together than one may be, and as one they are no more than one."""
    workers = gauges(200)
    (one,) = packed(testing.message(seq=1, workers=workers), (), Counter())
    monkeypatch.setattr(module, "MAX_JOINED_BYTES", one.n_plain_bytes + 4_000)
    monkeypatch.setattr(module, *(("MAX_MESSAGES", 10) if short_of == "places" else ("MAX_BYTES", 10 * len(one.body))))
    waiting = Waiting()
    for seq in range(30):
        waiting.add(testing.message(seq=seq, workers=workers, events=[testing.event(no=seq)]))
    assert not waiting.losses.counts
    assert covered(waiting.messages) == [*range(30)]
    assert [event.no for message in waiting.messages for event in message.events] == [*range(30)]


def test_what_cannot_be_merged_for_its_size_is_not_stripped_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_JOINED_BYTES", 0)
    monkeypatch.setattr(module, "MAX_MESSAGES", 10)
    waiting = Waiting()
    for seq in range(12):
        waiting.add(testing.message(seq=seq, events=[testing.event(no=seq)]))
    assert waiting.losses.counts == {"buffer-full": 2, "events": 2}, "those that went whole"


def test_a_new_message_costs_no_more_than_so_many_bytes_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    opened = Parcel.opened
    monkeypatch.setattr(Parcel, "opened", lambda parcel: (read.append(parcel.n_plain_bytes), opened(parcel))[1])
    monkeypatch.setattr(module, "MAX_JOINED_BYTES", 0)
    waiting = Waiting()
    for seq in range(40):
        waiting.add(everything(seq))
    largest = max(parcel.n_plain_bytes for parcel in waiting.parcels)
    monkeypatch.setattr(module, "MAX_OPENED_BYTES", 5 * largest)
    monkeypatch.setattr(module, "MAX_BYTES", waiting.buffer.n_bytes // 2)
    read.clear()
    waiting.add(everything(40))
    assert 4 * largest < sum(read) <= 6 * largest
    assert waiting.buffer.n_bytes <= module.MAX_BYTES


def test_a_fault_while_room_is_made_loses_no_more_than_there_is_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MESSAGES", 5)
    waiting = Waiting()
    for seq in range(5):
        waiting.add(testing.message(seq=seq))

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(module, "joined", fails)
    with pytest.raises(ZeroDivisionError):
        waiting.add(testing.message(seq=5))
    assert [message.seq for message in waiting.messages] == [0, 2, 3, 4, 5]
    assert waiting.losses.counts == {"buffer-full": 1}


def test_where_bytes_are_short_messages_stay_small_and_none_goes_whole_while_it_has_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 2 << 20)
    waiting, chance = Waiting(), random.Random(2)
    for seq in range(200):
        lines = ({"no": seq * 30 + n, "text": chance.randbytes(500).hex()} for n in range(30))
        waiting.add(testing.message(seq=seq, logs=testing.logs(*lines)))
    assert "buffer-full" not in waiting.losses.counts
    assert waiting.losses.counts["log-lines"] > 1_000
    assert max(len(parcel.body) for parcel in waiting.parcels) < 100 << 10
    assert covered(waiting.messages) == [*range(200)]

"""One message that the server fails at while it takes others: who waits for whom, and for how long."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from daskscope import buffer, testing, wire
from daskscope.buffer import MAX_PASSED
from daskscope.compression import decompress
from daskscope.outcome import Outcome
from daskscope.pace import BACKOFF_CAP_S
from daskscope.parcel import Parcel
from daskscope.patience import GIVE_UP_S, RETRY_S, TRIES
from tests.plugin.memory_shelf import MemoryShelf
from tests.plugin.rig import KEPT
from tests.plugin.sending import AGAIN, Bench, seqs

INTERVAL_S, SELDOM_S = 10.0, 200.0


class Day:
    """A scheduler whose server fails at some messages."""

    def __init__(self, *hard: int, shelf: MemoryShelf | None = None, interval_s: float = INTERVAL_S) -> None:
        self.interval_s = interval_s
        self.hard = set(hard)
        self.bench = Bench(jitter=1.0, shelf=shelf)
        self.bench.inbox.answer = self._answer
        self.tried: list[tuple[float, int]] = []
        self._seq = 0

    def _answer(self, name: str) -> Outcome:
        seq = int(name.split("-")[2])
        self.tried.append((self.bench.clock.now_s, seq))
        return AGAIN if seq in self.hard else KEPT

    def go_on(self, duration_s: float) -> None:
        """Messages come, and pauses pass."""
        until_s = self.bench.clock.now_s + duration_s
        while self.bench.clock.now_s < until_s:
            self.bench.sender.put(testing.message(seq=self._seq, events=[testing.event(no=self._seq)]))
            self._seq += 1
            self.bench.step()
            next_s = self.bench.clock.now_s + self.interval_s
            while (pause_s := self.bench.pause_s) is not None and self.bench.clock.now_s + pause_s < next_s:
                self.bench.clock.now_s += pause_s
                self.bench.step()
            self.bench.clock.now_s = next_s

    def times(self, seq: int) -> list[float]:
        return [at_s for at_s, tried in self.tried if tried == seq]

    @property
    def n_made(self) -> int:
        return self._seq


@pytest.mark.parametrize("hard", [(3,), (3, 4), (3, 5, 20)], ids=str)
def test_others_are_taken_meanwhile(hard: tuple[int, ...]) -> None:
    day = Day(*hard)
    day.go_on(3_600.0)
    kept = seqs(day.bench)
    assert sorted(kept) == [seq for seq in range(day.n_made) if seq not in hard]
    assert day.bench.n_waiting == 0
    assert not day.bench.sender.lost
    for seq in hard:
        assert TRIES < len(day.times(seq)) <= TRIES + 1 + 3_600.0 / RETRY_S
        later = day.times(seq)[TRIES + 1 :]
        assert all(after - before >= RETRY_S for before, after in pairwise(later))


def test_one_that_the_server_takes_at_last_is_kept() -> None:
    shelf = MemoryShelf()
    day = Day(3, shelf=shelf)
    day.go_on(2_000.0)
    assert [int(name.rpartition("-")[2]) for name in shelf.files] == [3]
    day.hard.clear()
    day.go_on(RETRY_S + INTERVAL_S)
    assert sorted(seqs(day.bench)) == [*range(day.n_made)]
    assert (shelf.files, day.bench.sender.lost) == ({}, {})


def test_after_a_day_it_is_given_up_and_counted() -> None:
    shelf = MemoryShelf()
    day = Day(3, shelf=shelf, interval_s=SELDOM_S)
    day.go_on(GIVE_UP_S)
    assert not day.bench.sender.lost
    day.go_on(RETRY_S + TRIES * BACKOFF_CAP_S + 2 * SELDOM_S)
    assert day.bench.sender.lost == {"refused": 1, "events": 1}
    assert sorted(seqs(day.bench)) == [seq for seq in range(day.n_made) if seq != 3]
    (reason,) = shelf.aside.values()
    assert reason == "for a day the server took others and not this one, HTTP 503"
    n_tries = len(day.times(3))
    day.go_on(2 * RETRY_S)
    assert len(day.times(3)) == n_tries


def test_a_server_that_is_away_for_days_is_no_reason_to_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer, "MAX_MESSAGES", 40)
    day = Day(*range(1_000), interval_s=SELDOM_S)
    day.go_on(1.5 * GIVE_UP_S)
    assert not day.bench.sender.lost
    day.hard.clear()
    day.go_on(2_000.0)
    told = [wire.decode(body) for body in day.bench.inbox.bodies]
    assert sorted(no for each in told for no in (event.no for event in each.events)) == [*range(day.n_made)]
    assert sum(1 + each.merged for each in told) == day.n_made, "what was tried is in no other message"
    assert not day.bench.sender.lost


def test_no_more_are_passed_over_than_there_is_a_part_of_the_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    monkeypatch.setattr(buffer, "MAX_BYTES", 8_000)
    monkeypatch.setattr(buffer, "MAX_MERGES", 0)
    bench = Bench(jitter=0.0)
    bench.inbox.answer = lambda _: AGAIN
    passed = list[Parcel]()
    for seq in range(60):
        event = testing.event(no=seq, detail=chance.randbytes(200).hex())
        bench.sender.put(testing.message(seq=seq, events=[event]))
        for _ in range(2 * TRIES):
            bench.clock.now_s += bench.pause_s or 0.0
            bench.step()
        passed = bench.sender._buffer._passed
        assert len(passed) <= MAX_PASSED
        assert sum(len(parcel.body) for parcel in passed) <= 8_000 / 2
        assert bench.sender._buffer.n_bytes <= 8_000
    assert passed


def test_before_the_end_the_last_message_has_its_turn_and_then_what_was_passed_over() -> None:
    day = Day(3)
    day.go_on(1_000.0)
    bench = day.bench
    n_tries = len(day.times(3))
    bench.sender.put(testing.message(seq=day.n_made, phase="closed"))
    bench.sender._pace.close()
    while bench.step():
        bench.clock.now_s += 0.0 if bench.sender._pace.has_given_up else bench.pause_s or 0.0
    assert wire.decode(bench.inbox.bodies[-1]).phase == "closed"
    assert len(day.times(3)) > n_tries
    bench.sender._losses.at_the_end([], bench.sender._buffer.in_memory_alone())
    assert bench.sender.lost == {"closing": 1, "events": 1}


def test_a_head_that_fails_at_the_end_does_not_hide_the_end() -> None:
    day = Day(*range(5))
    day.go_on(50.0)
    bench = day.bench
    bench.sender.put(testing.message(seq=day.n_made, phase="closed"))
    bench.sender._pace.close()
    while bench.step():
        bench.clock.now_s += 0.0 if bench.sender._pace.has_given_up else bench.pause_s or 0.0
    assert [wire.decode(body).phase for body in bench.inbox.bodies] == ["closed"]


def test_what_is_passed_over_lies_on_the_shelf_as_it_is() -> None:
    shelf = MemoryShelf()
    day = Day(3, shelf=shelf)
    day.go_on(1_000.0)
    ((body, encoding),) = shelf.files.values()
    assert wire.decode(decompress(body, encoding)).seq == 3
    assert day.bench.sender._buffer.in_memory_alone() == []

"""A sender with a shelf: what lies there, when, and what becomes of it. With one in memory, and with the real one."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from daskscope import testing, wire
from daskscope.compression import SAMPLED, Encoding, decompress
from daskscope.contents import told_once
from daskscope.outcome import Outcome
from daskscope.pace import DRAIN_S
from daskscope.parcel import Parcel, Shelf, packed
from daskscope.shelf import WriteAhead
from tests.plugin.memory_shelf import MemoryShelf
from tests.plugin.rig import KEPT
from tests.plugin.sending import AGAIN, Bench, seqs, started

OTHER = "0123456789abcdef" * 2
CLOSE = Outcome("kept", "", wire.Reply(id=1, url="/x", wish=["close"]))


def parcel(seq: int, cluster: str = testing.CLUSTER) -> Parcel:
    message = testing.message(seq=seq, cluster=cluster, events=[testing.event(no=seq)])
    (found,) = packed(message, (), told_once(message))
    return found


def left_behind(*seqs: int, cluster: str = OTHER) -> MemoryShelf:
    """A shelf with messages of a scheduler that is dead."""
    shelf = MemoryShelf()
    for seq in seqs:
        shelf.keep(parcel(seq, cluster))
    shelf.close()
    shelf.is_closed = False
    return shelf


def go_on(bench: Bench) -> None:
    """Until there is nothing to do, its pauses passing."""
    while bench.pause_s is not None:
        bench.clock.now_s += bench.pause_s
        bench.step()


def told(shelf: MemoryShelf) -> list[int]:
    return sorted(wire.decode(decompress(*file)).seq for file in shelf.files.values())


def test_a_message_lies_there_before_its_first_try_and_until_the_server_has_it() -> None:
    shelf = MemoryShelf()
    lying: list[list[int]] = []

    def answer(name: str) -> Outcome:
        lying.append(told(shelf))
        return AGAIN if len(lying) == 1 else KEPT

    bench = Bench(shelf=shelf)
    bench.inbox.answer = answer
    bench.put(0, 1)
    bench.step()
    bench.finish()
    assert lying == [[0, 1], [0, 1], [1]]
    assert shelf.files == {}
    assert bench.sender.lost == {}


def test_what_lies_there_is_plain_whatever_the_server_takes() -> None:
    bench = Bench(*[Outcome("kept", "", wire.Reply(id=1, url="/x", accepts=[*SAMPLED]))] * 9, shelf=MemoryShelf())
    encodings: list[str] = []
    deliver = bench.inbox.deliver

    def noting(name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
        encodings.append(encoding)
        return deliver(name, body, encoding, is_own=is_own)

    bench.inbox.deliver = noting  # type: ignore[method-assign]
    for seq in range(3):
        bench.put(seq)
        bench.step()
    assert encodings == ["zstd"] * 3


def test_what_is_refused_is_set_aside_and_counted() -> None:
    shelf = MemoryShelf()
    bench = Bench(Outcome("refused", "HTTP 422: no"), shelf=shelf)
    bench.sender.put(testing.message(seq=0, events=[testing.event()]))
    bench.step()
    assert list(shelf.aside.values()) == ["HTTP 422: no"]
    assert bench.sender.lost == {"refused": 1, "events": 1}


def test_what_a_dead_scheduler_left_is_delivered_after_the_own_messages_and_slowly() -> None:
    shelf = left_behind(*range(5))
    bench = Bench(shelf=shelf)
    times: list[float] = []
    bench.inbox.answer = lambda name: (times.append(bench.clock.now_s), KEPT)[1]
    bench.put(10, 11)
    bench.step()
    while bench.pause_s is not None:
        bench.clock.now_s += bench.pause_s
        bench.step()
    assert seqs(bench) == [10, 11, 0, 1, 2, 3, 4]
    assert all(after - before >= DRAIN_S for before, after in pairwise(times[2:]))
    assert (shelf.files, bench.sender.lost) == ({}, {})


def test_nothing_is_taken_from_the_shelf_before_the_server_took_something() -> None:
    shelf = left_behind(0)
    bench = Bench(AGAIN, AGAIN, shelf=shelf)
    bench.put(10)
    bench.step()
    assert told(shelf) == [0, 10]
    bench.finish()
    assert bench.tried[:3] == [bench.tried[0]] * 3


def test_what_the_server_asks_of_another_cluster_is_not_heeded() -> None:
    bench = Bench(KEPT, CLOSE, CLOSE, shelf=left_behind(0, 1))
    bench.put(10)
    bench.step()
    while bench.pause_s is not None:
        bench.clock.now_s += bench.pause_s
        bench.step()
    assert len(bench.inbox.bodies) == 3
    assert bench.replies == []


def test_what_another_cluster_s_message_loses_is_not_told_as_ours() -> None:
    shelf = left_behind(0)
    bench = Bench(KEPT, Outcome("refused", "HTTP 422: no"), shelf=shelf)
    bench.put(10)
    bench.step()
    bench.clock.now_s += DRAIN_S
    bench.step()
    assert len(shelf.aside) == 1
    assert bench.sender.lost == {}


def test_one_of_the_shelf_that_fails_keeps_no_own_message_waiting() -> None:
    shelf = left_behind(0)
    bench = Bench(shelf=shelf)
    bench.inbox.answer = lambda name: AGAIN if name.startswith(OTHER) else KEPT
    for seq in range(10, 13):
        bench.put(seq)
        bench.step()
        bench.clock.now_s += 10.0
        bench.step()
        bench.clock.now_s += 10.0
    assert seqs(bench) == [10, 11, 12]
    assert told(shelf) == [0]
    assert shelf.out == set()


def test_own_messages_that_were_parked_come_back_and_count_as_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.buffer.MAX_MESSAGES", 3)
    shelf = MemoryShelf()
    bench = Bench(*[AGAIN] * 10, jitter=1.0, shelf=shelf)
    for seq in range(10):
        bench.sender.put(testing.message(seq=seq, events=[testing.event(no=seq)]))
        bench.step()
    assert bench.n_waiting == 3
    assert told(shelf) == [*range(10)]
    bench.outcomes = [KEPT, KEPT, KEPT, KEPT, Outcome("refused", "HTTP 422: no"), CLOSE]
    go_on(bench)
    assert bench.sender.lost == {"refused": 1, "events": 1}
    assert len(shelf.files) > 1, "whoever refuses one is asked again once it took another"
    bench.put(10)
    bench.step()
    go_on(bench)
    assert sorted(seqs(bench)) == sorted({*range(11)} - {int(name.rpartition("-")[2]) for name in shelf.aside})
    assert bench.replies == [CLOSE.reply]
    assert shelf.files == {}


def test_what_lies_on_the_shelf_when_the_scheduler_closes_is_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    shelf = MemoryShelf(n_most=2)
    sender, inbox = started(lambda _: AGAIN, shelf=shelf)
    for seq in range(3):
        sender.put(testing.message(seq=seq, events=[testing.event()]))
    sender.close()
    sender._thread.join(20)
    assert not sender._thread.is_alive()
    assert inbox.bodies == []
    assert sender.lost == {"closing": 1, "events": 1}, "the one for which there was no room"
    assert shelf.is_closed
    assert told(shelf) == [0, 1]
    assert caplog.records[-1].getMessage() == (
        "daskscope: 1 messages could not be delivered before the scheduler closed, 1 events."
    )


def test_a_close_takes_nothing_from_the_shelf() -> None:
    shelf = left_behind(*range(3))
    sender, inbox = started(lambda _: KEPT, shelf=shelf)
    sender._pace.close()
    sender.put(testing.message(seq=10))
    sender.close()
    assert inbox.take().seq == 10
    assert told(shelf) == [0, 1, 2]


def test_a_message_in_parts_lies_there_in_parts_and_nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = MemoryShelf()
    bench = Bench(Outcome("split", "HTTP 413"), shelf=shelf)
    monkeypatch.setattr("daskscope.sender.LEAST_BODY_BYTES", 0)
    bench.put(3)
    bench.step()
    (itself,) = [name for name in shelf.files if "-p" not in name]
    assert set(shelf.files) == {itself, f"{itself}-p1"}
    bench.finish()
    assert [wire.decode(body).part for body in bench.inbox.bodies] == [1, 0]
    assert shelf.files == {}


def test_what_is_made_while_a_server_hangs_lies_there_at_once_and_is_not_lost_at_a_close() -> None:
    hangs, release, shelf = threading.Event(), threading.Event(), Noticing()

    def black_hole(name: str) -> Outcome:
        hangs.set()
        release.wait(30)
        return KEPT

    sender, inbox = started(black_hole, shelf=shelf)
    try:
        sender.put(testing.message(seq=0))
        assert hangs.wait(20)
        sender.put(testing.message(seq=1))
        assert shelf.has(2)
        sender.put(testing.message(seq=2, phase="closed"))
        assert shelf.has(3)
        sender.close(timeout_s=0.01)
        assert sender.lost == {}
    finally:
        release.set()
        sender._thread.join(20)
    assert [inbox.take().seq for _ in range(3)] == [0, 1, 2]
    assert shelf.is_closed


class Noticing(MemoryShelf):
    """Tells when so many lie there."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()

    def keep(self, parcel: Parcel) -> bool:
        with self._changed:
            self._changed.notify_all()
            return super().keep(parcel)

    def has(self, n: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: len(self.files) == n, timeout=20)


def test_a_transport_that_raises_in_the_courier_s_thread_costs_that_message_alone() -> None:
    calls: list[str] = []

    def raises_once(name: str) -> Outcome:
        calls.append(name)
        if len(calls) == 1:
            raise ZeroDivisionError("a fault of ours")
        return KEPT

    shelf = MemoryShelf()
    sender, inbox = started(raises_once, shelf=shelf)
    sender.put(testing.message(seq=0))
    sender.put(testing.message(seq=1))
    assert inbox.take().seq == 1
    sender.close()
    assert sender.lost == {"failed": 1}
    assert list(shelf.aside.values()) == ["ZeroDivisionError: a fault of ours"]


def real(folder: Path) -> Callable[[], Shelf]:
    return lambda: WriteAhead(folder / "spool")


def test_with_the_real_shelf_the_next_sender_delivers_what_a_killed_one_left(tmp_path: Path) -> None:
    make = real(tmp_path)
    first_shelf = make()
    killed = Bench(*[AGAIN] * 99, shelf=first_shelf)
    killed.put(*range(5))
    killed.step()
    first_shelf.close()  # what the end of its process does: its lock is free
    shelf = make()
    bench = Bench(shelf=shelf)
    bench.sender.put(testing.message(seq=0, cluster=OTHER))
    bench.step()
    while bench.pause_s is not None:
        bench.clock.now_s += bench.pause_s
        bench.step()
    shelf.close()
    assert seqs(bench) == [0, 0, 1, 2, 3, 4]
    assert not list(tmp_path.rglob("*.msg"))
    assert bench.sender.lost == {}


def test_whoever_refuses_all_is_not_asked_for_all_that_lies_there() -> None:
    shelf = left_behind(*range(50))
    bench = Bench(KEPT, shelf=shelf)
    bench.put(100)
    bench.step()
    bench.inbox.answer = lambda _: Outcome("refused", "HTTP 404: no reason given")
    go_on(bench)
    for seq in range(101, 120):
        bench.put(seq)
        bench.step()
        go_on(bench)
    assert len([name for name in shelf.files if name.startswith(OTHER)]) == 49
    assert len([name for name in shelf.aside if name.startswith(OTHER)]) == 1
    bench.inbox.answer = lambda _: KEPT
    bench.put(120)
    bench.step()
    go_on(bench)
    assert shelf.files == {}


def test_of_what_others_made_no_time_of_this_clock_is_told() -> None:
    shelf = left_behind(0)
    bench = Bench(shelf=shelf)
    told_as: dict[str, bool] = {}
    deliver = bench.inbox.deliver

    def noting(name: str, body: bytes, encoding: Encoding, *, is_own: bool) -> Outcome:
        told_as[name] = is_own
        return deliver(name, body, encoding, is_own=is_own)

    bench.inbox.deliver = noting  # type: ignore[method-assign]
    bench.put(10)
    bench.step()
    go_on(bench)
    assert {name.startswith(OTHER): is_own for name, is_own in told_as.items()} == {True: False, False: True}


@pytest.mark.parametrize("is_broken", [False, True])
def test_what_is_divided_on_a_full_disk_is_in_memory_alone_and_arrives(
    monkeypatch: pytest.MonkeyPatch, is_broken: bool
) -> None:
    shelf = MemoryShelf()
    bench = Bench(Outcome("split", "HTTP 413"), *[AGAIN] * 6, shelf=shelf)
    texts = [random.Random(n).randbytes(40).hex() for n in range(60)]
    whole = testing.message(seq=0, logs=testing.logs(*({"no": n, "text": text} for n, text in enumerate(texts))))
    bench.sender._pack(whole)
    shelf.is_broken = is_broken
    bench.step()
    alone = [each.part for each in bench.sender._buffer.in_memory_alone()]
    assert alone == ([1, 0] if is_broken else [])
    monkeypatch.setattr("daskscope.buffer.MAX_MESSAGES", 3)
    others = [testing.message(seq=seq) for seq in range(1, 6)]
    for other in others:
        bench.sender.put(other)
        bench.step()
    go_on(bench)
    kept = [wire.decode(body) for body in bench.inbox.bodies]
    assert sorted(line for each in kept for line in each.logs.text) == sorted(texts)
    assert sum(1 + each.merged for each in kept if not each.part) == 6
    assert (shelf.files, bench.sender.lost) == ({}, {})


class Raising(MemoryShelf):
    """A shelf that does not do as it promises."""

    def keep(self, parcel: Parcel) -> bool:
        raise ValueError("embedded null byte")


def test_a_shelf_that_raises_loses_no_message() -> None:
    bench = Bench(shelf=Raising())
    bench.put(*range(5))
    bench.step()
    bench.finish()
    assert seqs(bench) == [*range(5)]
    assert bench.sender.lost == {}

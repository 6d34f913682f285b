"""A topic's longer memory: Dask's own length whatever the sizes, and beyond it no more bytes than all topics share."""

import copy
import pickle
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from distributed import Scheduler

from bench.held import size_of
from daskscope.collect import history as module
from daskscope.collect.events import EventReader
from daskscope.collect.history import HISTORY, MAX_BYTES, Excess, History
from daskscope.collect.topics import Topics
from tests.plugin.rig import quiet_scheduler

MIB = 1 << 20
OWN = 1_000


def large(n: int) -> dict[str, Any]:
    """20 kB, no two the same object."""
    return {"n": n, "blob": f"{n}" + "x" * 20_000}


@pytest.mark.asyncio
async def test_large_events_that_nobody_reads_yet_are_bounded_in_bytes_and_counted() -> None:
    async with quiet_scheduler() as scheduler:
        topics = Topics(scheduler)
        reader = EventReader(topics, ["mine", "other"])
        reader.read()
        topics.start()
        for n in range(4_500):
            for topic in ("mine", "other"):
                scheduler.log_event(topic, large(n))
        kept = [topics._find(topic) or (0, deque[Any]()) for topic in ("mine", "other")]
        n_kept = sum(len(messages) for _, messages in kept)
        assert n_kept >= 2 * OWN
        held = sum(size_of(dict(message)) for _, messages in kept for _, message in list(messages)[:-OWN])
        assert held <= 32 * MIB
        assert reader.is_pressing(), "so it is read before its time"
        n_told = 0
        while True:
            n_told += len(reader.read())
            topics.forget()
            if not reader.behind:
                break
        assert n_told == n_kept
        assert n_told + reader.lost["events"] == 9_000, "what was dropped is counted to the last"
        assert topics.excess_bytes == 0
        topics.close()


@pytest.mark.asyncio
async def test_small_events_are_kept_to_the_last() -> None:
    async with quiet_scheduler() as scheduler:
        topics = Topics(scheduler)
        place = topics.follow("mine")
        topics.start()
        for n in range(HISTORY):
            scheduler.log_event("mine", {"action": "step", "n": n, "note": "x" * 100})
        assert sum(1 for _ in topics.read(place)) == HISTORY
        assert place.n_missed == 0
        topics.close()


@pytest.mark.asyncio
async def test_what_dask_let_go_of_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1 * MIB)
    async with quiet_scheduler() as scheduler:
        topics = Topics(scheduler)
        topics.follow("gone")
        topics.follow("mine")
        topics.start()
        fill(scheduler, "gone", OWN + 200)
        assert topics.excess_bytes > 900_000
        del topics._known()["gone"]
        topics.forget()
        assert topics.excess_bytes == 0
        topics.close()


def fill(scheduler: Scheduler, topic: str, n: int) -> None:
    for number in range(n):
        scheduler.log_event(topic, large(number))


def test_as_many_as_dask_keeps_stay_whatever_their_size() -> None:
    excess = Excess()
    memory = History([], 10, excess)
    for n in range(15):
        memory.append((0.0, "x" * MAX_BYTES + str(n)))
    assert len(memory) == 10
    assert [message[-2:] for _, message in memory][-1] == "14"
    assert excess.n_bytes < 100


def test_its_books_are_right_whatever_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HISTORY", 30)
    excess = Excess()
    memory = History([(0.0, "first")], 10, excess)
    for n in range(100):
        memory.append((0.0, "x" * n))
        assert excess.n_bytes >= 0
        assert len(memory) == len(memory._sizes) <= 30
    for _ in range(25):
        memory.popleft()
    assert (len(memory), memory.excess_bytes()) == (5, 0)
    memory.clear()
    assert len(memory._sizes) == 0
    with pytest.raises(IndexError):
        memory.popleft()


class Changing(dict[Any, Any]):
    """Another thread is at it, or its methods are the user's."""

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("changed size during iteration")

    __len__ = items = __iter__  # type: ignore[assignment]  # whatever is called raises


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
STRANGE = (Changing(), [object(), 1 << 80, {1, 2}, (b"x", None)], ENDLESS, {"a": {"b": {"c": {"d": {"e": "x" * 99}}}}})


@pytest.mark.parametrize("payload", STRANGE)
def test_whatever_is_logged_is_kept_and_sized(payload: Any) -> None:
    memory = History([], 0, excess := Excess())
    memory.append((0.0, payload))
    assert len(memory) == 1
    assert excess.n_bytes > 0


def test_a_sample_of_a_long_list_stands_for_the_rest() -> None:
    blobs = [f"{n}" + "x" * 1_000 for n in range(5_000)]
    memory = History([], 0, excess := Excess())
    memory.append((0.0, blobs))
    assert excess.n_bytes == pytest.approx(size_of(blobs), rel=0.1)


def test_copies_and_pickles_are_the_deque_it_stands_for() -> None:
    memory = History([(1.0, "a"), (2.0, "b")], 10, Excess())
    for taken in (copy.copy(memory), pickle.loads(pickle.dumps(memory))):
        assert (type(taken), taken.maxlen, list(taken)) == (deque, 10, list(memory))

"""Topics read by count: nothing twice, what is missed counted, Dask's own lengths put back."""

from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import dask.config
import pytest
import pytest_asyncio
from distributed import Scheduler

from daskscope.collect.history import HISTORY
from daskscope.collect.topics import Topics
from tests.plugin.rig import quiet_scheduler

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def scheduler() -> AsyncIterator[Scheduler]:
    """One that keeps ten messages of a topic."""
    with dask.config.set({"distributed.admin.low-level-log-length": 10}):
        async with quiet_scheduler() as started:
            yield started


def kept(topics: Topics, topic: str) -> deque[Any]:
    found = topics._find(topic)
    assert found is not None
    return found[1]


def log(scheduler: Scheduler, topic: Any, first: int, last: int) -> None:
    for n in range(first, last):
        scheduler.log_event(topic, n)


async def test_each_reader_reads_each_message_once(scheduler: Scheduler) -> None:
    topics = Topics(scheduler)
    log(scheduler, "mine", 0, 3)
    one, other = topics.follow("mine"), topics.follow("mine")
    assert [message for _, message in topics.read(one)] == [0, 1, 2]
    log(scheduler, "mine", 3, 5)
    assert [message for _, message in topics.read(one)] == [3, 4]
    assert [message for _, message in topics.read(other)] == [0, 1, 2, 3, 4]
    assert not list(topics.read(one))
    assert topics.is_read(one)


async def test_who_stops_goes_on_there(scheduler: Scheduler) -> None:
    topics = Topics(scheduler)
    place = topics.follow("mine")
    log(scheduler, "mine", 0, 5)
    for _, message in topics.read(place):
        if message == 2:
            break
    assert not topics.is_read(place)
    assert [message for _, message in topics.read(place)] == [3, 4]


async def test_without_a_start_dask_s_own_length_counts(scheduler: Scheduler) -> None:
    topics = Topics(scheduler)
    place = topics.follow("mine")
    log(scheduler, "mine", 0, 25)
    assert [message for _, message in topics.read(place)] == list(range(15, 25))
    assert place.n_missed == 15


async def test_a_followed_topic_is_longer_until_it_is_read(scheduler: Scheduler) -> None:
    topics = Topics(scheduler)
    place = topics.follow("mine")
    topics.start()
    log(scheduler, "mine", 0, 500)
    topics.forget()
    assert len(kept(topics, "mine")) == 500, "not read yet"
    assert [message for _, message in topics.read(place)] == list(range(500))
    topics.forget()
    assert [message for _, message in kept(topics, "mine")] == list(range(490, 500))
    assert place.n_missed == 0
    log(scheduler, "mine", 500, 503)
    assert [message for _, message in topics.read(place)] == [500, 501, 502]


async def test_even_the_longer_one_ends_somewhere(scheduler: Scheduler) -> None:
    topics = Topics(scheduler)
    place = topics.follow("mine")
    topics.start()
    log(scheduler, "mine", 0, HISTORY + 7)
    assert sum(1 for _ in topics.read(place)) == HISTORY
    assert place.n_missed == 7


async def test_closing_puts_dask_s_own_lengths_back(scheduler: Scheduler) -> None:
    topics = Topics(scheduler)
    topics.follow("mine")
    topics.follow_every()
    factory = topics._known().default_factory
    topics.start()
    log(scheduler, "mine", 0, 50)
    log(scheduler, "new", 0, 50)
    assert (len(kept(topics, "mine")), len(kept(topics, "new"))) == (50, 50)
    topics.close()
    assert topics._known().default_factory is factory
    for topic in ("mine", "new"):
        assert kept(topics, topic).maxlen == 10
        assert [message for _, message in kept(topics, topic)] == list(range(40, 50))
    log(scheduler, "late", 0, 50)
    assert len(kept(topics, "late")) == 10
    topics.close()


async def test_a_memory_of_somebody_else_s_is_left_alone(scheduler: Scheduler) -> None:
    topics = Topics(scheduler)
    place = topics.follow("mine")
    scheduler.log_event("mine", 0)
    theirs = deque[Any](maxlen=77)
    topics._put("mine", theirs)
    topics.start()
    log(scheduler, "mine", 0, 60)
    assert sum(1 for _ in topics.read(place)) == 60
    topics.forget()
    topics.close()
    assert kept(topics, "mine") is theirs
    assert len(theirs) == 60


@pytest.mark.parametrize("length", [None, HISTORY, 50_000])
async def test_a_scheduler_that_keeps_enough_is_left_as_it_is(length: int | None) -> None:
    with dask.config.set({"distributed.admin.low-level-log-length": length}):
        async with quiet_scheduler() as scheduler:
            topics = Topics(scheduler)
            place = topics.follow("mine")
            topics.follow_every()
            topics.start()
            log(scheduler, "mine", 0, 1500)
            assert kept(topics, "mine").maxlen == length
            assert sum(1 for _ in topics.read(place)) == 1500
            topics.forget()
            topics.close()
            assert len(kept(topics, "mine")) == 1500


async def test_the_latest_come_first(scheduler: Scheduler) -> None:
    topics = Topics(scheduler)
    log(scheduler, "mine", 0, 12)
    assert [message for _, message in topics.latest("mine")] == list(range(11, 1, -1))
    assert list(topics.latest("nobody's")) == []
    assert "nobody's" not in topics.names(), "to look makes no topic"


async def test_who_leaves_holds_nothing_back(scheduler: Scheduler) -> None:
    topics = Topics(scheduler)
    topics.start()
    slow, quick = topics.follow("mine"), topics.follow("mine")
    log(scheduler, "mine", 0, 100)
    list(topics.read(quick))
    topics.forget()
    assert len(kept(topics, "mine")) == 100
    topics.leave(slow)
    topics.forget()
    assert len(kept(topics, "mine")) == 10
    topics.leave(quick)
    assert topics._places == {}

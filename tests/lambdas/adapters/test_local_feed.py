"""The queue's other end, which somebody must play on one machine: ports.QueueFeed on SQLite."""

import itertools
from collections.abc import Iterator, Sequence

import pytest

from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.ports import Buried, Queue, QueueFeed, StoreError
from daskscope_lambdas.testing import FakeClock, race
from daskscope_lambdas.wiring import LocalAdapters, connect


@pytest.fixture
def queue(adapters: LocalAdapters) -> Queue:
    return adapters.queue


@pytest.fixture
def feed(adapters: LocalAdapters) -> QueueFeed:
    return adapters.feed


def bodies(feed: QueueFeed, limit: int = 100, hidden_s: float = 30.0) -> list[str]:
    return [delivery.body for delivery in feed.receive(limit, hidden_s)]


def test_an_empty_queue_answers_at_once(feed: QueueFeed) -> None:
    assert feed.receive(10, 30.0) == []


def test_oldest_first_and_no_more_than_asked(queue: Queue, feed: QueueFeed) -> None:
    for n in range(5):
        queue.send(str(n))
    assert bodies(feed, limit=2) == ["0", "1"]
    assert bodies(feed, limit=2) == ["2", "3"]
    assert bodies(feed, limit=2) == ["4"]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(feed: QueueFeed, limit: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        feed.receive(limit, 30.0)


def test_a_delivery_is_hidden_until_its_time_is_over(queue: Queue, feed: QueueFeed, clock: FakeClock) -> None:
    queue.send("a")
    (first,) = feed.receive(10, 30.0)
    clock.advance(29.9)
    assert feed.receive(10, 30.0) == []
    clock.advance(0.1)
    (second,) = feed.receive(10, 30.0)
    assert (first.receive_count, second.receive_count) == (1, 2)
    assert first.id == second.id
    assert first.receipt != second.receipt


def test_sent_while_the_clock_stood_later_is_received(queue: Queue, feed: QueueFeed, clock: FakeClock) -> None:
    queue.send("a")
    clock.advance(-3600)
    assert bodies(feed) == ["a"]


def test_deleted_is_gone(queue: Queue, feed: QueueFeed, clock: FakeClock) -> None:
    for body in "abc":
        queue.send(body)
    a, _, c = feed.receive(10, 30.0)
    feed.delete([a.receipt, c.receipt])
    feed.delete([a.receipt])
    feed.delete([])
    clock.advance(30)
    assert bodies(feed) == ["b"]


def test_a_receipt_is_good_until_the_next_delivery(queue: Queue, feed: QueueFeed, clock: FakeClock) -> None:
    queue.send("a")
    (late,) = feed.receive(10, 30.0)
    clock.advance(60)
    (current,) = feed.receive(10, 30.0)
    feed.delete([late.receipt])
    feed.bury(late.receipt, "too late")
    clock.advance(60)
    (third,) = feed.receive(10, 30.0)
    clock.advance(60)
    feed.delete([third.receipt])  # hidden no longer, but not delivered again
    feed.delete([current.receipt])
    assert feed.receive(10, 30.0) == []


@pytest.mark.parametrize("receipt", ["", "x", "1", "1.", ".1", "1.1.1", "1.x", "0x1.1", "9" * 40 + ".1"])
def test_a_receipt_that_never_was_is_ignored(queue: Queue, feed: QueueFeed, clock: FakeClock, receipt: str) -> None:
    queue.send("a")
    feed.receive(10, 30.0)
    feed.delete([receipt])
    feed.release([receipt])
    feed.bury(receipt, "no reason")
    assert feed.receive(10, 30.0) == []
    clock.advance(30)
    assert bodies(feed) == ["a"]


def test_released_is_given_again_at_once_and_counted(queue: Queue, feed: QueueFeed) -> None:
    for body in "abc":
        queue.send(body)
    a, _, c = feed.receive(10, 30.0)
    feed.release([a.receipt, c.receipt])
    feed.release([])
    again = feed.receive(10, 30.0)
    assert [(d.body, d.receive_count) for d in again] == [("a", 2), ("c", 2)]
    feed.release([a.receipt])  # no longer good
    assert feed.receive(10, 30.0) == []


def test_released_is_not_gone_and_what_is_gone_stays_so(queue: Queue, feed: QueueFeed) -> None:
    for body in "ab":
        queue.send(body)
    a, b = feed.receive(10, 30.0)
    feed.delete([a.receipt])
    feed.release([a.receipt, b.receipt])
    feed.delete([b.receipt])  # good until it is delivered again
    assert feed.receive(10, 30.0) == []


def test_buried_never_comes_back_by_itself_and_is_kept_with_the_reason(
    queue: Queue, feed: QueueFeed, adapters: LocalAdapters, clock: FakeClock
) -> None:
    queue.send("bad")
    queue.send("good")
    bad, _ = feed.receive(10, 30.0)
    feed.bury(bad.receipt, "no envelope")
    feed.bury(bad.receipt, "again")
    at = clock.now()
    clock.advance(30)
    assert bodies(feed) == ["good"]
    assert [*adapters.dead_letters.list()] == [Buried(body="bad", reason="no envelope", buried_at=at)]


def test_a_deleted_messages_receipt_does_not_fit_a_later_one(queue: Queue, feed: QueueFeed, clock: FakeClock) -> None:
    queue.send("first")
    (first,) = feed.receive(10, 30.0)
    feed.delete([first.receipt])
    queue.send("second")
    (second,) = feed.receive(10, 30.0)
    assert second.id != first.id
    feed.delete([first.receipt])
    clock.advance(30)
    assert bodies(feed) == ["second"]


@pytest.fixture
def worlds(env: LocalEnv, clock: FakeClock) -> Iterator[Sequence[LocalAdapters]]:
    """As many processes would have it: adapters of their own over the same file."""
    made = [connect(env, clock) for _ in range(16)]
    yield made
    for each in made:
        each.close()


def test_none_is_lost_and_none_delivered_twice_among_racing_senders_and_receivers(
    worlds: Sequence[LocalAdapters],
) -> None:

    def work(n: int) -> list[str]:
        for m in range(3):
            worlds[n].queue.send(f"{n}/{m}")
        return bodies(worlds[n].feed, limit=2)

    outcomes = race(16, work)
    assert not [outcome for outcome in outcomes if isinstance(outcome, StoreError)]
    received = [body for outcome in outcomes if not isinstance(outcome, StoreError) for body in outcome]
    received += bodies(worlds[0].feed)
    assert sorted(received) == sorted(f"{n}/{m}" for n, m in itertools.product(range(16), range(3)))

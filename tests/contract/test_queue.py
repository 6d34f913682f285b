from collections.abc import Callable

import pytest

from daskscope_lambdas.ports import MAX_QUEUED_BYTES, Queue
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters

Queued = Callable[[], list[str]]


@pytest.mark.parametrize(
    "body",
    ["0", "text", "".join(map(chr, range(0x20, 0x7F))), "x" * MAX_QUEUED_BYTES],
    ids=["short", "text", "all", "longest"],
)
def test_what_was_sent_is_in_the_queue(queue: Queue, queued: Queued, body: str) -> None:
    queue.send(body)
    assert queued() == [body]
    assert queued() == []


def test_the_same_twice_is_two_messages(queue: Queue, queued: Queued) -> None:
    queue.send("a")
    queue.send("a")
    assert queued() == ["a", "a"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "without a body"),
        ("x" * (MAX_QUEUED_BYTES + 1), "too long for the queue"),
        *((body, "printable ASCII") for body in ("ä", "a\n", "a\0", "\x7f", "\U0001f40d", "\ud800")),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_no_queue_takes_is_refused(queue: Queue, queued: Queued, body: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        queue.send(body)
    assert queued() == []


def test_none_is_lost_among_racing_senders(connect_again: Callable[[], Adapters], queued: Queued) -> None:
    worlds = [connect_again() for _ in range(32)]
    assert race(32, lambda n: worlds[n].queue.send(str(n))) == [None] * 32
    assert sorted(queued()) == sorted(str(n) for n in range(32))


def test_what_is_done_does_not_come_again(
    queue: Queue, delivered: Callable[[], dict[str, str]], queued: Queued
) -> None:
    every = [f"{n:02}" for n in range(25)]
    for body in every:
        queue.send(body)
    receipts = delivered()
    assert sorted(receipts) == every
    for _ in range(2):
        queue.delete([receipts[body] for body in every[:23]])
    queue.delete([])
    assert sorted(queued()) == every[23:]

"""What the queue gave up on: ports.DeadLetters."""

from collections.abc import Callable, Iterator

import pytest

from daskscope_lambdas.ports import DeadLetters, StoreError
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters

Queued = Callable[[], list[str]]
Bury = Callable[[str], None]


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator's queues lie on one machine."""
    monkeypatch.setattr("daskscope_lambdas.adapters.aws.dead_letters._WAIT_S", 0)


@pytest.fixture
def dead_letters(world: Adapters) -> DeadLetters:
    return world.dead_letters


def bodies(dead_letters: DeadLetters) -> list[str]:
    return sorted(letter.body for letter in dead_letters.list())


def test_at_first_there_are_none(dead_letters: DeadLetters, queued: Queued) -> None:
    assert bodies(dead_letters) == []
    assert dead_letters.send_back(lambda _: True) == 0
    assert queued() == []


def test_all_are_listed_however_many_and_whoever_asks_again(dead_letters: DeadLetters, bury: Bury) -> None:
    every = [f"{n:03}" for n in range(60)]
    for body in every:
        bury(body)
    assert bodies(dead_letters) == every
    assert bodies(dead_letters) == every


def test_who_stops_looking_leaves_all_of_them(dead_letters: DeadLetters, bury: Bury) -> None:
    for body in "abcde":
        bury(body)
    looked: Iterator[object] = dead_letters.list()
    next(looked)
    del looked
    assert bodies(dead_letters) == [*"abcde"]


def test_sent_back_is_in_the_queue_and_nowhere_else(dead_letters: DeadLetters, bury: Bury, queued: Queued) -> None:
    every = [f"{n:03}" for n in range(60)]
    for body in every:
        bury(body)
    assert dead_letters.send_back(lambda _: True) == 60
    assert bodies(dead_letters) == []
    assert sorted(queued()) == every


def test_who_is_not_chosen_stays(dead_letters: DeadLetters, bury: Bury, queued: Queued) -> None:
    for n in range(25):
        bury(f"{n:03}")
    seen: list[str] = []

    def chosen(body: str) -> bool:
        seen.append(body)
        return body.endswith("3")

    assert dead_letters.send_back(chosen) == 3
    assert sorted(seen) == [f"{n:03}" for n in range(25)], "each is asked about once"
    assert sorted(queued()) == ["003", "013", "023"]
    assert bodies(dead_letters) == [f"{n:03}" for n in range(25) if n % 10 != 3]


def test_the_same_twice_is_two_letters(dead_letters: DeadLetters, bury: Bury, queued: Queued) -> None:
    bury("a")
    bury("a")
    assert bodies(dead_letters) == ["a", "a"]
    assert dead_letters.send_back(lambda _: True) == 2
    assert queued() == ["a", "a"]


def test_what_dies_while_others_are_sent_back_is_left_for_the_next_time(
    dead_letters: DeadLetters, bury: Bury, queued: Queued
) -> None:
    """Else who sends back what dies at once would never end."""
    bury("a")
    bury("b")
    died: list[str] = []

    def chosen(_: str) -> bool:
        if not died:
            died.append("c")
            bury("c")
        return True

    assert dead_letters.send_back(chosen) in (2, 3)
    assert set(queued()) | set(bodies(dead_letters)) == {"a", "b", "c"}


def test_racing_senders_send_each_at_least_once(
    connect_again: Callable[[], Adapters], bury: Bury, queued: Queued
) -> None:
    every = [f"{n:03}" for n in range(30)]
    for body in every:
        bury(body)
    worlds = [connect_again() for _ in range(8)]
    sent = race(8, lambda n: worlds[n].dead_letters.send_back(lambda _: True))
    assert not [each for each in sent if isinstance(each, StoreError)]
    assert sorted(set(queued())) == every
    assert bodies(worlds[0].dead_letters) == []

"""Lines: bounded in rate, length and number, exact in what was dropped, and never in the way of whoever logs."""

from __future__ import annotations

import logging
import os
import sys
import threading
import weakref
from typing import Any

import pytest

from daskscope.agent import lines as module
from daskscope.agent.lines import (
    BURST,
    PRICE_CHARACTERS,
    RATE_PER_S,
    TAKE_CHARACTERS,
    TAKE_LINES,
    Lines,
)  # fmt: skip
from daskscope.agent.texts import MAX_TEXT, text_of


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def woken() -> list[bool]:
    return []


@pytest.fixture
def lines(clock: Clock, woken: list[bool]) -> Lines:
    return Lines(woken.append, monotonic=clock)


def record(msg: Any = "text", *args: Any, level: int = logging.WARNING, name: str = "mine", **more: Any
           ) -> logging.LogRecord:  # fmt: skip
    made = logging.LogRecord(name, level, "file.py", 1, msg, args, more.pop("exc_info", None))
    made.created = 1_700_000_000.25
    for key, value in more.items():
        setattr(made, key, value)
    return made


def test_a_record_becomes_a_line(lines: Lines, woken: list[bool]) -> None:
    lines.hear(record("a %s", "b", level=logging.ERROR))
    lines.hear(record("c", level=logging.INFO))
    assert lines.take() == ([(1_700_000_000_250, 40, "mine", "a b", 0), (1_700_000_000_250, 20, "mine", "c", 0)], 0)
    assert woken == [True, False], "from WARNING on it is urgent"
    assert lines.take() == ([], 0)


def test_a_burst_is_bounded_and_what_is_dropped_is_told_with_the_next_line(lines: Lines, clock: Clock) -> None:
    for n in range(BURST + 70):
        lines.hear(record("%d", n))
    clock.now_s += 2 / RATE_PER_S
    for n in range(3):
        lines.hear(record("later %d", n))
    taken, dropped = lines.take()
    assert dropped == 0, "more is waiting"
    more, dropped = lines.take()
    assert [line[3] for line in more] == ["later 0", "later 1"]
    assert [line[4] for line in taken + more] == [0] * BURST + [70, 0]
    assert dropped == 1, "the last of them has no line to be told with"
    assert lines.take() == ([], 0)


def test_a_long_line_counts_as_several(lines: Lines) -> None:
    for _ in range(BURST):
        lines.hear(record("x" * 9 * PRICE_CHARACTERS))
    n_taken = n_dropped = 0
    while True:
        taken, dropped = lines.take()
        n_dropped += dropped + sum(line[4] for line in taken)
        if not taken:
            break
        n_taken += len(taken)
    assert n_taken == BURST / 10
    assert n_taken + n_dropped == BURST


def test_no_take_is_larger_than_a_bound(lines: Lines) -> None:
    for _ in range(20):
        lines.hear(record("x" * MAX_TEXT))
    taken, _ = lines.take()
    assert sum(len(line[3]) for line in taken) < TAKE_CHARACTERS + MAX_TEXT
    assert len(taken) < 20 <= TAKE_LINES


def test_while_nobody_takes_the_oldest_give_way_and_are_counted(clock: Clock) -> None:
    lines = Lines(lambda _: None, max_lines=10, monotonic=clock)
    for n in range(BURST + 5):
        lines.hear(record("%d", n))
    clock.now_s += 1 / RATE_PER_S
    lines.hear(record("last"))
    taken, dropped = lines.take()
    assert [line[3] for line in taken] == [*map(str, range(BURST - 9, BURST)), "last"]
    assert len(taken) + dropped + sum(line[4] for line in taken) == BURST + 6
    assert taken[0][4] == BURST - 9
    assert taken[-1][4] == 5


def test_while_nobody_takes_their_text_is_bounded_too(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHARACTERS", 1_000)
    lines = Lines(lambda _: None, monotonic=clock)
    for n in range(10):
        lines.hear(record(f"{n}" + "x" * 299))
    taken, dropped = lines.take()
    assert [line[3][0] for line in taken] == ["7", "8", "9"]
    assert (sum(line[4] for line in taken), dropped) == (7, 0)
    assert lines._n_characters == 0


def test_lines_that_could_not_be_sent_are_told_with_the_next(lines: Lines) -> None:
    lines.lose(7)
    lines.hear(record())
    ((*_, dropped),), after = lines.take()
    assert (dropped, after) == (7, 0)


def test_a_long_text_is_cut_and_says_by_how_much() -> None:
    assert text_of(record("x" * (MAX_TEXT + 5))) == "x" * MAX_TEXT + "... (5 more characters)"
    assert text_of(record("x" * MAX_TEXT)) == "x" * MAX_TEXT


def test_a_traceback_goes_along_and_the_record_stays_as_it_was() -> None:
    try:
        raise ValueError("inner")
    except ValueError:
        made = record("failed", exc_info=sys.exc_info())
    before = dict(vars(made))
    text = text_of(made)
    assert text.startswith("failed\nTraceback (most recent call last):\n")
    assert text.endswith("\nValueError: inner")
    assert vars(made) == before, "others format it their own way"
    assert text_of(record("failed", exc_text="T", stack_info="S")) == "failed\nT\nS"


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (record("%d items", "many"), "(cannot be formatted: TypeError) %d items"),
        (record("%s and %s", 1), "(cannot be formatted: TypeError) %s and %s"),
        (record("%s", Unprintable()), "(cannot be formatted: RuntimeError) %s"),
        (record(Unprintable()), "(cannot be formatted: RuntimeError) Unprintable"),
        (record({"a": 1}), "{'a': 1}"),
        (record("lone \udcff"), "lone ?"),
        (record("größer"), "größer"),
    ],
)
def test_what_cannot_be_formatted_is_told_as_such(made: logging.LogRecord, text: str) -> None:
    assert text_of(made) == text


def test_an_exception_without_a_text_is_told(lines: Lines) -> None:
    lines.hear(record("failed", exc_info=(UnprintableError, UnprintableError(), None)))
    ((_, _, _, text, _),), _ = lines.take()
    assert text.startswith("failed\n")
    assert "UnprintableError" in text


def test_what_logs_while_it_is_logged_is_counted_and_ends() -> None:
    lines = Lines(lambda _: None)

    class Talkative:
        def __str__(self) -> str:
            lines.hear(record("from within"))
            return "outer"

    lines.hear(record("%s", Talkative()))
    lines.hear(record("next"))
    taken, _ = lines.take()
    assert [(line[3], line[4]) for line in taken] == [("outer", 1), ("next", 0)]


def test_a_finalizer_that_logs_while_the_lock_is_held_waits_for_nobody() -> None:
    lines = Lines(lambda _: None)
    lines.hear(record("one"))

    class Loud(list[Any]):
        """Stands for garbage that is collected in the middle of a take."""

        def __bool__(self) -> bool:
            lines.hear(record("finalizer"))
            return len(self) > 0

        def popleft(self) -> Any:
            return self.pop(0)

    lines._waiting = Loud(lines._waiting)  # type: ignore[assignment]
    taken, _ = lines.take()
    assert [line[3] for line in taken] == ["one"]


def test_what_is_logged_about_sending_becomes_no_line_and_is_not_counted(lines: Lines, woken: list[bool]) -> None:
    with lines.quiet():
        lines.hear(record("connection lost"))
    assert (lines.take(), woken) == (([], 0), [])
    lines.hear(record("heard again"))
    assert len(lines.take()[0]) == 1


@pytest.mark.parametrize("more", [{"name": "distributed.daskscope"}, {"name": "distributed.daskscope.x"},
                                  {"threadName": "daskscope-sender", "name": "httpx"}])  # fmt: skip
def test_what_we_log_ourselves_is_no_line(lines: Lines, more: dict[str, Any]) -> None:
    lines.hear(record(**more))
    assert lines.take() == ([], 0)


def test_in_a_forked_child_nothing_happens(lines: Lines, woken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    lines.hear(record())
    assert (lines.take(), woken) == (([], 0), [])


def test_lines_of_many_threads_are_all_counted() -> None:
    lines = Lines(lambda _: None)

    def talk() -> None:
        for _ in range(500):
            lines.hear(record())

    threads = [threading.Thread(target=talk) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    n_lines = n_dropped = 0
    while True:
        taken, dropped = lines.take()
        n_lines, n_dropped = n_lines + len(taken), n_dropped + dropped + sum(line[4] for line in taken)
        if not taken:
            break
    assert n_lines + n_dropped == 4_000
    assert n_lines >= BURST


def test_earlier_records_are_taken_by_level_and_time(lines: Lines) -> None:
    earlier = [record("low", level=logging.INFO), record("early"), record("late", created=1_800_000_000.0)]
    lines.hear_earlier(earlier, logging.WARNING, 1_750_000_000.0)
    assert [line[3] for line in lines.take()[0]] == ["early"]


def test_nobody_to_wake_is_no_loss(clock: Clock) -> None:
    def fail(_: bool) -> None:
        raise RuntimeError("Event loop is closed")

    lines = Lines(fail, monotonic=clock)
    lines.hear(record())
    taken, dropped = lines.take()
    assert (len(taken), dropped) == (1, 0)


@pytest.mark.parametrize("more", [{"created": float("nan")}, {"levelno": "high"}, {"name": Unprintable()}])
def test_a_record_that_is_none_is_counted_and_raises_nothing(lines: Lines, more: dict[str, Any]) -> None:
    bad = record()
    vars(bad).update(more)
    lines.hear(bad)
    lines.hear(record("next"))
    assert [(line[3], line[4]) for line in lines.take()[0]] == [("next", 1)]


def test_a_text_that_is_the_user_s_code_is_made_once_for_all_who_hear_it() -> None:
    asked: list[int] = []

    class Counted:
        def __str__(self) -> str:
            asked.append(1)
            return "text"

    first, second = Lines(lambda _: None), Lines(lambda _: None)
    made = record("%s", Counted())
    first.hear(made)
    second.hear(made)
    assert [lines.take()[0][0][3] for lines in (first, second)] == ["text", "text"]
    assert len(asked) == 1
    first.hear(record("%s", Counted()))
    assert len(asked) == 2
    there = weakref.ref(made)
    del made
    assert there() is None, "a record is not kept: it may hold frames, and they the user's data"

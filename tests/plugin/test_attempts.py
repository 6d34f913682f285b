"""The guard around readers: what raises is counted, told once a minute, and given up at last."""

import logging

import pytest

from daskscope.attempts import OFF_AFTER, QUIET_S, Attempts
from tests.plugin.rig import Clock, fails


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        r.getMessage() for r in caplog.records if r.name == "distributed.daskscope" and r.levelno >= logging.WARNING
    ]


def test_warnings_come_again_after_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    attempt = Attempts(clock)
    for _ in range(130):  # two minutes and ten seconds
        attempt.complain("x", RuntimeError("y"))
        attempt("z", None, fails)
        clock.now_s += 1
    assert len(warnings(caplog)) == 3


def test_a_part_that_failed_a_hundred_times_in_a_row_is_asked_no_more(caplog: pytest.LogCaptureFixture) -> None:
    clock, asked = Clock(), list[str]()
    attempt = Attempts(clock)

    def broken() -> str:
        asked.append("x")
        raise RuntimeError("y")

    for n in range(OFF_AFTER + 50):
        assert attempt("x", "instead", broken, "read") == "instead"
        assert attempt("x", "instead", lambda: "found", "look") == ("found" if n < OFF_AFTER - 1 else "instead")
        attempt.speak()
    assert len(asked) == OFF_AFTER
    assert attempt.lost == {"unreadable-x": OFF_AFTER, "off-x": 1}
    assert len(warnings(caplog)) == 1, "once a minute over all"
    clock.now_s += QUIET_S
    attempt.speak()
    assert warnings(caplog)[1:] == [
        "daskscope does not read x any more: that failed 100 times in a row. The workload goes on."
    ]
    clock.now_s += 10 * QUIET_S
    attempt.speak()
    assert len(warnings(caplog)) == 2, "and no more of it"


def test_a_part_that_works_now_and_then_is_asked_for_ever() -> None:
    attempt = Attempts(Clock())
    for n in range(10 * OFF_AFTER):
        attempt("x", None, fails if n % OFF_AFTER else int)
    assert attempt.lost == {"unreadable-x": 10 * (OFF_AFTER - 1)}


class UntoldError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even its text")


class Refusing(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError("no log today")


def test_neither_a_text_nor_a_handler_that_fails_comes_through() -> None:
    def untold() -> None:
        raise UntoldError

    handler = Refusing()
    logging.getLogger("distributed.daskscope").addHandler(handler)
    try:
        assert Attempts(Clock())("x", 7, untold) == 7
    finally:
        logging.getLogger("distributed.daskscope").removeHandler(handler)

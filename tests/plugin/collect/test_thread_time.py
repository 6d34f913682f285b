"""Thread time offered, beside sums made by hand."""

from daskscope.collect.thread_time import ThreadTime


def test_between_moments_of_a_history_that_grows() -> None:
    history = [(100.0, 0), (110.0, 4)]
    offered = ThreadTime(history)
    assert offered.between(0, 105) == 0
    assert offered.between(100, 120) == 4 * 10
    assert offered.between(112, 115) == 4 * 3
    history += [(120.0, 10), (130.0, 2)]
    assert offered.between(105, 140) == 4 * 10 + 10 * 10 + 2 * 10
    assert offered.between(125, 126) == 10


def test_times_the_wrong_way_round_are_no_time() -> None:
    assert ThreadTime([(100.0, 4)]).between(120, 110) == 0


def test_a_clock_that_was_set_back_takes_nothing_away() -> None:
    offered = ThreadTime([(100.0, 4), (90.0, 8), (110.0, 1)])
    assert offered.between(100, 110) == 8 * 10
    assert offered.between(0, 112) == 8 * 10 + 2


def test_without_a_history_nothing_was_offered() -> None:
    assert ThreadTime([]).between(0, 100) == 0

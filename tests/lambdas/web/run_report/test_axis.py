from datetime import UTC, datetime, timedelta

from daskscope_lambdas.web.run_report.axis import HEIGHT, WIDTH, Axis

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
AXIS = Axis(START, START + timedelta(seconds=100))


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_times_stand_between_both_ends():
    assert [AXIS.place(at(s)) for s in (-5, 0, 25, 100, 400)] == [0, 0, 250, WIDTH, WIDTH]


def test_an_axis_without_length_has_one_place():
    assert Axis(START, START).place(START) == 0


def test_a_bar_is_seen_however_short_it_is():
    assert AXIS.bar(at(10), at(30)) == "M100 0h200v6h-200"
    assert AXIS.bar(at(100), at(100)) == f"M{WIDTH - 3} 0h3v6h-3"
    assert AXIS.bar(at(90), None) == "M900 0h100v6h-100", "what runs lasts to the end"
    assert AXIS.bar(None, at(3)) == ""
    assert AXIS.bar(at(60), at(50)) == "M600 0h3v6h-3", "the two ends are told by two clocks"


def test_a_line_goes_on_until_its_value_changes():
    times = [at(s) for s in (0, 10, 20, 30)]
    assert AXIS.line(times, [0, 0, 5, 5], 10) == f"M0 {HEIGHT - 1}h200v-29H300"
    assert AXIS.line(times[:1], [1], 10) == ""
    assert AXIS.line(times, [0, 0, 0, 0], 0) == ""

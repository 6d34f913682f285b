from collections.abc import Callable
from datetime import date

import pytest

from daskscope_lambdas.ports import Conflict, Seals
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters

MONDAY, TUESDAY, SUNDAY = date(2026, 11, 16), date(2026, 11, 17), date(2026, 11, 22)


def test_at_first_no_day_is_sealed(seals: Seals) -> None:
    assert seals.boundary() is None


def test_the_boundary_moves_from_where_it_is(seals: Seals) -> None:
    seals.advance(None, MONDAY)
    assert seals.boundary() == MONDAY
    seals.advance(MONDAY, SUNDAY)
    assert seals.boundary() == SUNDAY


@pytest.mark.parametrize(("expected", "day"), [(None, SUNDAY), (MONDAY, SUNDAY), (None, MONDAY)])
def test_from_elsewhere_it_does_not_move(seals: Seals, expected: date | None, day: date) -> None:
    seals.advance(None, TUESDAY)
    with pytest.raises(Conflict):
        seals.advance(expected, day)
    assert seals.boundary() == TUESDAY


def test_before_the_first_day_nothing_else_is_expected(seals: Seals) -> None:
    with pytest.raises(Conflict):
        seals.advance(MONDAY, TUESDAY)
    assert seals.boundary() is None


@pytest.mark.parametrize("day", [TUESDAY, MONDAY])
def test_it_never_goes_back(seals: Seals, day: date) -> None:
    seals.advance(None, TUESDAY)
    with pytest.raises(ValueError, match="forward"):
        seals.advance(TUESDAY, day)
    assert seals.boundary() == TUESDAY


@pytest.mark.parametrize("start", [None, MONDAY])
def test_one_of_many_racing_movers_wins(connect_again: Callable[[], Adapters], start: date | None) -> None:
    every = [connect_again().seals for _ in range(32)]
    if start:
        every[0].advance(None, start)
    outcomes = race(32, lambda n: every[n].advance(start, date(2027, 1, 1 + n % 31)))
    winners = [n for n, outcome in enumerate(outcomes) if outcome is None]
    assert len(winners) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 31
    assert every[0].boundary() == date(2027, 1, 1 + winners[0] % 31)

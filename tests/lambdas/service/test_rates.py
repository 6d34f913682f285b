import pytest

from daskscope_lambdas.service.rates import Rates, TooOftenError
from daskscope_lambdas.testing import FakeClock, race


def wait_s(rates: Rates, address: str) -> float:
    with pytest.raises(TooOftenError) as caught:
        rates.count(address)
    return caught.value.wait_s


def test_one_address_may_ask_so_often_in_its_time(clock: FakeClock) -> None:
    rates = Rates(clock, 100, 600.0, 2, 60.0)
    rates.count("a")
    clock.advance(20)
    rates.count("a")
    assert wait_s(rates, "a") == 40
    rates.count("b")
    clock.advance(39)
    assert wait_s(rates, "a") == 1
    clock.advance(1)
    rates.count("a")
    assert wait_s(rates, "a") == 20


def test_all_together_may_ask_so_often_whatever_their_addresses(clock: FakeClock) -> None:
    rates = Rates(clock, 3, 600.0, 2, 60.0)
    for address in "abc":
        rates.count(address)
        clock.advance(100)
    assert wait_s(rates, "d") == 300
    clock.advance(300)
    rates.count("d")
    assert wait_s(rates, "e") == 100, "who was refused is not counted"


def test_of_many_at_once_so_many_pass(clock: FakeClock) -> None:
    rates = Rates(clock, 5, 600.0, 9, 60.0)

    def passes(_: int) -> bool:
        try:
            rates.count("a")
        except TooOftenError:
            return False
        return True

    assert race(20, passes).count(True) == 5

"""How fast memory grows."""

import pytest

from daskscope import wire
from daskscope.collect.growth import MIB, N_READS, Growth, slope


def columns(**memory_mib: int) -> wire.Workers:
    return wire.Workers(address=list(memory_mib), memory_mib=list(memory_mib.values()))


def test_the_last_reads_of_one_worker() -> None:
    growth = Growth()
    for n in range(N_READS + 3):
        growth.add(10.0 * n, columns(a=n, b=100 - n) if n < 8 else columns(b=100 - n))
    assert growth.of("a") == [(10.0 * n, n * MIB) for n in range(3, 8)]
    assert slope(growth.of("a")) == round(MIB / 10)
    assert slope(growth.of("b")) == -round(MIB / 10)
    assert growth.of("c") == []


def test_a_clock_that_is_set_back_begins_anew() -> None:
    growth = Growth()
    for at_s, memory_mib in ((100.0, 1), (110.0, 2), (50.0, 3), (60.0, 5)):
        growth.add(at_s, columns(a=memory_mib))
    assert growth.of("a") == [(50.0, 3 * MIB), (60.0, 5 * MIB)]


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], 0),
        ([(1.0, 5)], 0),
        ([(1.0, 5), (1.5, 500)], 0),
        ([(1.0, 5), (3.0, 25)], 10),
        ([(0.0, 0), (10.0, 0), (20.0, 300)], 15),
        ([(1.79e9, 1 << 50), (1.79e9 + 1, 0)], -(1 << 50)),
    ],
)
def test_slope(points: list[tuple[float, int]], expected: int) -> None:
    assert slope(points) == expected

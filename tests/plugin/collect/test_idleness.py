import pytest

from daskscope.collect.idleness import Idleness


@pytest.mark.parametrize("set_by_ms", [3_600_000, -3_600_000, -1_795_248_000_000])
def test_idleness_is_as_long_as_it_was_though_the_clock_is_set(set_by_ms: int) -> None:
    since_ms, idleness = 1_795_248_000_000, Idleness()
    assert idleness.told(since_ms, since_ms + 5_000, 100_000) == since_ms
    assert idleness.told(since_ms, since_ms + 15_900, 110_000) == since_ms, "as long as the clock is nearly right"
    now_ms = since_ms + 25_000 + set_by_ms
    assert idleness.told(since_ms, now_ms, 120_000) == max(since_ms + set_by_ms, 0)
    assert idleness.told(since_ms, now_ms + 10_000, 130_000) == max(since_ms + set_by_ms, 0)
    assert idleness.told(None, now_ms + 20_000, 140_000) is None
    assert idleness.told(now_ms + 25_000, now_ms + 30_000, 150_000) == now_ms + 25_000
    assert idleness.told(now_ms + 35_000, now_ms + 20_000, 160_000) == now_ms + 20_000, "set back since it began"

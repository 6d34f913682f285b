"""Prices that somebody set: kept, read, and taken back."""

from __future__ import annotations

import logging

import pytest

from daskscope.errors import SettingsError
from daskscope_lambdas.service.price_file import packaged
from daskscope_lambdas.service.price_store import CACHE_S, PriceKeeper, PriceReader, in_force
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from daskscope_query import layout


@pytest.fixture
def keeper(adapters: LocalAdapters, clock: FakeClock) -> PriceKeeper:
    return PriceKeeper(adapters.objects, clock)


def core_hour(world: LocalAdapters, account: str | None = "acme") -> float:
    return in_force(world.objects, account).tables[0].core_hour


def test_an_accounts_own_stand_over_those_of_its_installation(adapters: LocalAdapters, keeper: PriceKeeper) -> None:
    assert in_force(adapters.objects, "acme") == packaged()
    keeper.set(None, b"core_hour: 1", "mine.yaml")
    keeper.set("acme", b"core_hour: 2", "mine.yaml")
    assert [core_hour(adapters, account) for account in ("acme", "globex", None)] == [2, 1, 1]
    assert keeper.clear("acme")
    assert not keeper.clear("acme")
    assert core_hour(adapters) == 1
    keeper.clear(None)
    assert in_force(adapters.objects, "acme") == packaged()


def test_the_last_setting_counts_and_is_the_only_one_left(
    adapters: LocalAdapters, keeper: PriceKeeper, clock: FakeClock
) -> None:
    for price in (3, 1, 2):
        keeper.set("acme", f"core_hour: {price}".encode(), "mine.yaml")
        clock.advance(-0.5)
    assert core_hour(adapters) == 2
    assert len(list(adapters.objects.list(layout.prices_prefix("acme")))) == 1


def test_a_file_that_is_none_is_refused_and_leaves_what_was_set(adapters: LocalAdapters, keeper: PriceKeeper) -> None:
    keeper.set("acme", b"core_hour: 1", "mine.yaml")
    with pytest.raises(SettingsError, match=r"mine\.yaml: core_hour is -1"):
        keeper.set("acme", b"core_hour: -1", "mine.yaml")
    assert core_hour(adapters) == 1


def test_an_accounts_file_is_held_against_what_it_stands_over(
    adapters: LocalAdapters, keeper: PriceKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    keeper.set(None, b"{currency: EUR, core_hour: 1}", "all.yaml")
    keeper.set("acme", b"spot_factor: 0.3", "mine.yaml")
    table = in_force(adapters.objects, "acme").tables[0]
    assert (table.currency, table.core_hour, table.spot_factor) == ("EUR", 1, 0.3)
    with pytest.raises(SettingsError, match=r"mine\.yaml: core_hour is None; allowed: a price in USD"):
        keeper.set("acme", b"{currency: USD, gib_hour: 1}", "mine.yaml")
    keeper.set("acme", b"{currency: EUR, gib_hour: 1}", "mine.yaml")
    keeper.clear(None)
    with caplog.at_level(logging.WARNING, "daskscope.prices"):
        assert in_force(adapters.objects, "acme") == packaged()
    assert "Prices of account acme are left out: " in caplog.text


def test_what_cannot_be_read_any_more_is_left_out_and_said(
    adapters: LocalAdapters, keeper: PriceKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    keeper.set(None, b"core_hour: 1", "mine.yaml")
    adapters.objects.put_new(layout.prices_key("acme", 1.0, "ab"), b"of_another_release: 1")
    with caplog.at_level(logging.WARNING, "daskscope.prices"):
        assert core_hour(adapters) == 1
    assert "Prices of account acme are left out: prices/account=acme/000000000001000-ab.yaml: " in caplog.text


def test_a_process_sees_what_was_set_within_a_minute(
    adapters: LocalAdapters, keeper: PriceKeeper, clock: FakeClock
) -> None:
    reader = PriceReader(adapters.objects, clock)
    assert reader.of("acme") == packaged()
    keeper.set("acme", b"core_hour: 1", "mine.yaml")
    clock.advance(CACHE_S - 1)
    assert reader.of("acme") == packaged()
    clock.advance(1)
    assert reader.of("acme").tables[0].core_hour == 1

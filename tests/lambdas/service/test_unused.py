"""Code that nothing names any more goes, and none that anything may still name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daskscope.errors import Deleted
from daskscope_lambdas.ports import Delivery
from daskscope_lambdas.service.deletion import REST_DAYS
from daskscope_lambdas.service.letters import Letters, Unfit
from daskscope_lambdas.service.replay import replay
from daskscope_lambdas.testing import FakeClock
from daskscope_query import layout
from tests.lambdas.service.deleting import DAY_S, DOOMED, MINE, SHARED, House

MINES = "def minewords(): pass"
DOOMEDS = "def doomedwords(): pass"


@pytest.fixture
def house(tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> House:
    """Rows of computations are kept for a day."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    house = House(tmp_path / "data", clock)
    house.world.policies.set_wish("acme", "retention", {"computations": 1})
    return house


def _again(house: House) -> None:
    """A server that remembers nothing."""
    house.ingest = House(house.data, house.clock).ingest


def _pass(house: House, days: int) -> None:
    """Days on which nobody ran `compact` but on the last: it does what is due."""
    house.clock.advance((days - 1) * DAY_S)
    house.days(1)


def _received(house: House) -> Delivery:
    (delivery,) = house.world.feed.receive(10, 60.0)
    house.world.feed.delete([delivery.receipt])
    return delivery


def test_it_goes_some_time_after_the_last_row_that_names_it(house: House) -> None:
    house.tell(0)
    house.write()
    house.days(3)
    assert house.code("acme") == {SHARED, MINES, DOOMEDS}, "a message may be in the queue that names it"
    _pass(house, REST_DAYS)
    assert house.code("acme") == set()
    assert len(house.code("globex")) == 2
    assert not list(house.world.objects.list(layout.unused_prefix("acme")))


def test_what_is_named_again_stays(house: House) -> None:
    house.world.policies.set_wish("acme", "retention", {"computations": 5})
    house.tell(0, MINE, DOOMED)
    house.write()
    for seq in range(1, 8):
        house.post(MINE, seq)
        house.write()
        _pass(house, 4)
    assert house.code("acme") == {SHARED, MINES}


def test_what_comes_again_when_it_is_about_to_go_stays_until_its_rows_are_there(house: House) -> None:
    house.tell(0, MINE)
    house.write()
    house.days(3)
    assert list(house.world.objects.list(layout.unused_prefix("acme")))
    _again(house)
    house.post(MINE, 0)  # stays in the queue for some days
    for days in (2, 4, 8):
        _pass(house, days)
        assert house.code("acme") == {SHARED, MINES}
    house.write()
    house.days(1)
    _pass(house, 2)
    assert house.code("acme") == {SHARED, MINES}
    for days in (2, REST_DAYS, REST_DAYS):
        _pass(house, days)
    assert house.code("acme") == set()


def test_what_a_dead_letter_names_stays_as_long_as_it_waits(house: House) -> None:
    house.post(MINE, 0)
    first = _received(house)
    house.post(DOOMED, 0)
    other = house.world.feed.receive(10, 60.0)[0]
    letters = Letters(house.world.objects, house.clock)
    letters.put([Unfit(first.id, first.body, "a mistake of ours")])
    house.world.feed.bury(other.receipt, "it ended the function")
    house.tell(0, MINE)
    _received(house)
    for days in (2, REST_DAYS, REST_DAYS):
        _pass(house, days)
    assert house.code("acme") == {SHARED, MINES, DOOMEDS}
    assert replay(letters, house.world.dead_letters, house.world.queue).sent == 2
    house.write()
    house.days(1)
    assert house.code("acme") == {SHARED, MINES, DOOMEDS}


def test_code_of_what_was_deleted_goes_too(house: House) -> None:
    house.world.policies.set_wish("acme", "retention", {})
    house.tell(0, MINE, DOOMED)
    house.write()
    house.days(1)
    house.delete(DOOMED)
    house.days(2)
    for days in (REST_DAYS, 1, 1):
        _pass(house, days)
    assert house.world.deletions.pending() == []
    with pytest.raises(Deleted):
        house.post(DOOMED, 1)
    house.days(1)
    assert house.code("acme") == {SHARED, MINES}

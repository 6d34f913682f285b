"""What is older than its account wants goes, and nothing else."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest

from daskscope_lambdas.ports import Missing, StoreError
from daskscope_lambdas.testing import FakeClock
from daskscope_query import layout
from daskscope_query.tables import ROLLUPS, TABLES
from tests.lambdas.service.deleting import DAY_S, DOOMED, MINE, SHARED, THEIRS, House, Mortal


@pytest.fixture
def house(tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> House:
    """Three sealed days with a message of each cluster, but the last of `DOOMED` on the first."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    house = House(tmp_path / "data", clock)
    for seq, clusters in enumerate(((MINE, DOOMED, THEIRS), (MINE, THEIRS), (MINE, THEIRS))):
        house.tell(seq, *clusters)
        house.write()
        house.days(1)
    return house


def _days(house: House, name: str, account: str) -> list[date]:
    prefix = layout.rollup_prefix(name, account) if name in ROLLUPS else layout.sealed_prefix(name, account)
    return sorted({day for key in house.world.objects.list(prefix) if (day := layout.day_in(key))})


def test_for_ever_is_the_default(house: House) -> None:
    house.days(30)
    assert all(len(_days(house, name, "acme")) == 3 for name in ("events", "groups", "clusters_daily"))


def test_days_go_by_table_and_account(house: House) -> None:
    before = {name: _days(house, name, "acme") for name in (*TABLES, *ROLLUPS)}
    first, *rest = before["events"]
    house.world.policies.set_retention("acme", {"events": 3, "exceptions_daily": 3})
    house.days(1)
    for name, days in before.items():
        assert _days(house, name, "acme") == (rest if name in ("events", "exceptions_daily") else days), name
    assert first in _days(house, "events", "globex")
    house.days(1)
    assert _days(house, "events", "acme") == rest[1:]


def test_a_row_is_kept_for_all_of_its_days(house: House) -> None:
    first = _days(house, "events", "acme")[0]
    house.world.policies.set_retention("acme", {"events": 1})
    house.clock.at = (layout.days(first, first)[0] - date(1970, 1, 1)).days * DAY_S + 4 * DAY_S
    house.days(1)
    assert first not in _days(house, "events", "acme")


def test_clusters_that_ended_long_ago_leave_the_registry(house: House) -> None:
    house.world.policies.set_retention("acme", {"clusters": 2})
    house.days(1)
    with pytest.raises(Missing):
        house.world.clusters.find("acme", DOOMED)
    assert house.world.clusters.find("acme", MINE).id == 1
    assert house.world.clusters.find("globex", THEIRS)


def test_code_goes_with_the_last_row_that_names_it(house: House) -> None:
    assert len(house.code("acme")) == 3
    house.world.policies.set_retention("acme", {"computations": 3})
    house.days(3)
    assert house.code("acme") == {SHARED, "def minewords(): pass"}
    house.days(3)
    assert house.code("acme") == set()
    assert len(house.code("globex")) == 2


def test_code_that_came_a_moment_ago_is_not_taken_for_unused(house: House) -> None:
    """It is kept before the rows that name it."""
    house.world.policies.set_retention("acme", {"computations": 100})
    house.tell(3, DOOMED)
    for key in house.world.objects.list(layout.code_key("acme", "")):
        house.world.objects.delete(key)
    house.ingest = House(house.data, house.clock).ingest
    house.post(DOOMED, 0)
    house.days(1)
    house.write()
    house.days(2)
    assert "def doomedwords(): pass" in house.code("acme")


def test_killed_after_any_change_it_is_gone_on_with(house: House) -> None:
    house.world.policies.set_retention("acme", {"events": 2, "groups": 2, "clusters": 2})
    living = house.world
    house.clock.at = (house.clock.at // DAY_S + 1) * DAY_S + 2 * 3600 + 1
    for n in range(2, 40, 3):
        house.world = Mortal(n).holding(living)
        try:
            house.run()
        except StoreError:
            house.world = living
            assert len(house.seen("globex")["exceptions"]) == 6
        else:
            break
    house.world = living
    house.run()
    assert len(_days(house, "events", "acme")) == 1
    assert len(_days(house, "events", "globex")) == 3
    with pytest.raises(Missing):
        house.world.clusters.find("acme", DOOMED)

"""What is older than its account wants goes, and nothing else."""

from __future__ import annotations

import os
from datetime import date, timedelta
from pathlib import Path

import pytest

from daskscope import wire
from daskscope.compression import compress
from daskscope.testing import message
from daskscope_lambdas.ports import Missing, StoreError
from daskscope_lambdas.service.completeness import completeness
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.testing import FakeClock
from daskscope_query import layout
from daskscope_query.tables import ROLLUPS, TABLES
from tests.lambdas.service.deleting import DAY_S, DOOMED, MINE, OWNERS, SECRETS, THEIRS, House, Mortal, found_in


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
    keys = [key for key in house.world.objects.list(prefix) if not layout.is_gone(key)]
    return sorted({day for key in keys if (day := layout.day_in(key))})


def test_for_ever_is_the_default(house: House) -> None:
    house.days(30)
    assert all(len(_days(house, name, "acme")) == 3 for name in ("events", "groups", "clusters_daily"))


def test_days_go_by_table_and_account(house: House) -> None:
    before = {name: _days(house, name, "acme") for name in (*TABLES, *ROLLUPS)}
    first, *rest = before["events"]
    house.world.policies.set_wish("acme", "retention", {"events": 3, "exceptions_daily": 3})
    house.days(1)
    for name, days in before.items():
        assert _days(house, name, "acme") == (rest if name in ("events", "exceptions_daily") else days), name
    assert first in _days(house, "events", "globex")
    house.days(1)
    assert _days(house, "events", "acme") == rest[1:]


def test_a_row_is_kept_for_all_of_its_days(house: House) -> None:
    first = _days(house, "events", "acme")[0]
    house.world.policies.set_wish("acme", "retention", {"events": 1})
    house.clock.at = (layout.days(first, first)[0] - date(1970, 1, 1)).days * DAY_S + 4 * DAY_S
    house.days(1)
    assert first not in _days(house, "events", "acme")


def test_clusters_that_ended_long_ago_leave_the_registry(house: House) -> None:
    house.world.policies.set_wish("acme", "retention", {"clusters": 2})
    house.days(1)
    with pytest.raises(Missing):
        house.world.clusters.find("acme", DOOMED)
    assert house.world.clusters.find("acme", MINE).id == 1
    assert house.world.clusters.find("globex", THEIRS)


def test_what_comes_of_such_a_cluster_later_is_taken_in_under_a_new_number(house: House) -> None:
    house.world.policies.set_wish("acme", "retention", {"clusters": 2})
    house.days(1)
    with pytest.raises(Missing):
        house.world.clusters.find("acme", DOOMED)
    house.ingest = House(house.data, house.clock).ingest
    assert house.post(DOOMED, 9).id == 3
    house.write()
    assert {row["seq"] for row in house.seen("acme")[f"samples {DOOMED}"]} >= {9}


def test_a_cluster_that_is_heard_of_meanwhile_stays_in_the_registry(house: House) -> None:
    row = house.world.clusters.find("acme", DOOMED)
    house.post(DOOMED, 1)
    assert not house.world.clusters.drop(row)
    assert house.world.clusters.find("acme", DOOMED).seq == 1


def _beat(house: House, cluster: str, seq: int) -> None:
    """A message that tells nothing new."""
    house.ingest.take("acme", *compress(wire.encode(message(cluster=cluster, seq=seq))))


def _sums(house: House) -> dict[str, int]:
    return {row["prefix"]: row["n_tasks"] for row in house.seen("acme")["prefixes"]}


def test_what_later_days_are_counted_from_stays_while_a_cluster_is_heard_of(house: House) -> None:
    house.world.policies.set_wish("acme", "retention", {"groups": 2, "exceptions": 2, "samples": 2, "clusters": 2})
    for seq in range(3, 8):
        _beat(house, MINE, seq)
        house.write()
        house.days(1)
    house.post(MINE, 8)
    house.write()
    house.days(1)
    # No day alone has more than it added: 4 + 8 tasks of one group in the end, 5 of the other, of each cluster.
    assert _sums(house) == {"p-minewords": 12, "p-doomedwords": 4, "sum": 10}
    assert len(_days(house, "groups", "acme")) == 4
    house.days(4)
    assert _days(house, "groups", "acme") == _days(house, "samples", "acme") == []
    assert _sums(house) == {"p-minewords": 12, "p-doomedwords": 4, "sum": 10}


def test_what_is_counted_from_days_that_are_gone_is_left_as_it_is_when_another_is_deleted(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third day holds a group that began on the first, of a cluster that was silent since, and one that lives."""
    late = "d" * 31 + "4"
    monkeypatch.setitem(OWNERS, late, "acme")
    monkeypatch.setitem(SECRETS, late, "latewords")
    house.post(MINE, 3)
    house.post(DOOMED, 1)
    house.post(late, 0)
    house.write()
    house.days(1)
    house.world.policies.set_wish("acme", "retention", {"groups": 2})
    for seq in range(1, 5):
        _beat(house, late, seq)
        house.write()
        house.days(1)
    assert len(_days(house, "groups", "acme")) == 1, "only the day of the one that is heard of"
    before = _sums(house)
    assert before["p-minewords"] == 7
    house.delete(DOOMED)
    assert (
        _sums(house)
        == {"p-minewords": 7, "p-latewords": 4, "sum": 10}
        | {
            # Of the first day nobody can tell its share.
        }
    )
    house.days(2)
    assert _sums(house)["p-minewords"] == 7
    assert "p-doomedwords" not in _sums(house)


def test_whose_the_sums_are_is_known_as_long_as_there_are_any(house: House) -> None:
    names = ("groups", "exceptions", "samples", "clusters", "clusters_daily")
    house.world.policies.set_wish("acme", "retention", dict.fromkeys(names, 1))
    house.days(3)
    assert _days(house, "groups", "acme") == []
    assert len(_days(house, "clusters_daily", "acme")) == 3
    row = house.world.clusters.enrol("acme", DOOMED, 1.0, house.clock.now())
    assert row.id == 3
    house.delete(DOOMED)
    assert _sums(house) == {"p-minewords": 6, "sum": 5}, "of others all is shown at once"
    house.days(2)
    assert _sums(house) == {"p-minewords": 6, "sum": 5}
    rollups = found_in(house.data / "lake" / "rollups", "doomedwords", "minewords")
    assert not rollups["doomedwords"]
    assert rollups["minewords"]
    house.world.policies.set_wish("acme", "retention", dict.fromkeys((*names, "prefixes_daily", "exceptions_daily"), 1))
    house.days(1)
    assert _days(house, "clusters_daily", "acme") == []


def test_what_is_kept_no_longer_is_not_missing(house: House) -> None:
    world = house.world
    row, asker = world.clusters.find("acme", MINE), Asker(world.lake_root, world.seals, world.deletions)
    assert completeness(asker, row, house.clock.now())["received"] == 3
    last = _days(house, "samples", "acme")[-1]
    world.policies.set_wish("acme", "retention", {"samples": 2})
    house.days(4)
    assert _days(house, "samples", "acme") == []
    told = completeness(asker, row, house.clock.now())
    assert (told["expected"], told["received"], told["missing"], told["merged"]) == (3, None, None, None)
    assert told["kept_from"] == f"{last + timedelta(1)}"
    assert told["sentence"].startswith("Not known any more")


def test_killed_after_any_change_it_is_gone_on_with(house: House) -> None:
    house.world.policies.set_wish("acme", "retention", {"events": 2, "groups": 2, "clusters": 2})
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

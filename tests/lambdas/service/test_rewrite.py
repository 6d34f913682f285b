"""Making sealed days anew, where it is not as easy as leaving rows out."""

from __future__ import annotations

import logging
import os
from datetime import date
from pathlib import Path

import pytest

from daskscope_lambdas.testing import FakeClock
from daskscope_query import layout
from tests.lambdas.service.deleting import DOOMED, MINE, House, found_in


@pytest.fixture
def house(tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    house = House(tmp_path / "data", clock)
    house.tell(0)
    house.write()
    house.days(1)
    return house


def _sealed_day(house: House) -> date:
    day = house.world.seals.boundary()
    assert day
    return day


def _parts(house: House, prefix: str) -> list[str]:
    return [key.rpartition("/")[2] for key in house.world.objects.list(prefix)]


def test_files_of_accounts_and_days_that_it_is_not_in_stay_as_they_are(house: House) -> None:
    house.tell(1, MINE)
    house.write()
    house.days(1)
    tops = [layout.SEALED, layout.ROLLUPS]
    before = {key: house.world.objects.get(key) for top in tops for key in house.world.objects.list(top)}
    house.delete(DOOMED)
    house.clock.advance(600)
    house.run()
    after = {key: house.world.objects.get(key) for top in tops for key in house.world.objects.list(top)}
    day = f"/day={_sealed_day(house)}/"
    kept = {key: body for key, body in before.items() if "account=globex" in key or day in key}
    assert len(kept) > 10
    assert kept.items() <= after.items()
    assert not (before.keys() - kept.keys()) & {key for key in after if "/groups/" in key}


def test_a_day_of_which_a_file_cannot_be_read_keeps_it_from_being_done(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    key = layout.sealed_key("events", "acme", _sealed_day(house), 0)
    (house.data / "lake" / key).write_bytes(b"PAR1 garbage PAR1")
    house.delete(DOOMED)
    house.clock.advance(600)
    with caplog.at_level(logging.WARNING, "daskscope.delete"):
        house.run()
    assert "goes on with the next run" in caplog.text
    (pending,) = house.world.deletions.pending()
    assert pending.swept_through == date.min, "asked of the registry, not of the days"
    (house.data / "lake" / key).unlink()
    house.run()
    (pending,) = house.world.deletions.pending()
    assert pending.swept_through == house.world.seals.boundary()


def test_where_its_rows_are_gone_already_all_goes_that_is_said_of_its_user(house: House) -> None:
    """Nobody can tell what the cluster's share was."""
    day = _sealed_day(house)
    for key in list(house.world.objects.list(layout.SEALED)):
        house.world.objects.delete(key)
    assert found_in(house.data / "lake" / "rollups", "doomedwords")["doomedwords"]
    house.delete(DOOMED)
    house.clock.advance(600)
    house.run()
    left = found_in(house.data / "lake" / "rollups", "doomedwords", "minewords", "theirswords")
    assert not left["doomedwords"]
    assert len(left["minewords"]) == len(left["theirswords"]) == 3
    assert _parts(house, layout.rollup_prefix("clusters_daily", "acme", day))[0].startswith("part-0-r1-")


def test_what_a_killed_run_left_of_an_older_revision_is_taken_away(house: House) -> None:
    house.delete(DOOMED)
    house.clock.advance(600)
    day = _sealed_day(house)
    old = layout.sealed_key("events", "acme", day, 0)
    body = house.world.objects.get(old)
    house.run()
    assert len(_parts(house, layout.sealed_prefix("events", "acme", day))) == 1
    house.world.objects.put_new(old, body)  # as if a run that is slow had put it
    assert "doomedwords" not in str(house.seen("acme"))
    house.days(16)
    assert len(_parts(house, layout.sealed_prefix("events", "acme", day))) == 1

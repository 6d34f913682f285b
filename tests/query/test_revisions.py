"""Sealed days that were made anew: of each day the newest revision that is whole counts, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from daskscope.testing import CLUSTER, event
from daskscope_query import files, layout
from daskscope_query.exclusion import Exclusion
from daskscope_query.lake import Lake
from daskscope_query.tables import TABLES
from tests.query.lake_rig import DAY, OTHER, START, TOMORROW, LakeRig, envelope

EVENTS = TABLES["events"]


def _key(part: int, revision: str = "", day: int = 0) -> str:
    return layout.sealed_key("events", "acme", DAY + timedelta(day), part, revision)


def test_the_first_revision_counts_until_another_one_is_whole() -> None:
    first = [_key(0), _key(1)]
    assert layout.standing(first) == first
    assert layout.standing([*first, _key(1, "-r1-ab")]) == first
    whole = [_key(0, "-r1-ab"), _key(1, "-r1-ab")]
    assert layout.standing([*first, *whole]) == whole
    assert layout.superseded([*first, *whole]) == first


def test_of_two_that_were_made_at_once_all_take_the_same() -> None:
    one, other = _key(0, "-r1-ab"), _key(0, "-r1-cd")
    for keys in ([_key(0), one, other], [other, one, _key(0)]):
        assert layout.standing(keys) == [other]
        assert set(layout.superseded(keys)) == {_key(0), one}


def test_what_is_being_written_is_not_taken_away() -> None:
    keys = [_key(0, "-r1-ab"), _key(3, "-r2-cd"), _key(1, "-r1-cd")]
    assert layout.standing(keys) == keys[:1]
    assert layout.superseded(keys) == []


def test_the_tenth_revision_is_newer_than_the_ninth() -> None:
    keys = [_key(0, "-r9-ab"), _key(0, "-r10-ab")]
    assert layout.standing(keys) == keys[1:]
    assert layout.next_revision(keys, "ef") == "-r11-ef"
    assert layout.next_revision([_key(0)], "ef") == "-r1-ef"


def test_each_day_has_its_own(rig: LakeRig) -> None:
    keys = [_key(0), _key(0, "-r1-ab"), _key(0, day=1)]
    assert layout.standing(keys) == keys[1:]


def test_a_lake_reads_what_counts(rig: LakeRig) -> None:
    rig.write(envelope(events=[event(no=0, action="old")]))
    body = rig.objects.get(rig.listed("open/events/")[0])
    rig.objects.put_new(_key(0), body)
    rows = rig.lake().file("events", _key(0))
    rig.seals.day = DAY
    rig.objects.put_new(_key(1, "-r1-ab"), files.encode(EVENTS, rows))
    assert [row["action"] for row in rig.records("events", cluster=CLUSTER)] == ["old"]
    rig.objects.put_new(_key(0, "-r1-ab"), files.encode(EVENTS, rows.slice(0, 0)))
    assert len(rig.records("events", cluster=CLUSTER)) == 1, "once, out of part 1"
    rig.objects.delete(_key(0))
    assert len(rig.records("events", cluster=CLUSTER)) == 1


@pytest.mark.parametrize("sealed", [False, True])
def test_what_is_left_out_is_in_no_relation(rig: LakeRig, sealed: bool) -> None:
    rig.write(envelope(events=[event(no=0)]), envelope(cluster=OTHER, events=[event(no=0)]))
    rig.write(envelope("globex", 7, cluster=OTHER, events=[event(no=0)]))
    if sealed:
        rig.objects.put_new(_key(0), rig.objects.get(rig.listed("open/events/")[0]))
        rig.seals.day = DAY

    def seen(account: str, without: Exclusion) -> int:
        lake = Lake(str(rig.root), rig.seals.boundary(), without={"acme": without})
        days = (DAY, TOMORROW)
        return sum(
            lake.ask("events", account=account, days=days, cluster=each, limit=9, offset=0).rows.num_rows
            for each in (CLUSTER, OTHER)
        )

    assert seen("acme", Exclusion()) == 2
    assert seen("acme", Exclusion(frozenset({OTHER}))) == 1
    assert seen("acme", Exclusion(until=_at(START - 1))) == 2
    assert seen("acme", Exclusion(until=_at(START))) == 0
    assert seen("globex", Exclusion(frozenset({OTHER}))) == (0 if sealed else 1), "another account's is another thing"


def _at(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)

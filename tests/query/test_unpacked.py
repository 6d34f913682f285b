"""Small sealed files are unpacked once; what is kept of them changes no answer."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from bench.counting import counted
from daskscope.testing import CLUSTER, event, groups
from daskscope_query import files, layout, unpacked
from daskscope_query.exclusion import Exclusion
from daskscope_query.lake import Lake
from daskscope_query.relations import Relation, Wanted
from daskscope_query.tables import ROLLUPS, TABLES
from tests.query.lake_rig import DAY, DAY_S, OTHER, START, TOMORROW, LakeRig, envelope

EVENTS = TABLES["events"]
THIRD = "0" * 31 + "3"
TODAY = TOMORROW + timedelta(1)


def seal(rig: LakeRig) -> None:
    """As compacting would, with files and nothing else."""
    for day in (DAY, TOMORROW):
        for name in ("events", "samples"):
            if rows := rig.lake().day(name, account="acme", day=day).rows:
                rig.objects.put_new(layout.sealed_key(name, "acme", day, 0), files.encode(TABLES[name], rows))
    rig.seals.day = TOMORROW


def relation(rig: LakeRig, lake: Lake | None = None, **wanted: object) -> Relation:
    lake = lake or rig.lake()
    asked = Wanted("acme", unpacked=True, **wanted)  # pyright: ignore[reportArgumentType]  as the caller says
    return lake.relation(lake.keys("events", "acme", DAY, TODAY), EVENTS, asked)


def actions(rig: LakeRig, lake: Lake | None = None) -> list[tuple[str, str]]:
    """Of the whole team, by cluster."""
    answer = (lake or rig.lake()).ask("events_of_all", account="acme", days=(DAY, TODAY))
    return sorted((row["cluster"], row["action"]) for row in answer.records())


@pytest.fixture(autouse=True)
def events_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from daskscope_query import lake
    from daskscope_query.questions import Question

    named = lake.question
    told = Question("SELECT cluster, action FROM events", ("events",))
    monkeypatch.setattr(lake, "question", lambda name: told if name == "events_of_all" else named(name))


def test_a_sealed_day_is_read_once_and_an_open_one_each_time(rig: LakeRig) -> None:
    rig.write(envelope(events=[event(no=0, action="sealed")]))
    seal(rig)
    with counted(rig.root) as reads:
        assert actions(rig) == [(CLUSTER, "sealed")]
        first = reads.n
        assert actions(rig) == [(CLUSTER, "sealed")]
        assert (first > 0, reads.n) == (True, first)
    rig.write(envelope(cluster=OTHER, events=[event(no=0, action="open")], received_at=START + 2 * DAY_S))
    with counted(rig.root) as reads:
        assert actions(rig) == [(OTHER, "open"), (CLUSTER, "sealed")]
        first = reads.n
        actions(rig)
        assert first < reads.n < 2 * first


def test_only_rows_of_clusters_on_several_days_are_looked_through_for_repeats(rig: LakeRig) -> None:
    one = envelope(cluster=OTHER, events=[event(no=0, action="alone")])
    rig.write(envelope(seq=1, events=[event(no=0, action="old"), event(no=1, action="one")]), one)
    third = envelope(cluster=THIRD, events=[event(no=0, action="third")], received_at=START + DAY_S)
    rig.write(envelope(seq=2, events=[event(no=0, action="new")], received_at=START + DAY_S), third)
    seal(rig)
    told = relation(rig)
    assert not told.unique
    once, other = told.apart or (pa.table({}), pa.table({}))
    assert sorted(once.column("cluster").to_pylist()) == [OTHER, THIRD]
    assert other.column("cluster").to_pylist() == [CLUSTER] * 3
    expected = [(OTHER, "alone"), (THIRD, "third"), (CLUSTER, "new"), (CLUSTER, "one")]
    assert actions(rig) == sorted(expected)
    # What came again today, and a cluster that only today has.
    again = envelope(cluster=THIRD, events=[event(no=0, action="third")], received_at=START + 2 * DAY_S)
    rig.write(again, envelope(cluster="0" * 31 + "4", events=[event(no=0)] * 1, received_at=START + 2 * DAY_S))
    once, _ = relation(rig).apart or (pa.table({}), pa.table({}))
    assert once.column("cluster").to_pylist() == [OTHER]
    assert [cluster for cluster, _ in actions(rig)].count(THIRD) == 1
    assert len(actions(rig)) == 5


def test_clusters_of_a_day_each_need_no_look_for_repeats(rig: LakeRig) -> None:
    rig.write(envelope(events=[event(no=0)]))
    rig.write(envelope(cluster=OTHER, events=[event(no=0)], received_at=START + DAY_S))
    seal(rig)
    told = relation(rig)
    assert told.unique
    assert {cluster for cluster, _ in told.boots()} == {CLUSTER, OTHER}
    assert told.boots() == relation_of_files(rig).boots()
    assert told.received_until == relation_of_files(rig).received_until == told.newest()
    until = datetime.fromtimestamp(START + 1, UTC)
    rows = relation(rig, until=until).table
    assert rows is not None
    assert rows.column("cluster").to_pylist() == [CLUSTER]
    assert relation(rig, until=until + timedelta(1)).received_until == told.newest()


def relation_of_files(rig: LakeRig) -> Relation:
    lake = rig.lake()
    return lake.relation(lake.keys("events", "acme", DAY, TODAY), EVENTS, Wanted("acme"))


def test_what_is_left_out_is_left_out_of_what_is_kept(rig: LakeRig) -> None:
    rig.write(envelope(events=[event(no=0, action="a")]), envelope(cluster=OTHER, events=[event(no=0, action="b")]))
    seal(rig)
    assert len(actions(rig)) == 2
    hidden = Lake(str(rig.root), TOMORROW, without={"acme": Exclusion(frozenset({CLUSTER}))})
    assert actions(rig, hidden) == [(OTHER, "b")]
    until = Lake(str(rig.root), TOMORROW, without={"acme": Exclusion(until=datetime.fromtimestamp(START + 1, UTC))})
    assert actions(rig, until) == []
    assert len(actions(rig)) == 2


def test_nobody_elses_rows_come_out_of_a_file_that_holds_them(rig: LakeRig) -> None:
    rig.write(envelope(events=[event(no=0, action="mine")]))
    seal(rig)
    both = [envelope(events=[event(no=7, action="late")]), envelope("globex", cluster=OTHER, events=[event(no=0)])]
    rig.write(*both, name="both")
    (mixed,) = [key for key in rig.listed("open/events/") if "both" in key]
    rig.objects.put_new(layout.sealed_key("events", "acme", DAY, 1), rig.objects.get(mixed))
    theirs = envelope("globex", cluster=THIRD, events=[event(no=0)], received_at=START + 2 * DAY_S)
    rig.write(theirs, envelope(events=[event(no=8, action="open")], received_at=START + 2 * DAY_S))
    assert relation(rig).table is not None
    assert actions(rig) == [(CLUSTER, "late"), (CLUSTER, "mine"), (CLUSTER, "open")]


def test_a_file_that_was_put_in_anothers_place_is_unpacked_anew(rig: LakeRig) -> None:
    rig.write(envelope(events=[event(no=0, action="old")]))
    seal(rig)
    assert actions(rig) == [(CLUSTER, "old")]
    key = layout.sealed_key("events", "acme", DAY, 0)
    rows = rig.lake().file("events", key)
    path = rig.root / key
    path.chmod(0o600)
    # Of an earlier release, which did not know the column.
    path.write_bytes(files.encode(EVENTS, rows.drop_columns(["action"])))
    os.utime(path, ns=(1, 1))
    answer = rig.lake().ask("events_of_all", account="acme", days=(DAY, TODAY))
    assert answer.records() == [{"cluster": CLUSTER, "action": None}]


@pytest.mark.parametrize("limit", ["_SMALL_BYTES", "_FEW_BYTES"])
def test_more_than_a_process_can_spare_is_read_as_it_is_needed(
    rig: LakeRig, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    rig.write(envelope(events=[event(no=0, action="sealed")]))
    seal(rig)
    rig.write(envelope(events=[event(no=1, action="open")], received_at=START + 2 * DAY_S))
    small = relation(rig)
    found = actions(rig)
    assert small.table is not None
    monkeypatch.setattr(unpacked, limit, 1)
    assert relation(rig).table is None
    assert actions(rig) == found == [(CLUSTER, "open"), (CLUSTER, "sealed")]


def test_a_cluster_is_found_in_what_is_kept(rig: LakeRig) -> None:
    rig.write(envelope(events=[event(no=0, action="a")]), envelope(cluster=OTHER, events=[event(no=0, action="b")]))
    rig.write(envelope(cluster=THIRD, events=[event(no=0, action="c")], received_at=START + DAY_S))
    seal(rig)
    assert [row["action"] for row in rig.records("events", cluster=OTHER, last=TOMORROW)] == ["b"]
    told = relation(rig, clusters=[OTHER, THIRD])
    assert told.table is not None
    assert sorted(told.table.column("action").to_pylist()) == ["b", "c"]
    assert relation(rig, clusters=[]).dataset.count_rows() == 0


@pytest.mark.parametrize("limit_bytes", [16 << 20, -1])
def test_prefixes_add_up_over_what_is_kept_what_is_not_and_what_is_open(
    rig: LakeRig, monkeypatch: pytest.MonkeyPatch, limit_bytes: int
) -> None:
    monkeypatch.setattr(unpacked, "_SMALL_BYTES", limit_bytes)
    name = "prefixes_daily"
    for day, cluster in ((0, CLUSTER), (1, OTHER), (2, THIRD)):
        work = groups({"no": 0, "prefix": "inc", "n_tasks": 2, "action_us": {"compute": 10**day, "transfer": 5}})
        rig.write(envelope(cluster=cluster, groups=work, received_at=START + day * DAY_S))
    for day in (DAY, TOMORROW):
        made = rig.lake().rollup(name, account="acme", day=day).rows
        rig.objects.put_new(layout.rollup_key(name, "acme", day, 0), files.encode(ROLLUPS[name], made))
    rig.seals.day = TOMORROW
    (told,) = rig.records("prefixes", last=TODAY, limit=9, offset=0)
    assert (dict(told["action_us"]), told["us"], told["n_tasks"]) == ({"compute": 111, "transfer": 15}, 126, 6)

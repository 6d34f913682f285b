"""What is known of sealed files without reading them, and that it changes no answer."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

from daskscope.testing import CLUSTER, event
from daskscope_query import files, footers, layout
from daskscope_query.kept import Kept
from daskscope_query.relations import Wanted
from daskscope_query.tables import TABLES
from tests.query.lake_rig import DAY, DAY_S, OTHER, START, TOMORROW, LakeRig, envelope

EVENTS, SAMPLES = TABLES["events"], TABLES["samples"]


def seal(rig: LakeRig) -> None:
    """As compacting would, with files and nothing else."""
    for day in (DAY, TOMORROW):
        for name in ("events", "samples"):
            if rows := rig.lake().day(name, account="acme", day=day).rows:
                rig.objects.put_new(layout.sealed_key(name, "acme", day, 0), files.encode(TABLES[name], rows))
    rig.seals.day = TOMORROW


def relation(rig: LakeRig, wanted: Wanted, last_day: int = 0):
    lake = rig.lake()
    return lake.relation(lake.keys("events", "acme", DAY, DAY + timedelta(last_day)), EVENTS, wanted)


def test_what_came_on_two_sealed_days_counts_once(rig: LakeRig) -> None:
    rig.write(envelope(events=[event(no=0)]), envelope(cluster=OTHER, events=[event(no=0)]))
    rig.write(envelope(events=[event(no=0)], received_at=START + DAY_S))
    seal(rig)
    assert len(rig.records("events", cluster=CLUSTER, last=TOMORROW)) == 1
    assert not relation(rig, Wanted("acme", [CLUSTER]), 1).unique
    assert relation(rig, Wanted("acme", [CLUSTER])).unique
    assert relation(rig, Wanted("acme", ["f" * 32]), 1).dataset.count_rows() == 0


def test_an_open_file_may_hold_a_repeat(rig: LakeRig) -> None:
    rig.write(envelope(events=[event(no=0)]), envelope(events=[event(no=0)]))
    assert not relation(rig, Wanted("acme")).unique
    assert len(rig.records("events", cluster=CLUSTER)) == 1


def test_a_footer_tells_until_when_rows_came_only_where_all_of_them_count(rig: LakeRig) -> None:
    rig.write(envelope(events=[event(no=0)]), envelope("globex", 7, cluster=OTHER, received_at=START + 5))
    seal(rig)
    told = relation(rig, Wanted("acme"))
    assert told.received_until == told.newest() == rig.ask("events", cluster=CLUSTER).as_of
    until = told.newest()
    assert relation(rig, Wanted("acme", until=until)).received_until is None
    assert relation(rig, Wanted("acme", hidden=None)).received_until is not None
    # A file that holds another's rows, too: nothing of it is taken for granted.
    mixed = layout.sealed_key("samples", "acme", DAY, 1)
    rig.objects.put_new(mixed, rig.objects.get(rig.listed("open/samples/")[0]))
    lake = rig.lake()
    both = lake.relation(lake.keys("samples", "acme", DAY, DAY), SAMPLES, Wanted("acme"))
    assert both.received_until is None
    assert {row["account"] for row in both.dataset.to_table().to_pylist()} == {"acme"}


def test_a_file_that_was_put_in_anothers_place_is_read_anew(rig: LakeRig) -> None:
    rig.write(envelope(events=[event(no=0, action="old")]))
    seal(rig)
    assert [row["action"] for row in rig.records("events", cluster=CLUSTER)] == ["old"]
    rows = rig.lake().file("events", layout.sealed_key("events", "acme", DAY, 0))
    place = rows.schema.get_field_index("action")
    other = rows.set_column(place, rows.schema.field(place), [["new"]])
    path = rig.root / layout.sealed_key("events", "acme", DAY, 0)
    path.chmod(0o600)
    path.write_bytes(files.encode(EVENTS, other))
    os.utime(path, ns=(1, 1))
    assert [row["action"] for row in rig.records("events", cluster=CLUSTER)] == ["new"]
    footers.forget()
    assert [row["action"] for row in rig.records("events", cluster=CLUSTER)] == ["new"]


@pytest.mark.parametrize("first", [0, 40])
def test_days_are_the_same_listed_one_by_one_and_all_at_once(rig: LakeRig, first: int) -> None:
    rig.write(envelope(events=[event(no=0)]), envelope(events=[event(no=1)], received_at=START + DAY_S))
    lake = rig.lake()
    few = lake.keys("events", "acme", DAY - timedelta(first), TOMORROW)
    assert few == lake.keys("events", "acme", DAY - timedelta(900), TOMORROW)
    assert len(few) == 2


def test_what_is_kept_is_bounded_and_the_least_used_goes_first() -> None:
    kept = Kept[str](3)
    kept.put("a", "A", 1)
    kept.put("b", "B", 1)
    kept.put("a", "AA", 2)
    assert (kept.get("a"), kept.get("b")) == ("AA", "B")
    kept.get("a")
    kept.put("c", "C", 1)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == ("AA", None, "C")
    kept.put("d", "D", 4)
    assert [kept.get(key) for key in "abcd"] == [None] * 4

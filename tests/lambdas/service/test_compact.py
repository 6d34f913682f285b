from __future__ import annotations

import io
import logging
from datetime import date, timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest

from daskscope.testing import CLUSTER, event, groups
from daskscope_lambdas.ports import Conflict, Missing, StoreError
from daskscope_lambdas.testing import FakeClock
from daskscope_query import lake, layout
from daskscope_query.questions import Question
from tests.lambdas.service.compacting import (
    OTHER,
    OVER,
    Dying,
    compactor,
    everything,
    fill,
    lake_files,
    small_parts,
)
from tests.query.lake_rig import DAY, DAY_S, START, TOMORROW, LakeRig, MemorySeals, envelope


def test_a_day_is_sealed_once_it_is_over_and_past_its_grace(rig: LakeRig, clock: FakeClock) -> None:
    fill(rig)
    clock.at = OVER - 2
    assert compactor(rig, clock).run() == []
    assert rig.listed("sealed/") == []
    clock.at = OVER
    assert compactor(rig, clock).run() == [DAY]
    assert rig.seals.boundary() == DAY


def test_nothing_to_do_in_an_empty_lake(rig: LakeRig, clock: FakeClock) -> None:
    assert compactor(rig, clock).run() == []
    assert rig.seals.boundary() is None


def test_sealing_changes_no_answer(rig: LakeRig, clock: FakeClock) -> None:
    fill(rig)
    before = everything(rig)
    clock.at = OVER
    compactor(rig, clock).run()
    assert everything(rig) == before
    clock.at += DAY_S
    compactor(rig, clock).run()
    assert rig.seals.boundary() == TOMORROW
    assert everything(rig) == before
    clock.at += 3600
    compactor(rig, clock).run()
    assert rig.listed("open/") == []
    assert everything(rig) == before


def test_sealed_rows_are_sorted_single_and_of_one_account(rig: LakeRig, clock: FakeClock) -> None:
    rig.write(envelope(cluster=OTHER, seq=1), envelope(seq=1), envelope("globex", seq=1))
    rig.write(envelope(seq=0), envelope(seq=1), envelope(cluster=OTHER, seq=0))
    clock.at = OVER
    compactor(rig, clock).run()
    rows = pq.read_table(rig.root / layout.sealed_key("samples", "acme", DAY, 0)).to_pylist()
    assert [(row["cluster"], row["seq"]) for row in rows] == [(CLUSTER, 0), (CLUSTER, 1), (OTHER, 0), (OTHER, 1)]
    assert {row["account"] for row in rows} == {"acme"}


def test_days_without_a_message_are_passed(rig: LakeRig, clock: FakeClock) -> None:
    rig.write(envelope(seq=0))
    rig.write(envelope(seq=1, received_at=START + 3 * DAY_S))
    clock.at = OVER + 3 * DAY_S
    assert compactor(rig, clock).run() == layout.days(DAY, DAY + timedelta(3))


def test_open_files_go_an_hour_after_their_day_was_found_sealed(rig: LakeRig, clock: FakeClock) -> None:
    rig.write(envelope())
    clock.at = OVER
    compactor(rig, clock).run()
    clock.advance(3599)
    compactor(rig, clock).run()
    assert rig.listed("open/")
    clock.advance(1)
    compactor(rig, clock).run()
    assert rig.listed("open/") == []


def test_run_again_and_again_leaves_the_same_files(rig: LakeRig, clock: FakeClock) -> None:
    fill(rig)
    clock.at = OVER
    compactor(rig, clock).run()
    before = lake_files(rig)
    assert compactor(rig, clock).run() == []
    assert lake_files(rig) == before


def test_a_large_day_is_several_parts(rig: LakeRig, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.write(*(envelope(seq=n) for n in range(5)))
    before = rig.records("samples", cluster=CLUSTER)
    small_parts(monkeypatch)
    clock.at = OVER
    compactor(rig, clock).run()
    assert rig.listed("sealed/samples/") == [layout.sealed_key("samples", "acme", DAY, part) for part in range(3)]
    assert rig.records("samples", cluster=CLUSTER) == before


def test_late_arrival_through_the_writer_is_found_on_the_next_day(rig: LakeRig, clock: FakeClock) -> None:
    rig.write(envelope(seq=0))
    clock.at = OVER
    compactor(rig, clock).run()
    rig.write(envelope(seq=1), name="late")
    assert [row["seq"] for row in rig.records("samples", cluster=CLUSTER, last=TOMORROW)] == [0, 1]
    clock.at += DAY_S
    assert compactor(rig, clock).run() == [TOMORROW]
    assert [row["seq"] for row in rig.records("samples", cluster=CLUSTER, last=TOMORROW)] == [0, 1]


def test_rows_that_came_days_late_are_found_wherever_they_went(rig: LakeRig, clock: FakeClock) -> None:
    rig.write(envelope(seq=0))
    clock.at = OVER + 3 * DAY_S
    compactor(rig, clock).run()
    rig.write(envelope(seq=1), name="late")
    rig.objects.put_new(layout.open_key("samples", DAY, "later"), rig.objects.get(rig.listed("open/samples/")[-1]))
    compactor(rig, clock).run()  # which moves what stands in a sealed day
    assert [row["seq"] for row in rig.records("samples", cluster=CLUSTER, last=DAY)] == [0, 1]
    clock.at += 2 * DAY_S
    compactor(rig, clock).run()
    assert rig.listed("sealed/samples/")[-1] > layout.sealed_key("samples", "acme", DAY, 0)
    assert [row["seq"] for row in rig.records("samples", cluster=CLUSTER, last=DAY)] == [0, 1]


def test_a_corrupt_file_is_logged_kept_and_costs_nothing_else(
    rig: LakeRig, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    rig.write(envelope(events=[event()]))
    bad = layout.open_key("events", DAY, "bad")
    rig.objects.put_new(bad, b"PAR1 garbage PAR1")
    clock.at = OVER
    with caplog.at_level(logging.WARNING, "daskscope.compact"):
        assert compactor(rig, clock).run() == [DAY]
    assert bad in caplog.text
    clock.advance(2 * 3600)
    compactor(rig, clock).run()
    assert rig.listed("open/") == [bad]
    assert rig.objects.get(bad) == b"PAR1 garbage PAR1"
    assert len(rig.records("events", cluster=CLUSTER)) == 1


def test_a_file_that_spoils_after_the_plan_keeps_the_day_open(rig: LakeRig, clock: FakeClock) -> None:
    rig.write(envelope(events=[event()]), name="a")
    clock.at = OVER
    with pytest.raises(StoreError, match="dead"):
        compactor(rig, clock, Dying(rig.objects, 1)).run()
    (rig.root / layout.open_key("events", DAY, "a")).write_bytes(b"")
    with pytest.raises(StoreError, match=r"events.*cannot now"):
        compactor(rig, clock).run()
    assert rig.seals.boundary() is None


def test_of_two_runs_one_seals(rig: LakeRig, clock: FakeClock) -> None:
    class Overtaken(MemorySeals):
        def advance(self, expected: date | None, day: date) -> None:
            self.day = day
            raise Conflict("somebody else was faster")

    rig.write(envelope())
    rig.seals = Overtaken()
    clock.at = OVER
    assert compactor(rig, clock).run() == []
    assert rig.records("samples", cluster=CLUSTER)


def test_roll_ups_hold_what_a_day_added(rig: LakeRig, clock: FakeClock) -> None:
    fill(rig)
    clock.at = OVER + DAY_S
    assert compactor(rig, clock).run() == [DAY, TOMORROW]

    def rollup(name: str, account: str, day: date) -> list[dict[str, Any]]:
        try:
            body = rig.objects.get(layout.rollup_key(name, account, day, 0))
        except Missing:
            return []
        return pq.read_table(io.BytesIO(body)).to_pylist(maps_as_pydicts="strict")

    first, second = (rollup("clusters_daily", "acme", day) for day in (DAY, TOMORROW))
    assert [(row["thread_us"], row["action_us"], row["user"]) for row in first] == [(300, {"compute": 150}, "ada")]
    assert [(row["thread_us"], row["action_us"], row["user"]) for row in second] == [(700, {"compute": 20}, "ada")]
    assert sum(row["n_tasks"] for row in rollup("prefixes_daily", "acme", DAY) if row["prefix"] == "sum") == 12
    assert [row["n_tasks"] for row in rollup("prefixes_daily", "acme", TOMORROW)] == [8]
    assert [row["count"] for row in rollup("exceptions_daily", "globex", DAY)] == [12]
    assert rollup("exceptions_daily", "globex", TOMORROW) == []


def overflowing(monkeypatch: pytest.MonkeyPatch, account: str) -> None:
    """The roll-up of prefixes cannot be made for one account."""
    known = lake.question
    odd = "IF(CAST(IF($account = '{}', 'x', '1') AS INTEGER) = 1, $account, '') AS account"

    def query(name: str) -> Any:
        found = known(name)
        if name != "prefixes_daily":
            return found
        return Question(found.sql.replace("$account AS account", odd.format(account)), found.reads)

    monkeypatch.setattr(lake, "question", query)


def test_a_rollup_that_cannot_be_made_keeps_no_day_open_and_loses_nothing(
    rig: LakeRig, clock: FakeClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.write(envelope(groups=groups({"no": 0})), envelope("globex", 9, cluster=OTHER, groups=groups({"no": 0})))
    before = {name: rig.records("prefixes", account=name) for name in ("acme", "globex")}
    clock.at = OVER
    with monkeypatch.context() as patched:
        overflowing(patched, "acme")
        assert compactor(rig, clock).run() == [DAY]
        assert "prefixes_daily of acme on 2026-11-21 cannot be made" in caplog.text
        assert rig.records("prefixes", account="globex") == before["globex"]
        told = rig.ask("prefixes")
        assert (told.records(), told.skipped) == ([], [layout.unmade_key("prefixes_daily", "acme", DAY)])
        assert len(rig.records("groups", cluster=CLUSTER)) == 1
    assert rig.ask("prefixes").skipped == []
    assert rig.records("prefixes") == before["acme"] != []

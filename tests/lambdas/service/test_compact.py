from __future__ import annotations

import io
import logging
import os
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from daskscope import wire
from daskscope.testing import CLUSTER, event, exception, groups
from daskscope_lambdas.ports import Conflict, Missing, ObjectStore, StoreError
from daskscope_lambdas.service import compact
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.testing import FakeClock
from daskscope_query import lake, layout
from daskscope_query.lake import Answer, Lake
from tests.query.lake_rig import DAY, DAY_S, START, LakeRig, MemorySeals, envelope

TOMORROW = DAY + timedelta(1)
OVER = START + 18 * 3600 + 1
"""Two hours past the midnight that ends DAY."""
OTHER = "f" * 31 + "2"


def compactor(rig: LakeRig, clock: FakeClock, objects: ObjectStore | None = None) -> Compactor:
    return Compactor(objects or rig.objects, rig.seals, clock, str(rig.root))


def totals(n: int) -> wire.Totals:
    return wire.Totals(n_workers=n, thread_us=n * 100, action_us={"compute": n * 50})


def fill(rig: LakeRig) -> None:
    """Two days, two accounts, repeats in one file, over files and over days, snapshots that grow."""
    for n in range(4):
        mine = envelope(
            seq=n,
            groups=groups({"no": 0, "n_tasks": 4 * n}, {"no": n + 1, "prefix": f"p{n}"}),
            computations=[wire.Computation(no=0, start_ms=START_MS, stop_ms=None if n < 3 else START_MS + 9)],
            events=[event(no=n)],
            received_at=START + n,
            totals=totals(n),
        )
        theirs = envelope("globex", 9, cluster=OTHER, seq=n, exceptions=[exception(no=n)], received_at=START + n)
        rig.write(mine, theirs, mine, name=f"a{n}")
        rig.write(mine, name=f"again{n}")
    rig.write(
        envelope(seq=3, received_at=START + DAY_S, events=[event(no=3)], totals=totals(3)),
        envelope(
            seq=4,
            received_at=START + DAY_S,
            groups=groups({"no": 0, "n_tasks": 20}),
            totals=wire.Totals(n_workers=1, thread_us=1_000, action_us={"compute": 170}),
        ),
        envelope("globex", 9, cluster=OTHER, seq=3, exceptions=[exception(no=3)], received_at=START + DAY_S),
        name="next-day",
    )


START_MS = int(START * 1000)


def everything(rig: LakeRig) -> dict[tuple[str, str], Any]:
    """What the two accounts can see of both days."""
    found: dict[tuple[str, str], Any] = {}
    for account in ("acme", "globex"):
        for query in ("computations", "groups", "events", "workers", "samples"):
            cluster = CLUSTER if account == "acme" else OTHER
            found[account, query] = rig.records(query, account=account, last=TOMORROW, cluster=cluster)
        for query in ("exceptions", "prefixes", "exceptions_by_kind"):
            found[account, query] = rig.records(query, account=account, last=TOMORROW)
    assert found["acme", "groups"]
    assert found["globex", "exceptions_by_kind"][0]["count"] == 12
    return found


def lake_files(rig: LakeRig) -> dict[str, bytes]:
    return {key: rig.objects.get(key) for top in ("open/", "sealed/", "rollups/") for key in rig.listed(top)}


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


class Dying:
    """An ObjectStore that dies right after its n-th change: what comes next finds all that was done before."""

    def __init__(self, objects: ObjectStore, n: int) -> None:
        self.objects, self.left = objects, n

    def _changed(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise StoreError("dead")

    def put_new(self, key: str, body: bytes) -> None:
        self.objects.put_new(key, body)
        self._changed()

    def delete(self, key: str) -> None:
        self.objects.delete(key)
        self._changed()

    def get(self, key: str) -> bytes:
        return self.objects.get(key)

    def list(self, prefix: str) -> Iterator[str]:
        return self.objects.list(prefix)


def _whole_life(rig: LakeRig, clock: FakeClock, objects: ObjectStore, late: bytes) -> None:
    """Seal the first day, let a message come too late for it, sweep."""
    clock.at = OVER
    compactor(rig, clock, objects).run()
    rig.objects.put_new(layout.open_key("events", DAY, "late"), late)
    clock.at = OVER + 3600
    compactor(rig, clock, objects).run()


def _late_events(root: Path) -> bytes:
    scratch = LakeRig(root)
    scratch.write(envelope(seq=9, events=[event(no=99)]), name="late")
    return scratch.objects.get(layout.open_key("events", DAY, "late"))


def test_killed_at_any_change_and_run_again_gives_the_same_files(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no power cut here, and hundreds of files
    late = _late_events(tmp_path / "scratch")
    filled = LakeRig(tmp_path / "filled")
    for n in range(3):
        mine = envelope(
            seq=n,
            groups=groups({"no": 0, "n_tasks": 4 * n}),
            exceptions=[exception(no=n)],
            events=[event(no=n)],
            received_at=START + n // 2 * DAY_S,
        )
        filled.write(mine, envelope("globex", 9, cluster=OTHER, seq=n))
        filled.write(mine, name=f"again-{n}")
    reference = LakeRig(Path(shutil.copytree(filled.root, tmp_path / "reference")))
    counting = Dying(reference.objects, 1 << 30)
    _whole_life(reference, clock, counting, late)
    changes = (1 << 30) - counting.left
    assert changes > 30
    assert len(reference.records("events", cluster=CLUSTER, last=TOMORROW)) == 4
    for n in range(1, changes + 1):
        rig = LakeRig(Path(shutil.copytree(filled.root, tmp_path / f"killed-{n}")))
        with pytest.raises(StoreError, match="dead"):
            _whole_life(rig, clock, Dying(rig.objects, n), late)
        _complete(rig, clock, late)
        assert lake_files(rig) == lake_files(reference), n


def _complete(rig: LakeRig, clock: FakeClock, late: bytes) -> None:
    clock.at = OVER
    compactor(rig, clock).run()
    arrived = {layout.open_key("events", DAY, "late"), layout.late_key("events", TOMORROW, "late", DAY)}
    if not arrived & set(rig.listed("open/events/")):
        rig.objects.put_new(layout.open_key("events", DAY, "late"), late)
    clock.at = OVER + 2 * 3600
    compactor(rig, clock).run()
    clock.advance(3600)
    compactor(rig, clock).run()


def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "PART_ROWS", 2)


def test_what_arrives_between_a_killed_run_and_the_next_is_neither_lost_nor_doubled(
    rig: LakeRig, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run has more rows than the first: with a split of its own it would tear the parts apart."""
    _small_parts(monkeypatch)
    rig.write(*(envelope(seq=n, events=[event(no=n)]) for n in range(5)))
    clock.at = OVER
    with pytest.raises(StoreError):
        compactor(rig, clock, Dying(rig.objects, 3)).run()
    early = envelope(seq=100, made_at_ms=START_MS - 5, events=[event(no=100)])
    rig.write(early)
    assert len(rig.records("events", cluster=CLUSTER)) == 6
    compactor(rig, clock).run()
    rows = rig.records("events", cluster=CLUSTER, last=TOMORROW)
    assert sorted(row["no"] for row in rows) == [0, 1, 2, 3, 4, 100]
    assert layout.late_key("events", TOMORROW, "batch-2", DAY) in rig.listed("open/events/")


def test_a_large_day_is_several_parts(rig: LakeRig, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.write(*(envelope(seq=n) for n in range(5)))
    before = rig.records("samples", cluster=CLUSTER)
    _small_parts(monkeypatch)
    clock.at = OVER
    compactor(rig, clock).run()
    assert rig.listed("sealed/samples/") == [layout.sealed_key("samples", "acme", DAY, part) for part in range(3)]
    assert rig.records("samples", cluster=CLUSTER) == before


def _answers_of(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Of which table and account the lake was asked for a whole day, from now on."""
    asked: list[tuple[str, str]] = []

    def counted(name: str) -> None:
        inner = getattr(Lake, name)

        def ask(self: Lake, table: str, *, account: str, day: date) -> Answer:
            asked.append((table, account))
            return inner(self, table, account=account, day=day)

        monkeypatch.setattr(Lake, name, ask)

    counted("day")
    counted("rollup")
    return asked


def test_a_killed_run_is_gone_on_with_and_not_begun_again(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after any part, even amid those of one table: what is whole is not computed again, the rest is."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no power cut here
    _small_parts(monkeypatch)
    asked = _answers_of(monkeypatch)
    filled = LakeRig(tmp_path / "filled")
    for account in ("acme", "globex"):
        cluster = CLUSTER if account == "acme" else OTHER
        filled.write(*(envelope(account, cluster=cluster, seq=n, exceptions=[exception(no=n)]) for n in range(3)))
    clock.at = OVER
    reference = LakeRig(Path(shutil.copytree(filled.root, tmp_path / "reference")))
    compactor(reference, clock).run()
    all_asked = asked[:]
    sealed = {tuple(key.split("/")[1:3]) for top in ("sealed/", "rollups/") for key in reference.listed(top)}
    n_parts = len(reference.listed("sealed/") + reference.listed("rollups/"))
    assert n_parts > len(sealed), "some are of several parts"
    for n in range(1, n_parts + 1):
        rig = LakeRig(Path(shutil.copytree(filled.root, tmp_path / f"killed-{n}")))
        with pytest.raises(StoreError, match="dead"):
            compactor(rig, clock, Dying(rig.objects, 1 + n)).run()  # the plan, and n parts
        asked.clear()
        whole = [
            (table, account)
            for table, account in all_asked
            if (table, f"account={account}") in sealed and _same(rig, reference, table, account)
        ]
        assert compactor(rig, clock).run() == [DAY]
        assert asked == [each for each in all_asked if each not in whole], n
        assert lake_files(rig) == lake_files(reference), n


def _same(rig: LakeRig, other: LakeRig, table: str, account: str) -> bool:
    """Whether all parts of a table and account stand in both lakes."""
    places = [f"{top}{table}/account={account}/" for top in ("sealed/", "rollups/")]
    return all(rig.listed(place) == other.listed(place) for place in places)


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
    known = lake._query
    odd = "IF(CAST(IF($account = '{}', 'x', '1') AS INTEGER) = 1, $account, '') AS account"

    def query(name: str) -> Any:
        found = known(name)
        if name != "prefixes_daily":
            return found
        return lake._Query(found.sql.replace("$account AS account", odd.format(account)), found.reads)

    monkeypatch.setattr(lake, "_query", query)


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

"""A run that was killed, and the next one."""

from __future__ import annotations

import os
import shutil
from datetime import date
from pathlib import Path

import pytest

from daskscope.testing import CLUSTER, event, exception, groups
from daskscope_lambdas.ports import ObjectStore, StoreError
from daskscope_lambdas.testing import FakeClock
from daskscope_query import layout
from daskscope_query.lake import Answer, Lake
from tests.lambdas.service.compacting import OTHER, OVER, START_MS, Dying, compactor, lake_files, small_parts
from tests.query.lake_rig import DAY, DAY_S, START, TOMORROW, LakeRig, envelope


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


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
def test_killed_at_any_change_and_run_again_gives_the_same_files(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """After each change in the long form, after every seventh in the short one."""
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
    assert changes > 30, changes
    assert len(reference.records("events", cluster=CLUSTER, last=TOMORROW)) == 4
    for n in range(1, changes + 1, step):
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


def test_what_arrives_between_a_killed_run_and_the_next_is_neither_lost_nor_doubled(
    rig: LakeRig, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run has more rows than the first: with a split of its own it would tear the parts apart."""
    small_parts(monkeypatch)
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


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
def test_a_killed_run_is_gone_on_with_and_not_begun_again(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Killed after any part (every seventh, in the short form), even amid those of one table.

    What is whole is not computed again, the rest is.
    """
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no power cut here
    small_parts(monkeypatch)
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
    for n in range(1, n_parts + 1, step):
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

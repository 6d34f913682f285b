"""What came of a cluster's messages, counted against what it made."""

import dataclasses
from typing import Any

import pytest

from daskscope.testing import CLUSTER, boot_at
from daskscope_lambdas.adapters.local import Database, SqliteDeletions
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.completeness import WAITING_S, completeness, end
from daskscope_lambdas.service.found import Asker
from tests.query.lake_rig import DAY_S, OTHER, START, START_MS, LakeRig, envelope

LATER = boot_at(START_MS + 3_600_000)
ROW = ClusterRow(
    account="acme",
    id=1,
    uuid=CLUSTER,
    started_at=START,
    first_received_at=START,
    last_received_at=START + DAY_S,
    boot=boot_at(START_MS),
    seq=9,
    made_at=START + 90,
    next_s=10.0,
    phase="closed",
)


@pytest.fixture
def asker(rig: LakeRig) -> Asker:
    rig.root.mkdir(parents=True, exist_ok=True)
    return Asker(str(rig.root), rig.seals, SqliteDeletions(Database(rig.root.parent / "registry.sqlite")))


def write(rig: LakeRig, *numbers: int, **changes: Any) -> None:
    skew_ms = changes.pop("skew_ms", None)
    rig.write(*(dataclasses.replace(envelope(seq=seq, **changes), skew_ms=skew_ms) for seq in numbers))


def found(asker: Asker, row: ClusterRow = ROW, later_s: float = WAITING_S + 1) -> dict[str, Any]:
    return completeness(asker, row, row.last_received_at + later_s)


def counted(told: dict[str, Any]) -> tuple[int, ...]:
    return tuple(told[name] for name in ("expected", "received", "waiting", "missing", "merged"))


def test_all_of_it(rig: LakeRig, asker: Asker) -> None:
    write(rig, *range(10))
    write(rig, 3, 4, received_at=START + DAY_S)  # again, the next day
    write(rig, 0, 1, 2, cluster=OTHER)
    told = found(asker)
    assert counted(told) == (10, 10, 0, 0, 0)
    assert told["sentence"] == "Complete: 10 of 10 messages."
    assert told["as_of"] == "2026-11-22T08:00:00.000Z"
    assert told["end"] == {"how": "closed", "at": "2026-11-21T08:01:30.000Z", "proven": True}
    assert (told["lost"], told["clock_skew_s"], told["skipped"]) == ({}, None, [])


def test_what_is_missing_is_missing_until_it_is_there(rig: LakeRig, asker: Asker) -> None:
    write(rig, 0, 1, 2, 5, 6, 9)
    told = found(asker)
    assert counted(told) == (10, 6, 0, 4, 0)
    assert told["sentence"] == "Incomplete: 6 of 10 messages, 4 missing."
    write(rig, 3, 4, 7, 8)
    assert counted(found(asker)) == (10, 10, 0, 0, 0)


def test_what_was_acknowledged_is_on_the_way_and_then_missing(rig: LakeRig, asker: Asker) -> None:
    write(rig, 0, 1, 2)
    assert counted(found(asker, later_s=WAITING_S)) == (10, 3, 7, 0, 0)
    assert found(asker, later_s=0)["sentence"] == "Complete so far: 3 of 10 messages, 7 on the way."
    assert counted(found(asker)) == (10, 3, 0, 7, 0)


def test_a_cluster_of_which_the_lake_has_nothing(asker: Asker) -> None:
    assert counted(found(asker, later_s=0)) == (10, 0, 10, 0, 0)
    assert counted(found(asker)) == (10, 0, 0, 10, 0)
    unheard = dataclasses.replace(ROW, boot="", seq=-1, phase="running", next_s=0.0)
    told = found(asker, unheard, 0)
    assert counted(told) == (0, 0, 0, 0, 0)
    assert told["sentence"] == "No message has arrived."


@pytest.mark.parametrize(
    ("plain", "merged", "received"),
    [
        ((0, 1), {4: 2, 9: 4}, (10, 6)),
        ((0, 1, 2, 3), {4: 2, 9: 4}, (10, 4)),  # two of those merged came all the same
        (range(10), {4: 4, 9: 4}, (10, 0)),
        ((0, 2, 5, 8), {4: 1, 7: 2, 9: 1}, (9, 2)),  # 1 is missing
        ((), {9: 9}, (10, 9)),
        ((), {9: 99}, (10, 9)),
        ((2, 7), {5: 1, 9: 8}, (9, 5)),  # one of which another is a part, as no plugin says
    ],
)
def test_a_message_stands_for_those_in_it_and_none_counts_twice(
    rig: LakeRig, asker: Asker, plain: Any, merged: dict[int, int], received: tuple[int, int]
) -> None:
    write(rig, *(seq for seq in plain if seq not in merged))
    for seq, n in merged.items():
        write(rig, seq, merged=n)
    told = found(asker)
    assert (told["received"], told["merged"]) == received
    assert told["missing"] == 10 - received[0]


def test_each_boot_is_counted_by_itself(rig: LakeRig, asker: Asker) -> None:
    write(rig, 0, 1, 3, lost={"buffer-full": 2})
    write(rig, 0, 2, boot=LATER, lost={"buffer-full": 1, "events": 5}, identity=None)
    told = found(asker, dataclasses.replace(ROW, boot=LATER, seq=2))
    assert counted(told) == (4 + 3, 3 + 2, 0, 1 + 1, 0)
    assert told["lost"] == {"buffer-full": 3, "events": 5}
    assert told["sentence"] == "Incomplete: 5 of 7 messages, 2 missing, 8 losses told by the plugin."
    newer = dataclasses.replace(ROW, boot=LATER, seq=3, lost={"events": 6})
    assert found(asker, newer)["lost"] == {"buffer-full": 2, "events": 6}


def test_a_part_is_no_message(rig: LakeRig, asker: Asker) -> None:
    write(rig, *range(10))
    write(rig, 10, part=1)
    write(rig, 9, part=1)
    assert counted(found(asker)) == (10, 10, 0, 0, 0)


def test_how_far_the_clock_was_off(rig: LakeRig, asker: Asker) -> None:
    for seq, skew_ms in enumerate((-1_000, 2_500, 3_600_000, None)):
        write(rig, seq, skew_ms=skew_ms)
    assert found(asker)["clock_skew_s"] == {"median": 2.5, "least": -1.0, "most": 3600.0}


@pytest.mark.parametrize(
    ("changes", "later_s", "how", "proven"),
    [
        ({}, 0.0, "closed", True),
        ({"reason": "closed"}, 9e9, "closed", True),
        ({"reason": "idle-timeout-exceeded"}, 0.0, "idle-closed", True),
        ({"reason": "close-requested"}, 0.0, "close-requested", True),
        ({"reason": "failure-to-start-<class 'OSError'>"}, 0.0, "failed", True),
        ({"phase": "running"}, 30.0, None, False),
        ({"phase": "running", "made_at": START + 70}, 31.0, "lost", False),
    ],
)
def test_how_it_ended_and_who_says_so(changes: dict[str, Any], later_s: float, how: str | None, proven: bool) -> None:
    row = dataclasses.replace(ROW, **changes)
    told = end(row, row.last_received_at + later_s)
    at = {None: None, "lost": "2026-11-21T08:01:10.000Z"}.get(how, "2026-11-21T08:01:30.000Z")
    assert told == {"how": how, "at": at, "proven": proven}


def test_a_last_message_that_nobody_heard_is_not_missing(rig: LakeRig, asker: Asker) -> None:
    write(rig, *range(10))
    told = found(asker, dataclasses.replace(ROW, phase="running"))
    assert counted(told) == (10, 10, 0, 0, 0)
    assert told["end"]["proven"] is False
    assert told["sentence"] == "Complete: 10 of 10 messages; its end was not told."

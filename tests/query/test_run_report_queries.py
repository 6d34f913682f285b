"""What the questions of a run's report make of messages."""

from daskscope import wire
from daskscope.testing import CLUSTER, START_MS, boot_at, exception, groups, tasks
from tests.query.lake_rig import OTHER, LakeRig, envelope

BOOT = boot_at(START_MS)


def two_groups() -> wire.Groups:
    """One of computation 0, one of computation 1."""
    return groups({"no": 0, "prefix": "load", "computation": 0}, {"no": 1, "prefix": "sum", "computation": 1})


def test_tasks_of_a_worker_stand_together_earliest_first(rig: LakeRig) -> None:
    rows = tasks(4, group=[0, 1, 1, -1], start_ms=[30, 10, 0, 20], erred=[0, 0, 1, 0])
    rig.write(
        envelope(groups=two_groups(), tasks=rows),
        envelope(cluster=OTHER, cluster_id=2, groups=two_groups(), tasks=tasks(3)),
    )
    found = rig.records("run_tasks", cluster=CLUSTER, limit=10)
    told = [(row["worker"][-1], row["start_ms"] - START_MS, row["prefix"], row["erred"]) for row in found]
    assert told == [("1", 0, "sum", True), ("1", 30, "load", False), ("2", 10, "sum", False), ("2", 20, None, False)]
    assert {row["n_rows"] for row in found} == {4}


def test_of_many_tasks_the_earliest_are_told_and_all_are_counted(rig: LakeRig) -> None:
    rig.write(envelope(groups=two_groups(), tasks=tasks(6, start_ms=[5, 4, 3, 2, 1, 0])))
    found = rig.records("run_tasks", cluster=CLUSTER, limit=3)
    assert sorted(row["start_ms"] - START_MS for row in found) == [0, 1, 2]
    assert {row["n_rows"] for row in found} == {6}


def test_tasks_of_one_computation(rig: LakeRig) -> None:
    rig.write(envelope(groups=two_groups(), tasks=tasks(5, group=[0, 0, 1, 1, -1])))
    assert [row["prefix"] for row in rig.records("run_tasks", cluster=CLUSTER, computation=f"{BOOT}-1", limit=9)] == [
        "sum",
        "sum",
    ]


def test_exceptions_are_told_by_family_as_they_were_the_last_time(rig: LakeRig) -> None:
    rig.write(
        envelope(
            groups=two_groups(),
            exceptions=[
                exception(no=0, text="row 17 is bad", type="ValueError", count=2, group=0, last_ms=START_MS + 1),
                exception(no=1, text="row 23 is bad", type="ValueError", count=3, group=1, last_ms=START_MS + 9),
                exception(no=2, text="no such column", type="KeyError", count=4, group=1),
            ],
        )
    )
    found = rig.records("run_exceptions", cluster=CLUSTER, limit=9)
    assert [(row["type"], row["text"], row["count"]) for row in found] == [
        ("ValueError", "row 23 is bad", 5),
        ("KeyError", "no such column", 4),
    ]
    of_one = rig.records("run_exceptions", cluster=CLUSTER, computation=f"{BOOT}-1", limit=1)
    assert [(row["type"], row["count"], row["n_families"]) for row in of_one] == [("KeyError", 4, 2)]

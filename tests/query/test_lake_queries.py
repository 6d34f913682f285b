"""What single questions make of messages."""

from datetime import UTC, datetime, timedelta
from typing import Any

from daskscope import wire
from daskscope.testing import (
    CLUSTER,
    START_MS,
    boot_at,
    exception,
    groups,
    identity,
    workers,
)
from tests.query.lake_rig import DAY_S, OTHER, START, TOMORROW, LakeRig, envelope


def test_exceptions_by_user_cluster_and_time(rig: LakeRig) -> None:
    bob = identity(user="bob")
    rig.write(
        envelope(exceptions=[exception(no=0, last_ms=START_MS), exception(no=1, last_ms=START_MS + 5_000)]),
        envelope(
            cluster=OTHER,
            cluster_id=2,
            identity=bob,
            exceptions=[exception(no=0, last_ms=START_MS + 3_000)],
        ),
    )
    found = [(row["user"], row["no"]) for row in rig.records("exceptions")]
    assert found == [("ada", 1), ("bob", 0), ("ada", 0)]
    assert [row["user"] for row in rig.records("exceptions", user="bob")] == ["bob"]
    assert [row["no"] for row in rig.records("exceptions", cluster=CLUSTER)] == [1, 0]
    since = datetime.fromtimestamp(START + 3, UTC)
    assert [(r["user"], r["no"]) for r in rig.records("exceptions", since=since)] == [("ada", 1), ("bob", 0)]
    assert [(r["user"], r["no"]) for r in rig.records("exceptions", limit=1, offset=1)] == [("bob", 0)]


def test_the_user_is_known_from_an_earlier_day(rig: LakeRig) -> None:
    rig.write(envelope(seq=0))
    rig.write(envelope(seq=9_000, received_at=START + DAY_S, exceptions=[exception()]))
    assert [row["user"] for row in rig.records("exceptions", first=TOMORROW, last=TOMORROW)] == ["ada"]


def test_samples_are_at_most_600_points_and_keep_the_greatest_memory(rig: LakeRig) -> None:
    many = [
        envelope(seq=n, totals=wire.Totals(n_workers=n, memory_bytes=10**9 if n == 777 else n), workers=workers([]))
        for n in range(2_000)
    ]
    rig.write(*many)
    rows = rig.records("samples", cluster=CLUSTER)
    assert 500 < len(rows) <= 600
    assert max(row["memory_bytes"] for row in rows) == 10**9
    assert rows[-1]["n_workers"] == 1_999
    assert [row["seq"] for row in rows] == sorted(row["seq"] for row in rows)


def test_workers_last_values_and_peaks(rig: LakeRig) -> None:
    rig.write(
        envelope(seq=0, workers=workers(["a", "b"], memory_mib=[100, 900], cpu_pct=[10, 50])),
        envelope(seq=1, workers=workers(["a", "b"], memory_mib=[700, 800], cpu_pct=[20, 70])),
        envelope(seq=2, workers=workers(["a"], memory_mib=[300], cpu_pct=[60], status=["paused"])),
    )
    a, b = rig.records("workers", cluster=CLUSTER)
    assert (a["address"], a["memory_bytes"], a["peak_memory_bytes"]) == ("a", 300 << 20, 700 << 20)
    assert (a["status"], a["gone"], a["mean_cpu_pct"], a["cpu_pct"]) == ("paused", False, 30.0, 60)
    assert (b["gone"], b["last_at"] - b["first_at"]) == (True, timedelta(seconds=10))


def test_workers_are_not_gone_for_a_message_that_tells_of_none(rig: LakeRig) -> None:
    brief: dict[str, Any] = {"workers": workers([]), "itself": wire.Itself(detail=5)}
    rig.write(
        envelope(seq=0, workers=workers(["a", "b"])),
        envelope(seq=1, workers=workers(["a"])),
        envelope(seq=2, totals=wire.Totals(n_workers=1), **brief),
    )
    assert [worker["gone"] for worker in rig.records("workers", cluster=CLUSTER)] == [False, True]
    rig.write(envelope(seq=3, totals=wire.Totals(n_workers=0), **brief))
    assert [worker["gone"] for worker in rig.records("workers", cluster=CLUSTER)] == [True, True]


def test_computations_fail_with_their_exceptions(rig: LakeRig) -> None:
    rig.write(
        envelope(
            computations=[wire.Computation(no=n, start_ms=START_MS + n, stop_ms=START_MS + 9) for n in range(3)],
            groups=groups({"no": 0, "computation": 0}, {"no": 1, "computation": 1}, {"no": 2, "computation": None}),
            exceptions=[exception(no=0, group=1), exception(no=1, group=2), exception(no=2, group=None)],
        )
    )
    rows = rig.records("computations", cluster=CLUSTER)
    assert [(row["no"], row["status"]) for row in rows] == [(2, "unknown"), (1, "erred"), (0, "finished")]
    assert [row["no"] for row in rig.records("computations", cluster=CLUSTER, limit=1, offset=2)] == [0]


def test_groups_name_what_they_depend_on(rig: LakeRig) -> None:
    rig.write(envelope(seq=0, groups=groups({"no": 0, "name": "read"})))
    rig.write(envelope(seq=1, groups=groups({"no": 1, "name": "sum", "dependencies": [0], "computation": 4})))
    read, total = rig.records("groups", cluster=CLUSTER)
    assert (read["dependencies"], total["dependencies"]) == ([], ["read"])
    assert total["action_us"] == {"compute": 4_000_000}
    narrowed = rig.records("groups", cluster=CLUSTER, computations=[f"{boot_at(START_MS)}-4"])
    assert [row["dependencies"] for row in narrowed] == [["read"]]


def test_a_days_share_of_a_group_is_what_the_day_added(rig: LakeRig) -> None:
    rig.write(envelope(seq=0, groups=groups({"no": 0, "n_tasks": 4, "action_us": {"compute": 10}})))
    rig.write(
        envelope(
            seq=1,
            received_at=START + DAY_S,
            groups=groups({"no": 0, "n_tasks": 10, "action_us": {"compute": 30, "transfer": 5}}),
        ),
        # Came late: the first day has it as new already.
        envelope(
            seq=0, received_at=START + DAY_S + 1, groups=groups({"no": 0, "n_tasks": 4, "action_us": {"compute": 10}})
        ),
    )
    assert [row["n_tasks"] for row in rig.records("prefixes", first=TOMORROW, last=TOMORROW)] == [6]
    both = rig.records("prefixes", last=TOMORROW)
    assert [(row["n_tasks"], row["action_us"]) for row in both] == [(10, {"compute": 30, "transfer": 5})]


def test_families_count_a_repeat_on_another_day_once(rig: LakeRig) -> None:
    family = exception(count=3)
    rig.write(envelope(seq=0, exceptions=[family]))
    rig.write(envelope(seq=0, exceptions=[family], received_at=START + DAY_S))
    rig.write(envelope(seq=1, exceptions=[exception(no=1, count=2)], received_at=START + DAY_S))
    kinds = rig.records("families", last=TOMORROW)
    assert [(kind["text"], kind["count"], kind["users"]) for kind in kinds] == [("no such column", 5, ["ada"])]

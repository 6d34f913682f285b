"""What a day added of time in tasks that failed, told from totals that only grow."""

from __future__ import annotations

from datetime import date
from typing import Any

from daskscope.testing import CLUSTER, START_MS, boot_at, metrics
from daskscope_query.questions import baselines, sources
from tests.query.lake_rig import DAY, DAY_S, OTHER, START, TOMORROW, LakeRig, envelope


def failed(rig: LakeRig, day: date = DAY) -> dict[str, Any]:
    rows = rig.lake().rollup("clusters_daily", account="acme", day=day).records()
    return {row["cluster"]: row["failed_us"] for row in rows}


def told(seq: int, *entries: dict[str, Any], day: int = 0, **changes: Any) -> Any:
    return envelope(seq=seq, received_at=START + day * DAY_S, metrics=metrics(*entries), **changes)


def test_failed_and_cancelled_seconds_of_all_spans_and_prefixes(rig: LakeRig) -> None:
    rig.write(
        told(
            0,
            {"activity": "failed", "value": 1.5},
            {"activity": "failed", "value": 2.0, "span": None},
            {"activity": "cancelled", "value": 0.25, "prefix": "other"},
            {"activity": "failed", "value": 9.0, "unit": "count"},
            {"activity": "failed", "value": 9.0, "context": "gather-dep"},
            {"value": 9.0},
        ),
        told(0, {"value": 5.0}, cluster=OTHER, cluster_id=2),
        envelope(cluster="0" * 31 + "3", cluster_id=3),
    )
    assert failed(rig) == {CLUSTER: 3_750_000, OTHER: 0, "0" * 31 + "3": None}


def test_a_day_has_what_it_added(rig: LakeRig) -> None:
    rig.write(told(0, {"activity": "failed", "value": 1.0}), told(1, {"activity": "failed", "value": 4.0}))
    rig.write(
        told(9, {"activity": "failed", "value": 5.5}, {"activity": "failed", "prefix": "new", "value": 1.0}, day=1)
    )
    assert (failed(rig), failed(rig, TOMORROW)) == ({CLUSTER: 4_000_000}, {CLUSTER: 2_500_000})


def test_a_day_on_which_no_metric_changed_added_nothing(rig: LakeRig) -> None:
    rig.write(told(0, {"activity": "failed", "value": 1.0}))
    rig.write(envelope(seq=9, received_at=START + DAY_S))
    assert failed(rig, TOMORROW) == {CLUSTER: 0}


def test_what_came_late_adds_nothing_and_another_run_counts_from_nought(rig: LakeRig) -> None:
    rig.write(told(5, {"activity": "failed", "value": 4.0}))
    rig.write(told(3, {"activity": "failed", "value": 2.0}, day=1))
    assert failed(rig, TOMORROW) == {CLUSTER: 0}
    again = boot_at(START_MS + 86_400_000)
    rig.write(told(0, {"activity": "failed", "value": 3.0}, day=1, boot=again))
    assert failed(rig, TOMORROW) == {CLUSTER: 3_000_000}


def test_odd_values_spoil_no_day(rig: LakeRig) -> None:
    rig.write(
        told(0, {"activity": "failed", "value": 1e300}),
        told(0, {"activity": "failed", "value": -7.0}, cluster=OTHER, cluster_id=2),
    )
    assert failed(rig) == {CLUSTER: 9_000_000_000_000_000_000, OTHER: 0}


def test_a_day_without_metrics_is_whole_all_the_same() -> None:
    assert sources("clusters_daily") == ["samples"]
    assert "fine_metrics" in baselines()

import dataclasses
import json
from datetime import UTC, datetime

import pytest

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.records import cluster, iso, last_sign_at, status

ROW = ClusterRow(
    account="acme",
    id=7,
    uuid="0" * 31 + "1",
    started_at=1000.0,
    first_received_at=1001.0,
    last_received_at=2000.0,
    made_at=1999.5,
    next_s=10.0,
    identity={"scheduler_id": "Scheduler-x", "name": "demo", "user": "ada", "tags": {"team": "weather"}},
    totals={"n_workers": 2, "no_worker": 3, "in_memory": 4, "thread_us": 5_500_000, "action_us": {"compute": 1_250_000},
            "idle_since_ms": 1_500_000, "idle_timeout_us": 60_000_000},
)  # fmt: skip


@pytest.mark.parametrize(
    ("phase", "silent_s", "expected"),
    [("running", 30.0, "running"), ("running", 30.1, "lost"), ("closed", 30.1, "stopped"), ("closed", 0, "stopped")],
)
def test_lost_after_three_missed_messages(phase: str, silent_s: float, expected: str):
    row = dataclasses.replace(ROW, phase=phase)
    assert status(row, ROW.last_received_at + silent_s) == expected


def test_the_record_has_exactly_the_documented_keys():
    documented = """id scheduler_id name user user_claimed host status created stopped reason last_seen duration workers
    threads clients memory managed unmanaged spilled memory_limit peak_memory peak_workers workers_lost n_computations
    n_tasks n_tasks_erred tasks thread_seconds seconds idle_since idle_timeout held_bytes desired_workers
    adaptive_minimum adaptive_maximum close_asked scheduler tags kind python python_path platform versions dashboard
    lost url"""
    record = cluster(ROW, 2000.0)
    assert list(record) == documented.split()
    assert json.loads(json.dumps(record)) == record


def test_units_are_seconds_and_moments_are_iso():
    record = cluster(ROW, 2000.0)
    assert (record["thread_seconds"], record["seconds"], record["idle_timeout"]) == (5.5, {"compute": 1.25}, 60.0)
    assert (record["created"], record["idle_since"]) == ("1970-01-01T00:16:40.000Z", "1970-01-01T00:25:00.000Z")
    assert record["tasks"] == {"waiting": 0, "queued": 0, "no-worker": 3, "processing": 0, "memory": 4, "erred": 0}
    assert record["stopped"] is None
    assert record["url"] == "acme/analytics/clusters/7"


@pytest.mark.parametrize(("managed", "unmanaged"), [(60, 40), (0, 100), (130, 0)])
def test_unmanaged_memory_is_the_rest_and_never_below_nothing(managed: int, unmanaged: int):
    totals = {"memory_bytes": 100, "managed_bytes": managed, "spilled_bytes": 7}
    record = cluster(dataclasses.replace(ROW, totals=totals), 2000.0)
    assert (record["managed"], record["unmanaged"], record["spilled"]) == (managed, unmanaged, 7)


def test_what_adaptive_scaling_wants_and_what_somebody_asked_for():
    record = cluster(ROW, 2000.0)
    assert [record[name] for name in ("desired_workers", "adaptive_minimum", "adaptive_maximum", "close_asked")] == (
        [None] * 4
    )
    adaptive = {**ROW.totals, "desired_workers": 0, "adaptive_minimum": 2, "adaptive_maximum": 9}
    row = dataclasses.replace(ROW, totals=adaptive, close_asked_at=1990.0, close_asked_by="ann")
    record = cluster(row, 2000.0)
    assert [record[name] for name in ("desired_workers", "adaptive_minimum", "adaptive_maximum")] == [0, 2, 9]
    assert record["close_asked"] == {"at": "1970-01-01T00:33:10.000Z", "by": "ann", "reason": None}


def test_a_lost_cluster_stopped_at_its_last_sign_of_life():
    record = cluster(ROW, 9999.0)
    assert (record["status"], record["stopped"]) == ("lost", "1970-01-01T00:33:19.500Z")


@pytest.mark.parametrize(("phase", "now"), [("closed", 2000.0), ("running", 9999.0)])
def test_a_cluster_that_has_ended_has_nobody_now_but_its_peaks(phase: str, now: float):
    fields = "n_workers n_threads n_clients memory_bytes managed_bytes spilled_bytes memory_limit_bytes"
    present = dict.fromkeys(fields.split(), 5)
    kept = {"peak_memory_bytes": 7, "peak_workers": 7, "n_workers_lost": 7, "held_bytes": 7, "processing": 7}
    row = dataclasses.replace(ROW, phase=phase, totals=present | kept)
    record, before = cluster(row, now), cluster(dataclasses.replace(row, phase="running"), 2000.0)
    names = ("workers", "threads", "clients", "memory", "managed", "spilled", "memory_limit")
    assert [before[name] for name in names] == [5] * 7
    assert [record[name] for name in (*names, "unmanaged")] == [0] * 8
    assert [record[name] for name in ("peak_memory", "peak_workers", "workers_lost", "held_bytes")] == [7] * 4
    assert record["tasks"]["processing"] == 7


def test_messages_out_of_a_spool_do_not_make_a_cluster_younger():
    assert last_sign_at(dataclasses.replace(ROW, made_at=1200.0)) == 1200.0
    assert last_sign_at(dataclasses.replace(ROW, made_at=5000.0)) == 2000.0, "a scheduler's clock that is ahead"


def test_before_its_identity_a_cluster_has_the_id_that_dask_gave_it():
    row = dataclasses.replace(ROW, identity={}, totals={})
    record = cluster(row, 2000.0)
    assert record["scheduler_id"] == "Scheduler-00000000-0000-0000-0000-000000000001"
    assert (record["name"], record["user"], record["seconds"]) == ("cluster 7", None, {})


def test_iso_takes_seconds_and_datetimes():
    assert iso(0.0015) == iso(datetime(1970, 1, 1, 0, 0, 0, 1500, UTC)) == "1970-01-01T00:00:00.001Z"
    assert iso(None) is None

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from daskscope import wire
from daskscope.testing import (
    CLUSTER,
    INTERVAL_MS,
    START_MS,
    boot_at,
    death,
    environment,
    exception,
    groups,
    identity,
    logs,
    member,
    metrics,
    profile,
    span,
    tasks,
    workers,
)
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.found import Asker, Found
from daskscope_lambdas.service.observed import Observed
from daskscope_lambdas.testing import FakeClock
from tests.query.lake_rig import DAY_S, START, LakeRig, envelope

BOOT = boot_at(START_MS)
A, B = "tcp://127.0.0.1:40001", "tcp://127.0.0.1:40002"
ROW = ClusterRow(account="acme", id=1, uuid=CLUSTER, started_at=START, first_received_at=START, last_received_at=START)


@pytest.fixture
def observed(rig: LakeRig, clock: FakeClock) -> Observed:
    return Observed(Asker(str(rig.root), rig.seals, rig.deletions), clock)


def at(ms: int) -> datetime:
    return datetime.fromtimestamp((START_MS + ms) / 1000, UTC)


def column(found: Found, name: str) -> list[Any]:
    return [row[name] for row in found.rows]


SOFTWARE = [
    environment(),
    environment(packages={"distributed": "2026.8.0", "numpy": "1.26.4"}),
    environment(python="3.12.1", packages={"distributed": "2026.8.0"}),
]


def test_members_with_what_differs_from_the_scheduler(rig: LakeRig, observed: Observed) -> None:
    machine = wire.Hardware(cores=8, memory_bytes=32 << 30, gpus=["T4"], provider="aws", instance_type="g4dn.2xlarge")
    rig.write(
        envelope(
            members=[
                member(no=0, role="scheduler", id="tcp://s", joined_ms=START_MS, environment=0),
                member(no=1, id=A, environment=1, hardware=0),
                member(no=2, id=B, environment=1, joined_ms=START_MS + 600),
                member(no=3, role="client", id="Client-1", environment=2, joined_ms=START_MS + 700),
                member(no=4, role="client", id="Client-2", joined_ms=START_MS + 800, left_ms=START_MS + 900),
            ],
            environments=SOFTWARE,
            hardware=[machine],
        ),
        envelope(seq=1, members=[member(no=1, id=A, environment=1, hardware=0, left_ms=START_MS + 9_000)]
                 , environments=SOFTWARE, hardware=[machine]),
    )  # fmt: skip
    found = observed.members(ROW, 10, 0)
    assert column(found, "id") == ["tcp://s", A, B, "Client-1", "Client-2"]
    scheduler, worker, _, client, silent = found.rows
    assert (scheduler["mismatched"], scheduler["hardware"]) == ({}, None)
    assert worker["mismatched"] == {"numpy": ("1.26.4", "2.1.0")}
    assert client["mismatched"] == {"numpy": (None, "2.1.0"), "python": ("3.12.1", "3.11.7")}
    assert (silent["packages"], silent["mismatched"], silent["left"]) == (None, {}, at(900))
    assert (worker["left"], worker["joined"]) == (at(9_000), at(500))
    assert worker["hardware"] == {
        "cores": 8, "memory": 32 << 30, "gpus": ["T4"], "provider": "aws", "instance_type": "g4dn.2xlarge",
        "region": "", "zone": "", "lifecycle": "",
    }  # fmt: skip
    assert column(observed.members(ROW, 1, 2), "id") == [B]
    assert column(observed.members(ROW, 10, 0, "client"), "id") == ["Client-1", "Client-2"]
    assert observed.members(ROW, 10, 0).more["mismatches"] == [
        {"package": "numpy", "scheduler": "2.1.0", "others": [
            {"role": "worker", "version": "1.26.4", "n": 2}, {"role": "client", "version": None, "n": 1},
        ]},
        {"package": "python", "scheduler": "3.11.7", "others": [{"role": "client", "version": "3.12.1", "n": 1}]},
    ]  # fmt: skip


def test_who_is_there_at_the_end_leaves_then(rig: LakeRig, observed: Observed) -> None:
    rig.write(envelope(members=[
        member(no=0), member(no=1, joined_ms=START_MS + 600, left_ms=START_MS + 700),
        member(no=2, joined_ms=START_MS + 9_000),
    ]))  # fmt: skip
    ended = replace(ROW, phase="closed", made_at=START + 5, last_received_at=START + 6)
    assert column(observed.members(ended, 10, 0), "left") == [at(5_000), at(700), at(9_000)]
    assert column(observed.members(ROW, 10, 0), "left") == [None, at(700), None]


def test_no_scheduler_no_mismatch(rig: LakeRig, observed: Observed) -> None:
    rig.write(envelope(members=[member(environment=0)], environments=SOFTWARE))
    assert observed.members(ROW, 10, 0).more["mismatches"] == []
    assert column(observed.members(ROW, 10, 0), "mismatched") == [{}]


LINES = logs(
    {"no": 0, "at_ms": START_MS, "level": 20, "text": "Start worker"},
    {"no": 1, "at_ms": START_MS + 1_000, "text": "Used 95% of _MEMORY_"},
    {"no": 2, "at_ms": START_MS + 2_000, "level": 40, "worker": B, "text": "boom\nTraceback: KeyError"},
    {"no": 3, "at_ms": START_MS + 3_000, "level": 35, "role": "nanny", "text": "Restarting", "dropped": 7},
    {"no": 4, "at_ms": START_MS + 4_000, "role": "scheduler", "worker": None, "text": "used 95 percent"},
)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, [4, 3, 2, 1, 0]),
        ({"level": 30}, [4, 3, 2, 1]),
        ({"level": 40}, [2]),
        ({"role": "nanny"}, [3]),
        ({"worker": A}, [3, 1, 0]),
        ({"text": "USED 95"}, [4, 1]),
        ({"text": "95%"}, [1]),
        ({"text": "_memory_"}, [1]),
        ({"text": "d_worker"}, []),
        ({"text": "traceback: keyerror"}, [2]),
        ({"since": at(2_000)}, [4, 3, 2]),
        ({"until": at(2_000)}, [2, 1, 0]),
        ({"since": at(1_000), "until": at(3_000), "level": 31}, [3, 2]),
    ],
)
def test_log_lines_by_what_they_are(rig: LakeRig, observed: Observed, wanted: dict[str, Any], expected: list[int]
                                    ) -> None:  # fmt: skip
    rig.write(envelope(logs=LINES))
    found = observed.logs(ROW, 10, 0, **wanted)
    assert [int((row["time"] - at(0)).total_seconds()) for row in found.rows] == expected


def test_every_line_is_on_some_page_and_none_is_cut(rig: LakeRig, observed: Observed) -> None:
    many = logs(*({"no": no, "at_ms": START_MS + no // 7, "text": f"{no} " + "x" * 3_000} for no in range(500)))
    rig.write(envelope(logs=many))
    told = [line for offset in range(0, 500, 60) for line in observed.logs(ROW, 60, offset).rows]
    assert [int(line["text"].split()[0]) for line in told] == list(range(499, -1, -1))
    assert {len(line["text"].split()[1]) for line in told} == {3_000}
    line = observed.logs(ROW, 1, 0).rows[0]
    assert set(line) == {"time", "level", "logger", "role", "worker", "text", "dropped"}


def test_levels_are_words_where_there_is_one(rig: LakeRig, observed: Observed) -> None:
    rig.write(envelope(logs=LINES))
    assert column(observed.logs(ROW, 10, 0), "level") == ["warning", "35", "error", "warning", "info"]


def test_a_span_has_the_sums_of_its_own_groups(rig: LakeRig, observed: Observed) -> None:
    outer, inner = span(id="o"), span(id="i", parent="o", name=["etl", "clean"], enqueued_ms=START_MS + 1, stop_ms=None)
    rig.write(
        envelope(
            spans=[outer, inner, span(id="empty", enqueued_ms=START_MS + 2, start_ms=None)],
            groups=groups(
                {"no": 0, "span": "o"},
                {"no": 1, "span": "i", "states": {"memory": 1, "erred": 2}, "action_us": {"transfer": 500_000}},
                {"no": 2, "span": "i", "states": {"memory": 3}},
                {"no": 3, "span": None},
            ),
            exceptions=[exception(group=1)],
        )
    )
    found = observed.spans(ROW, 10, 0).rows
    assert [row["id"] for row in found] == ["empty", "i", "o"]
    empty, inside, outside = found
    assert (empty["n_tasks"], empty["states"], empty["seconds"], empty["start"]) == (0, {}, {}, None)
    assert (inside["n_groups"], inside["n_tasks"], inside["bytes"], inside["n_tasks_erred"]) == (2, 8, 8_000, 3)
    assert (inside["states"], inside["seconds"]) == ({"memory": 4, "erred": 2}, {"transfer": 0.5, "compute": 4.0})
    assert (inside["name"], inside["parent"], inside["stop"]) == (["etl", "clean"], "o", None)
    assert (outside["n_tasks"], outside["enqueued"], outside["stop"]) == (4, at(0), at(5_000))
    assert [row["id"] for row in observed.spans(ROW, 1, 1).rows] == ["i"]


def test_metrics_by_span_and_summed_by_prefix(rig: LakeRig, observed: Observed) -> None:
    rig.write(
        envelope(
            metrics=metrics({"span": "a", "value": 1.0}, {"span": "b"}, {"span": None, "prefix": "", "value": 9.0})
        ),
        envelope(seq=1, metrics=metrics({"span": "a", "value": 2.5}, {"span": "a", "unit": "bytes", "value": 7e9})),
    )
    told = [(row["unit"], row["span"], row["value"]) for row in observed.metrics(ROW, 10, 0, None, False).rows]
    assert told == [("bytes", "a", 7e9), ("seconds", None, 9.0), ("seconds", "b", 4.0), ("seconds", "a", 2.5)]
    assert column(observed.metrics(ROW, 10, 0, "a", False), "value") == [7e9, 2.5]
    summed = observed.metrics(ROW, 10, 0, None, True).rows
    assert [(row["prefix"], row["value"], row["span"]) for row in summed] == [
        ("sum", 7e9, None), ("", 9.0, None), ("sum", 6.5, None),
    ]  # fmt: skip
    assert set(summed[0]) == {"span", "context", "prefix", "activity", "unit", "value"}


def test_metrics_without_a_unit_come_last(rig: LakeRig, observed: Observed) -> None:
    rates = {"span": None, "context": "transfer-bandwidth", "prefix": "", "activity": "", "unit": "", "value": 9e9}
    rig.write(envelope(metrics=metrics(rates, {}, {"unit": "bytes"})))
    for by_prefix in (False, True):
        assert column(observed.metrics(ROW, 10, 0, None, by_prefix), "unit") == ["bytes", "seconds", ""]


def test_tasks_of_all_groups_and_of_one(rig: LakeRig, observed: Observed) -> None:
    rig.write(
        envelope(
            groups=groups({"no": 0, "name": "sum-1"}, {"no": 1, "name": "read-2", "prefix": "read"}),
            tasks=tasks(4, group=[0, 1, None, 0], erred=[0, 1, 0, 0], duration_us=[2_500_000] * 4, weight=5),
        )
    )
    found = observed.tasks(ROW, 10, 0)
    assert column(found, "group") == ["sum-1", "read-2", None, "sum-1"]
    assert column(found, "status") == ["finished", "erred", "finished", "finished"]
    first = found.rows[0]
    assert (first["start"], first["stop"], first["duration"], first["weight"]) == (at(0), at(2_500), 2.5, 5)
    assert (first["worker"], first["prefix"], first["bytes"]) == (A, "sum", 28)
    assert column(observed.tasks(ROW, 10, 0, "read-2"), "id") == [f"{BOOT}-1"]
    assert column(observed.tasks(ROW, 10, 0, f"{BOOT}-0"), "id") == [f"{BOOT}-0", f"{BOOT}-3"]
    assert column(observed.tasks(ROW, 2, 1), "id") == [f"{BOOT}-1", f"{BOOT}-2"]


def test_a_profile_is_summed_over_workers_and_time(rig: LakeRig, observed: Observed) -> None:
    rig.write(
        envelope(profiles=[profile(cut=4), profile(prefix=["sum", "read"], count=[1, 100], sample_us=20_000)]),
        envelope(seq=1, profiles=[profile(count=[1, 1])]),
    )
    found = observed.profile(ROW, 10, 0, None, False).rows
    assert [(row["stack"][-1], row["count"], row["seconds"], row["prefix"]) for row in found] == [
        ("sum (job.py:9)", 111, 2.11, None), ("load (job.py:7)", 32, 0.33, None),
    ]  # fmt: skip
    apart = observed.profile(ROW, 10, 0, None, True).rows
    assert [(row["prefix"], row["count"]) for row in apart] == [("read", 100), ("sum", 32), ("sum", 11)]
    assert [row["count"] for row in observed.profile(ROW, 10, 0, "sum", False).rows] == [32, 11]
    assert [row["count"] for row in observed.profile(ROW, 1, 1, None, False).rows] == [32]
    assert observed.profile(ROW, 10, 0, None, False).more == {
        "total": {"count": 143, "seconds": 2.44}, "cut": {"count": 4, "seconds": 0.04},
    }  # fmt: skip
    assert observed.profile(ROW, 10, 0, "read", False).more["total"] == {"count": 100, "seconds": 2.0}


@pytest.mark.parametrize(
    ("since", "until", "counts"),
    [
        (None, at(60_000), [30, 10]), (at(60_000), None, [3, 1]), (at(59_999), at(60_001), [33, 11]),
        (at(120_000), None, []), (None, at(0), []),
    ],
)  # fmt: skip
def test_a_profile_of_some_intervals(rig: LakeRig, observed: Observed, since: datetime | None, until: datetime | None,
                                     counts: list[int]) -> None:  # fmt: skip
    later = profile(from_ms=START_MS + 60_000, to_ms=START_MS + 120_000, count=[3, 1], cut=5)
    rig.write(envelope(profiles=[profile()]), envelope(seq=1, profiles=[later]))
    assert column(observed.profile(ROW, 10, 0, None, False, since, until), "count") == counts
    totals = observed.profile(ROW, 10, 0, None, False, since, until).more
    assert (totals["total"]["count"], totals["cut"]["count"]) == (sum(counts), 5 if 3 in counts or 33 in counts else 0)


def test_samples_in_the_units_of_the_api(rig: LakeRig, observed: Observed) -> None:
    totals = wire.Totals(
        n_workers=2, memory_bytes=10, managed_bytes=4, no_worker=3, action_us={"compute": 5}, desired_workers=7,
        adaptive_maximum=9, idle_since_ms=START_MS - 500, n_workers_lost=1, scheduler_cpu_pct=12,
        scheduler_memory_bytes=300, scheduler_loop_ms=25,
    )  # fmt: skip
    posted = workers([A, B], net_read_kib_s=[1, 2], loop_interval_ms=[20, 40], gpu_pct=[5, 6], gpu_memory_mib=[1, 1])
    itself = wire.Itself(cpu_us=2_000_000, slowest_us=300, n_bytes=9, n_failed_tries=4, detail=2)
    rig.write(envelope(totals=totals, workers=posted, itself=itself, lost={"buffer": 2}))
    (sample,) = observed.samples(ROW).rows
    assert (sample["time"], sample["workers"], sample["memory"], sample["unmanaged"]) == (at(0), 2, 10, 6)
    assert (sample["tasks"]["no-worker"], sample["seconds"]) == (3, {"compute": 5e-6})
    assert (sample["cpu_pct"], sample["net_read"], sample["loop_interval"]) == (300, 3 * 1024, 0.04)
    assert (sample["gpu_pct"], sample["gpu_memory"], sample["desired_workers"]) == (11, 2 << 20, 7)
    assert (sample["adaptive_minimum"], sample["adaptive_maximum"], sample["workers_lost"]) == (None, 9, 1)
    assert sample["scheduler"] == {"cpu_pct": 12, "memory": 300, "loop_interval": 0.025}
    assert sample["itself"] == {"cpu_seconds": 2.0, "slowest_seconds": 0.0003, "messages": 0, "bytes": 9,
                                "failed_tries": 4, "detail": 2, "lost": {"buffer": 2}}  # fmt: skip
    assert sample["idle_since"] == at(-500)
    json.dumps(sample, default=datetime.isoformat)


def test_a_worker_over_time(rig: LakeRig, observed: Observed) -> None:
    posted = [
        workers(
            [A, B],
            memory_mib=[n, 7],
            managed_mib=[2, 0],
            in_memory=[n, 0],
            net_read_kib_s=[3, 0],
            loop_interval_ms=[25, 20],
            status=["paused" if n else "running", "running"],
        )
        for n in range(1_200)
    ]
    rig.write(*(envelope(seq=n, workers=each) for n, each in enumerate(posted[:3])))
    found = observed.worker_samples(ROW, A).rows
    assert [(row["time"], row["memory"], row["in_memory"]) for row in found] == [
        (at(n * INTERVAL_MS), n << 20, n) for n in range(3)
    ]  # fmt: skip
    newest = found[2]
    assert (newest["status"], newest["managed"], newest["unmanaged"]) == ("paused", 2 << 20, 0)
    assert (newest["net_read"], newest["loop_interval"], newest["gpu_memory"]) == (3 * 1024, 0.025, None)
    rig.write(*(envelope(seq=n + 3, workers=each) for n, each in enumerate(posted[3:])))
    found = observed.worker_samples(ROW, A).rows
    assert 300 < len(found) <= 600
    assert found[-1]["memory"] == 1_199 << 20
    assert column(observed.worker_samples(ROW, "tcp://x"), "time") == []


def test_what_was_sent_again_on_another_day_counts_once(rig: LakeRig, observed: Observed) -> None:
    posted: dict[str, Any] = {
        "deaths": [death()], "logs": LINES, "tasks": tasks(3), "profiles": [profile()], "spans": [span()],
        "members": [member()], "metrics": metrics({}), "identity": identity(),
    }  # fmt: skip
    rig.write(envelope(**posted), envelope(**posted))
    rig.write(envelope(**posted, received_at=START + DAY_S))
    row = ClusterRow(account="acme", id=1, uuid=CLUSTER, started_at=START, first_received_at=START,
                     last_received_at=START + DAY_S)  # fmt: skip
    counts = (
        observed.deaths(row, 99, 0), observed.logs(row, 99, 0), observed.tasks(row, 99, 0), observed.spans(row, 99, 0),
        observed.members(row, 99, 0), observed.metrics(row, 99, 0, None, False), observed.samples(row),
    )  # fmt: skip
    assert [len(found.rows) for found in counts] == [1, 5, 3, 1, 1, 1, 1]
    assert [stack["count"] for stack in observed.profile(row, 9, 0, None, False).rows] == [30, 10]

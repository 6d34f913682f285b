import json
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from daskscope import wire
from daskscope.testing import CLUSTER, INTERVAL_MS, START_MS, workers
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.timelines import Timelines
from tests.query.lake_rig import DAY_S, START, LakeRig, envelope

A, B = "tcp://127.0.0.1:40001", "tcp://127.0.0.1:40002"
ROW = ClusterRow(account="acme", id=1, uuid=CLUSTER, started_at=START, first_received_at=START, last_received_at=START)


@pytest.fixture
def timelines(rig: LakeRig) -> Timelines:
    return Timelines(Asker(str(rig.root), rig.seals, rig.deletions))


def at(ms: int) -> datetime:
    return datetime.fromtimestamp((START_MS + ms) / 1000, UTC)


def test_samples_in_the_units_of_the_api(rig: LakeRig, timelines: Timelines) -> None:
    totals = wire.Totals(
        n_workers=2, memory_bytes=10, managed_bytes=4, no_worker=3, action_us={"compute": 5}, desired_workers=7,
        adaptive_maximum=9, idle_since_ms=START_MS - 500, n_workers_lost=1, scheduler_cpu_pct=12,
        scheduler_memory_bytes=300, scheduler_loop_ms=25,
    )  # fmt: skip
    posted = workers([A, B], net_read_kib_s=[1, 2], loop_interval_ms=[20, 40], gpu_pct=[5, 6], gpu_memory_mib=[1, 1])
    itself = wire.Itself(cpu_us=2_000_000, slowest_us=300, n_bytes=9, n_failed_tries=4, detail=2)
    rig.write(envelope(totals=totals, workers=posted, itself=itself, lost={"buffer": 2}))
    (sample,) = timelines.cluster(ROW, 600).rows
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


def test_a_worker_over_time(rig: LakeRig, timelines: Timelines) -> None:
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
    found = timelines.worker(ROW, A, 600).rows
    assert [(row["time"], row["memory"], row["in_memory"]) for row in found] == [
        (at(n * INTERVAL_MS), n << 20, n) for n in range(3)
    ]  # fmt: skip
    newest = found[2]
    assert (newest["status"], newest["managed"], newest["unmanaged"]) == ("paused", 2 << 20, 0)
    assert (newest["net_read"], newest["loop_interval"], newest["gpu_memory"]) == (3 * 1024, 0.025, None)
    rig.write(*(envelope(seq=n + 3, workers=each) for n, each in enumerate(posted[3:])))
    found = timelines.worker(ROW, A, 600).rows
    assert 300 < len(found) <= 600
    assert found[-1]["memory"] == 1_199 << 20
    assert timelines.worker(ROW, "tcp://x", 600).rows == []


def test_a_line_has_as_many_points_as_are_asked_for(rig: LakeRig, timelines: Timelines) -> None:
    rig.write(*(
        envelope(seq=n, totals=wire.Totals(memory_bytes=1_000 if n == 133 else n), workers=workers([A], memory_mib=[n]))
        for n in range(300)
    ))  # fmt: skip
    for points in (1, 7, 100):
        for found in (timelines.cluster(ROW, points).rows, timelines.worker(ROW, A, points).rows):
            assert len(found) == points
            # The newest of each point, and the points are of the same length.
            assert found[-1]["time"] == at(299 * INTERVAL_MS)
            steps = {round((b["time"] - a["time"]).total_seconds() / 10) for a, b in pairwise(found)}
            assert len(steps) <= 2
        assert max(row["memory"] for row in timelines.cluster(ROW, points).rows) == 1_000
        assert timelines.worker(ROW, A, points).rows[-1]["memory"] == 299 << 20


def test_a_part_of_a_line(rig: LakeRig, timelines: Timelines) -> None:
    rig.write(*(envelope(seq=n, workers=workers([A])) for n in range(50)))
    between = at(10 * INTERVAL_MS), at(20 * INTERVAL_MS)
    times = [at(n * INTERVAL_MS) for n in range(10, 21)]
    assert [row["time"] for row in timelines.cluster(ROW, 600, between).rows] == times
    assert [row["time"] for row in timelines.worker(ROW, A, 600, between).rows] == times
    assert len(timelines.cluster(ROW, 5, between).rows) == 5
    assert timelines.cluster(ROW, 5, (at(round(DAY_S * 1e3)), None)).rows == []

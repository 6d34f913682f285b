"""What a cluster had of machines, told from what its processes said."""

from __future__ import annotations

from typing import Any

import pytest

from daskscope import wire
from daskscope.testing import CLUSTER, START_MS, boot_at, member, metrics
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.usage import Usage, UsageReader
from tests.query.lake_rig import DAY_S, OTHER, START, LakeRig, envelope

HOUR_MS = 3_600_000
HOUR_US = 3_600_000_000
M6I = wire.Hardware(
    cores=2, memory_bytes=8 << 30, provider="aws", instance_type="m6i.large", region="us-east-1", lifecycle="on-demand"
)
SPOT = wire.Hardware(
    cores=4, memory_bytes=16 << 30, provider="aws", instance_type="m6i.xlarge", region="us-east-1", lifecycle="spot"
)
DESKTOP = wire.Hardware(cores=16, memory_bytes=64 << 30)


def row(hours: float, **changes: Any) -> ClusterRow:
    """Of a cluster that sent its last message so long after its start."""
    values: dict[str, Any] = {
        "account": "acme", "id": 1, "uuid": CLUSTER, "started_at": START, "first_received_at": START,
        "last_received_at": START + hours * 3600, "made_at": START + hours * 3600, "boot": boot_at(START_MS),
    }  # fmt: skip
    return ClusterRow(**values | changes)


def worker(no: int, host: str, joined_h: float = 0, left_h: float | None = None, **changes: Any) -> wire.Member:
    left_ms = None if left_h is None else START_MS + round(left_h * HOUR_MS)
    values: dict[str, Any] = {
        "no": no, "id": f"tcp://{host}:{no}", "host": host, "joined_ms": START_MS + round(joined_h * HOUR_MS),
        "left_ms": left_ms, "hardware": 0,
    }  # fmt: skip
    return member(**values | changes)


@pytest.fixture
def reader(rig: LakeRig) -> UsageReader:
    return UsageReader(Asker(str(rig.root), rig.seals, rig.deletions))


def used(reader: UsageReader, hours: float) -> Usage:
    return reader.of("acme", [row(hours)])[CLUSTER]


def test_workers_on_one_machine_count_once_and_gaps_do_not_count(rig: LakeRig, reader: UsageReader) -> None:
    rig.write(
        envelope(
            hardware=[M6I, SPOT],
            members=[
                worker(0, "10.0.0.1", 0, 2),
                worker(1, "10.0.0.1", 1, 3),
                worker(2, "10.0.0.1", 2.5, 2.75),
                worker(3, "10.0.0.1", 5, 6),
                worker(4, "10.0.0.2", 5),
                worker(5, "10.0.0.3", 0, 10, hardware=1, n_threads=4, memory_limit_bytes=16 << 30),
            ],
        )
    )
    spot, plain = used(reader, 10).machines
    assert (plain.instance_type, plain.region, plain.lifecycle) == ("m6i.large", "us-east-1", "on-demand")
    assert (plain.provider, plain.cores, plain.memory_bytes) == ("aws", 2, 8 << 30)
    assert (plain.n_machines, plain.machine_us) == (2, (3 + 1 + 5) * HOUR_US)
    worker_hours = 2 + 2 + 0.25 + 1 + 5
    assert plain.thread_us == 2 * worker_hours * HOUR_US
    assert plain.gib_hours == pytest.approx(4 * worker_hours)
    assert (spot.instance_type, spot.machine_us, spot.thread_us) == ("m6i.xlarge", 10 * HOUR_US, 40 * HOUR_US)


def test_a_machine_is_one_whatever_each_of_its_workers_told_of_it(rig: LakeRig, reader: UsageReader) -> None:
    less = wire.Hardware(cores=1, memory_bytes=1 << 30, provider="aws", instance_type="m6i.large", region="us-east-1")
    rig.write(
        envelope(
            hardware=[less, M6I, wire.Hardware(instance_type="m6i.large"), DESKTOP],
            members=[worker(no, "10.0.0.1", 0, 3, hardware=no) for no in range(4)],
        )
    )
    (found,) = used(reader, 3).machines
    assert (found.n_machines, found.machine_us, found.thread_us) == (1, 3 * HOUR_US, 24 * HOUR_US)
    assert (found.region, found.lifecycle, found.cores, found.memory_bytes) == ("us-east-1", "on-demand", 2, 8 << 30)


def test_the_next_machine_of_an_address_may_be_a_spot_one(rig: LakeRig, reader: UsageReader) -> None:
    spot = wire.Hardware(cores=2, memory_bytes=8 << 30, instance_type="m6i.large", lifecycle="spot")
    rig.write(
        envelope(
            hardware=[M6I, spot, SPOT],
            members=[worker(no, "10.0.0.1", 2 * no, 2 * no + no + 1, hardware=no) for no in range(3)],
        )
    )
    assert [(each.instance_type, each.lifecycle, each.machine_us) for each in used(reader, 9).machines] == [
        ("m6i.xlarge", "spot", 3 * HOUR_US), ("m6i.large", "spot", 2 * HOUR_US), ("m6i.large", "on-demand", HOUR_US),
    ]  # fmt: skip


def test_the_schedulers_machine_counts_where_it_told_its_type(rig: LakeRig, reader: UsageReader) -> None:
    scheduler: dict[str, Any] = {"role": "scheduler", "n_threads": 0, "memory_limit_bytes": 0}
    rig.write(
        envelope(hardware=[M6I], members=[worker(0, "10.0.0.9", **scheduler), worker(1, "10.0.0.1", 1, 2)]),
        envelope(
            cluster=OTHER,
            cluster_id=2,
            hardware=[M6I],
            members=[worker(0, "10.0.0.1", **scheduler), worker(1, "10.0.0.1", 1, 2)],
        ),
    )
    assert [(m.n_machines, m.machine_us, m.thread_us) for m in used(reader, 3).machines] == [
        (2, 4 * HOUR_US, 2 * HOUR_US)
    ]
    other = reader.of("acme", [row(3, uuid=OTHER, id=2)])[OTHER]
    assert [(m.n_machines, m.machine_us, m.thread_us) for m in other.machines] == [(1, 3 * HOUR_US, 2 * HOUR_US)]


def test_a_schedulers_desk_is_no_machine_that_somebody_pays_for(rig: LakeRig, reader: UsageReader) -> None:
    rig.write(
        envelope(
            hardware=[DESKTOP, M6I],
            members=[
                worker(0, "10.0.0.9", role="scheduler", n_threads=0),
                worker(1, "10.0.0.1", 1, 2, hardware=1),
                worker(2, "10.0.0.9", 1, 2, hardware=0),
            ],
        )
    )
    assert [(m.instance_type, m.machine_us) for m in used(reader, 3).machines] == [
        ("m6i.large", HOUR_US),
        (None, HOUR_US),
    ]


def test_who_told_nothing_is_on_the_machine_that_a_neighbour_told_of(rig: LakeRig, reader: UsageReader) -> None:
    rig.write(
        envelope(
            hardware=[M6I],
            members=[
                worker(0, "10.0.0.1", 0, 1),
                worker(1, "10.0.0.1", 1, 3, hardware=None),
                worker(2, "10.0.0.2", 0, 3, hardware=None),
            ],
        )
    )
    unknown, known = sorted(used(reader, 3).machines, key=lambda m: m.instance_type or "")
    assert (known.machine_us, known.thread_us) == (3 * HOUR_US, 6 * HOUR_US)
    assert (unknown.n_machines, unknown.cores, unknown.machine_us) == (1, None, 3 * HOUR_US)


def test_whoever_does_not_say_that_it_left_was_there_until_the_plugins_next_run(
    rig: LakeRig, reader: UsageReader
) -> None:
    rig.write(
        envelope(hardware=[M6I], members=[worker(0, "10.0.0.1"), worker(1, "10.0.0.2")]),
        envelope(
            boot=boot_at(START_MS + 4 * HOUR_MS),
            made_at_ms=START_MS + 4 * HOUR_MS,
            hardware=[M6I],
            members=[worker(0, "10.0.0.1")],
        ),
    )
    (found,) = used(reader, 10).machines
    assert (found.n_machines, found.machine_us) == (2, (10 + 4) * HOUR_US)


def test_nobody_was_there_after_the_last_message_or_less_than_not_at_all(rig: LakeRig, reader: UsageReader) -> None:
    rig.write(
        envelope(
            hardware=[M6I],
            members=[worker(0, "10.0.0.1", 0, 99), worker(1, "10.0.0.2", 50), worker(2, "10.0.0.3", 3, 1)],
        )
    )
    (found,) = used(reader, 2).machines
    assert (found.n_machines, found.machine_us, found.thread_us) == (3, 2 * HOUR_US, 4 * HOUR_US)


def test_time_of_tasks_that_failed_is_that_of_execute_alone(rig: LakeRig, reader: UsageReader) -> None:
    rig.write(
        envelope(
            metrics=metrics(
                {"activity": "failed", "value": 2.5},
                {"activity": "cancelled", "value": 0.5, "span": None},
                {"activity": "failed", "context": "gather-dep", "value": 100.0},
                {"activity": "failed", "unit": "count", "value": 100.0},
                {"value": 50.0},
            )
        ),
        envelope(cluster=OTHER, cluster_id=2, members=[worker(0, "h", hardware=None)]),
    )
    found = reader.of("acme", [row(1), row(1, uuid=OTHER, id=2)])
    assert (found[CLUSTER].failed_us, found[OTHER].failed_us) == (3_000_000, None)
    rig.write(envelope(seq=1, metrics=metrics({"value": 60.0})), envelope(seq=2, metrics=metrics({"value": 61.0})))
    assert reader.of("acme", [row(1)])[CLUSTER].failed_us == 3_000_000


def test_metrics_without_a_failure_say_that_nothing_failed(rig: LakeRig, reader: UsageReader) -> None:
    rig.write(envelope(metrics=metrics({"value": 60.0})))
    assert used(reader, 1) == Usage(failed_us=0)


def test_others_and_what_the_lake_has_nothing_of_are_not_told(rig: LakeRig, reader: UsageReader) -> None:
    rig.write(
        envelope(account="others", hardware=[M6I], members=[worker(0, "10.0.0.1")]),
        envelope(seq=1, received_at=START + 3 * DAY_S, hardware=[M6I], members=[worker(0, "10.0.0.1")]),
    )
    assert reader.of("acme", [row(1)]) == {}
    assert reader.of("acme", []) == {}

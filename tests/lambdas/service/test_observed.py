from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from daskscope import wire
from daskscope.testing import (
    CLUSTER,
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
    span,
    tasks,
)
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.found import Asker, Found
from daskscope_lambdas.service.observed import Lines, Observed
from daskscope_lambdas.testing import FakeClock
from tests.query.lake_rig import DAY_S, OTHER, START, LakeRig, catalog, envelope

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
        ({"workers": [A]}, [3, 1, 0]),
        ({"workers": ["127.0.0.1:40001", "nobody"]}, [3, 1, 0]),
        ({"workers": ["127.0.0.1"]}, [3, 2, 1, 0]),
        ({"workers": ["127.0.0.1"], "scheduler": True}, [4, 3, 2, 1, 0]),
        ({"workers": ["gpu-7"]}, [2]),
        ({"workers": ["node-b.cluster"]}, [2]),
        ({"workers": ["127.0.0"]}, []),
        ({"workers": [A], "role": "nanny"}, [3]),
        ({"scheduler": False}, [3, 2, 1, 0]),
        ({"ascending": True}, [0, 1, 2, 3, 4]),
        ({"user": "nobody"}, [4, 3, 2, 1, 0]),
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
    rig.write(envelope(logs=LINES, members=[member(), member(no=1, id=B, name="gpu-7", host="node-b.cluster")]))
    found = observed.logs(ROW, 10, 0, Lines(**wanted))
    assert [int((row["time"] - at(0)).total_seconds()) for row in found.rows] == expected


def test_every_line_is_on_some_page_and_none_is_cut(rig: LakeRig, observed: Observed) -> None:
    many = logs(*({"no": no, "at_ms": START_MS + no // 7, "text": f"{no} " + "x" * 3_000} for no in range(500)))
    rig.write(envelope(logs=many))
    told = [line for offset in range(0, 500, 60) for line in observed.logs(ROW, 60, offset, Lines()).rows]
    assert [int(line["text"].split()[0]) for line in told] == list(range(499, -1, -1))
    assert {len(line["text"].split()[1]) for line in told} == {3_000}
    line = observed.logs(ROW, 1, 0, Lines()).rows[0]
    assert set(line) == {"id", "cluster_id", "time", "level", "logger", "role", "worker", "text", "dropped"}
    assert (line["id"], line["cluster_id"]) == (f"{BOOT}-499", 1)


def test_levels_are_words_where_there_is_one(rig: LakeRig, observed: Observed) -> None:
    rig.write(envelope(logs=LINES))
    assert column(observed.logs(ROW, 10, 0, Lines()), "level") == ["warning", "35", "error", "warning", "info"]


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


def test_lines_and_metrics_of_all_clusters(rig: LakeRig, observed: Observed) -> None:
    rig.write(
        envelope(logs=LINES, metrics=metrics({"span": "a", "value": 1.0})),
        envelope(
            cluster=OTHER, cluster_id=2, members=[member(name="gpu-7")], metrics=metrics({"value": 2.0}),
            logs=logs({"no": 0, "at_ms": START_MS + 1_500, "text": "theirs"}),
        ),
    )  # fmt: skip
    listed = catalog({CLUSTER: "ada", OTHER: "bob"})

    def told(**wanted: Any) -> list[tuple[int, int]]:
        found = observed.account_logs("acme", listed, 10, 0, Lines(**wanted))
        return [(row["cluster_id"], int(row["id"].rpartition("-")[2])) for row in found.rows]

    assert told() == [(1, 4), (1, 3), (1, 2), (2, 0), (1, 1), (1, 0)]
    assert told(user="bob") == [(2, 0)]
    # A name is of a worker of its cluster: the same address is another one elsewhere.
    assert told(workers=["gpu-7"]) == [(2, 0)]
    assert told(since=at(1_500), until=at(2_000)) == [(1, 2), (2, 0)]
    assert observed.account_logs("globex", listed, 10, 0, Lines()).rows == []

    def summed(**wanted: Any) -> list[tuple[float, int]]:
        return [(row["value"], row["n_clusters"]) for row in
                observed.account_metrics("acme", listed, 10, 0, **wanted).rows]  # fmt: skip

    assert summed() == [(3.0, 2)]
    assert summed(user="bob") == [(2.0, 1)]
    assert summed(since=at(1), prefix="sum") == summed(prefix="read") == []


def test_what_was_sent_again_on_another_day_counts_once(rig: LakeRig, observed: Observed) -> None:
    posted: dict[str, Any] = {
        "deaths": [death()], "logs": LINES, "tasks": tasks(3), "spans": [span()],
        "members": [member()], "metrics": metrics({}), "identity": identity(),
    }  # fmt: skip
    rig.write(envelope(**posted), envelope(**posted))
    rig.write(envelope(**posted, received_at=START + DAY_S))
    row = ClusterRow(account="acme", id=1, uuid=CLUSTER, started_at=START, first_received_at=START,
                     last_received_at=START + DAY_S)  # fmt: skip
    counts = (
        observed.deaths(row, 99, 0), observed.logs(row, 99, 0, Lines()), observed.tasks(row, 99, 0),
        observed.spans(row, 99, 0),
        observed.members(row, 99, 0), observed.metrics(row, 99, 0, None, False),
    )  # fmt: skip
    assert [len(found.rows) for found in counts] == [1, 5, 3, 1, 1, 1]

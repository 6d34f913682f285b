from dataclasses import fields
from datetime import date, timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest

from daskscope import wire
from daskscope.testing import (
    CLUSTER,
    START_MS,
    death,
    environment,
    event,
    exception,
    groups,
    identity,
    logs,
    member,
    message,
    metrics,
    profile,
    span,
    tasks,
    workers,
)
from daskscope_lambdas.service.envelope import pack, unpack
from daskscope_lambdas.service.rows import to_rows
from daskscope_query import layout
from daskscope_query.tables import TABLES, VERSION
from tests.query.lake_rig import DAY, DAY_S, START, LakeRig, envelope

YESTERDAY, TOMORROW = DAY - timedelta(1), DAY + timedelta(1)

FULL = message(
    phase="closed",
    reason="idle-timeout-exceeded",
    groups=groups(
        {"no": 0, "computation": None, "start_ms": None, "stop_ms": None},
        {"no": 1, "states": {"erred": 2}, "dependencies": [0], "types": ["int", "str"], "span": "s"},
    ),
    computations=[
        wire.Computation(no=0, start_ms=START_MS, code=[[wire.Frame(code="c" * 32, file="job.py", line=3)], []]),
    ],
    exceptions=[exception(group=None)],
    events=[event(worker=None, detail='{"n": 1}')],
    lost={"spool-full": 2},
    totals=wire.Totals(n_workers=2, action_us={"compute": 5, "idle": 0}),
    itself=wire.Itself(cpu_us=900, slowest_us=70, n_messages=4, n_bytes=8_000),
    members=[
        member(no=0, role="scheduler", environment=0),
        member(no=1, environment=0, hardware=0),
        member(no=2, role="client"),
    ],
    environments=[environment()],
    hardware=[wire.Hardware(cores=8, memory_bytes=32 << 30, gpus=["T4"], provider="aws", lifecycle="spot")],
    deaths=[death()],
    spans=[span()],
    metrics=metrics({}, {"span": None, "context": "get-data", "activity": "compress", "value": 0.5}),
    tasks=tasks(3, first_no=7, weight=10, group=[0, None, 0], erred=[0, 0, 1]),
    logs=logs({"no": 0}, {"no": 1, "role": "scheduler", "worker": None, "dropped": 3}),
    profiles=[profile(), profile(cut=5)],
)


def test_every_table_has_its_rows_of_a_message() -> None:
    rows = {table.name: found.to_pylist(maps_as_pydicts="strict") for table, found in to_rows([envelope(**_values())])}
    assert {name: len(found) for name, found in rows.items()} == {
        "clusters": 1, "samples": 1, "workers": 2, "groups": 2, "computations": 1, "exceptions": 1, "events": 1,
        "members": 3, "deaths": 1, "spans": 1, "fine_metrics": 2, "tasks": 3, "logs": 2, "profiles": 5,
    }  # fmt: skip
    for found in rows.values():
        for row in found:
            origin = (row["account"], row["cluster"], row["cluster_id"], row["seq"])
            assert origin == ("acme", CLUSTER, 1, 0)
            assert row["received_at"].timestamp() == START
            assert row["at"].timestamp() == START_MS / 1000
    assert rows["clusters"][0]["tags"] == {"team": "weather"}
    assert rows["samples"][0]["action_us"] == {"compute": 5, "idle": 0}
    assert (rows["samples"][0]["lost"], rows["samples"][0]["reason"]) == ({"spool-full": 2}, "idle-timeout-exceeded")
    assert rows["workers"][1]["memory_mib"] == 512
    scattered, erred = rows["groups"]
    assert (scattered["computation"], scattered["start_at"], scattered["states"]) == (None, None, {"memory": 4})
    assert (erred["states"], erred["dependencies"], erred["types"]) == ({"erred": 2}, [0], ["int", "str"])
    frame = {"code": "c" * 32, "file": "job.py", "line": 3}
    assert frame.items() <= rows["computations"][0]["code"][0][0].items()
    assert rows["computations"][0]["code"][1] == []
    assert (rows["exceptions"][0]["group_no"], rows["exceptions"][0]["count"]) == (None, 3)
    assert rows["events"][0]["detail"] == '{"n": 1}'


def of(**changes: Any) -> dict[str, list[dict[str, Any]]]:
    """The rows of one message by table."""
    return {table.name: found.to_pylist(maps_as_pydicts="strict") for table, found in to_rows([envelope(**changes)])}


def test_a_message_without_the_newer_parts_gives_what_it_gave() -> None:
    found = of(seq=1)
    assert found.keys() == {"samples", "workers"}
    assert found["samples"][0]["gpu_pct"] is None
    assert [row["gpu_pct"] for row in found["workers"]] == [None, None]


def test_a_sample_has_the_sums_over_workers_and_the_slowest_loop() -> None:
    posted = workers(["a", "b", "c"], cpu_pct=[100, 50, 3], net_read_kib_s=[1, 2, 4], loop_interval_ms=[20, 300, 21],
                     gpu_pct=[0, 90, 10], gpu_memory_mib=[0, 512, 256])  # fmt: skip
    (sample,) = of(workers=posted)["samples"]
    assert (sample["cpu_pct"], sample["net_read_kib_s"], sample["worker_loop_ms"]) == (153, 7, 300)
    assert (sample["gpu_pct"], sample["gpu_memory_mib"]) == (100, 768)
    (alone,) = of(workers=workers([]), totals=wire.Totals())["samples"]
    assert (alone["cpu_pct"], alone["worker_loop_ms"], alone["gpu_pct"]) == (0, None, None)


def test_what_workers_that_are_not_told_of_use_is_not_known() -> None:
    (sample,) = of(workers=workers([]), totals=wire.Totals(n_workers=2), itself=wire.Itself(detail=5))["samples"]
    assert (sample["cpu_pct"], sample["disk_write_kib_s"], sample["self_detail"]) == (None, None, 5)


def test_what_the_plugin_costs_stands_in_the_sample() -> None:
    (sample,) = of(**_values())["samples"]
    told = {name: sample[name] for name in ("self_cpu_us", "self_slowest_us", "self_messages", "self_bytes")}
    assert told == {"self_cpu_us": 900, "self_slowest_us": 70, "self_messages": 4, "self_bytes": 8_000}


def test_members_have_their_software_and_machine_or_none_of_it() -> None:
    scheduler, worker, client = of(**_values())["members"]
    assert (worker["role"], worker["id"], worker["joined_at"].timestamp()) == (
        "worker", "tcp://127.0.0.1:40001", (START_MS + 500) / 1000,
    )  # fmt: skip
    assert worker["packages"] == scheduler["packages"] == {"distributed": "2026.8.0", "numpy": "2.1.0"}
    assert (worker["cores"], worker["gpus"], worker["lifecycle"]) == (8, ["T4"], "spot")
    assert (scheduler["python"], scheduler["cores"], scheduler["gpus"]) == ("3.11.7", None, None)
    assert (client["python"], client["packages"], client["provider"]) == (None, None, None)


def test_tasks_are_numbered_and_placed_by_what_stands_once() -> None:
    rows = of(**_values())["tasks"]
    assert [(row["no"], row["group_no"], row["worker"][-1], row["erred"]) for row in rows] == [
        (7, 0, "1", False), (8, None, "2", False), (9, 0, "1", True),
    ]  # fmt: skip
    assert [row["start_at"].timestamp() for row in rows] == [(START_MS + n) / 1000 for n in range(3)]
    assert {row["weight"] for row in rows} == {10}


def test_stacks_are_written_out_and_what_was_cut_is_one_without_frames() -> None:
    rows = of(**_values())["profiles"]
    assert [row["no"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[0]["stack"] == ["main (job.py:1)", "load (job.py:7)"]
    assert [(row["stack"], row["prefix"], row["count"]) for row in rows if not row["stack"]] == [([], None, 5)]
    assert sum(row["count"] for row in rows) == 85


def _values() -> dict[str, Any]:
    return {f.name: getattr(FULL, f.name) for f in fields(FULL)}


def test_a_field_of_the_message_that_has_a_column_reaches_it() -> None:
    """A new field with a column of the same name cannot be forgotten."""
    kinds = {"samples": wire.Totals, "workers": wire.Workers, "groups": wire.Groups, "clusters": wire.Identity,
             "exceptions": wire.ExceptionFamily, "events": wire.Event, "members": wire.Member, "deaths": wire.Death,
             "spans": wire.Span, "fine_metrics": wire.Metrics, "tasks": wire.Tasks, "logs": wire.Logs,
             "profiles": wire.Profile}  # fmt: skip
    rows = {table.name: found for table, found in to_rows([envelope(**_values())])}
    for name, kind in kinds.items():
        shared = {f.name for f in fields(kind)} & {c.name for c in TABLES[name].columns}
        assert shared
        for column in shared:
            assert len(rows[name].column(column)) == rows[name].num_rows, (name, column)


def test_one_file_per_table_that_has_rows_and_day(rig: LakeRig) -> None:
    rig.write(envelope(seq=1), envelope(seq=2, received_at=START + DAY_S), name="b")
    assert rig.listed("open/") == [
        f"open/{table}/day={day}/b.parquet" for table in ("samples", "workers") for day in ("2026-11-21", "2026-11-22")
    ]


def test_the_day_is_the_servers_and_turns_at_midnight_utc(rig: LakeRig) -> None:
    midnight = START + 16 * 3600
    rig.write(envelope(seq=1, received_at=midnight - 0.001, workers=workers([])), name="before")
    rig.write(envelope(seq=2, received_at=midnight, workers=workers([])), name="after")
    assert rig.listed("open/") == [
        layout.open_key("samples", DAY, "before"),
        layout.open_key("samples", TOMORROW, "after"),
    ]


def test_the_same_batch_again_changes_nothing(rig: LakeRig) -> None:
    rig.write(envelope(), name="b")
    before = {key: rig.objects.get(key) for key in rig.listed()}
    rig.write(envelope(), name="b")
    assert {key: rig.objects.get(key) for key in rig.listed()} == before


@pytest.mark.parametrize("boundary", [DAY, TOMORROW])
def test_what_comes_after_its_day_was_sealed_goes_to_the_first_open_day(rig: LakeRig, boundary: date) -> None:
    """Also when the first try wrote only what was received later, and died: nothing may be Taken for another's."""
    first = boundary + timedelta(1)
    later = envelope(seq=2, received_at=START + (first - DAY).days * DAY_S)
    rig.write(later, name="b")
    rig.seals.day = boundary
    rig.write(envelope(seq=1), later, name="b")
    rows = rig.records("samples", cluster=CLUSTER, last=TOMORROW + timedelta(2))
    assert [row["seq"] for row in rows] == [1, 2]
    assert {layout.day_in(key) for key in rig.listed("open/")} == {first}


@pytest.mark.parametrize(
    "odd",
    [
        {"workers": workers(["a"], cpu_pct=[2**40])},
        {"workers": workers(["a"], memory_mib=[2**70])},
        {"made_at_ms": 10**15},
        {"events": [event(at_ms=-1)]},
        {"identity": identity(started_at_ms=2**63 - 1)},
    ],
    ids=lambda odd: next(iter(odd)),
)
def test_a_value_that_no_column_takes_is_refused_before_anything_is_kept(rig: LakeRig, odd: dict[str, Any]) -> None:
    with pytest.raises((ValueError, OverflowError)):
        rig.write(envelope(seq=0), envelope(seq=1, **odd))
    assert rig.listed() == []


def test_files_carry_the_version_and_the_envelope_survives_the_queue(rig: LakeRig) -> None:
    rig.write(unpack(pack(envelope(**_values()))), name="b")
    for name in TABLES.keys() - {"audit"}:  # which no message tells of
        table = TABLES[name]
        file = pq.ParquetFile(rig.root / layout.open_key(name, DAY, "b"))
        assert file.metadata.metadata[b"daskscope.version"] == str(VERSION).encode()
        assert file.schema_arrow.names == table.schema.names

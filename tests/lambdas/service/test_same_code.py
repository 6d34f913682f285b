"""The same code across clusters, and on which machines."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pyarrow as pa
import pytest

from daskscope import wire
from daskscope.testing import CLUSTER, START_MS, exception, groups, identity, member
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.same_code import SameCode
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from daskscope_query.tables import CATALOG
from tests.query.lake_rig import OTHER, START, LakeRig, envelope

JOB, LIB = "a = 1\nb.compute()", "def f(): ..."
SMALL = wire.Hardware(cores=2, memory_bytes=8 << 30, instance_type="m6i.large")
LARGE = wire.Hardware(cores=4, memory_bytes=16 << 30, instance_type="m6i.xlarge")


def at(ms: int) -> datetime:
    return datetime.fromtimestamp((START_MS + ms) / 1000, UTC)


def catalog(_account: str) -> pa.Table:
    """Two clusters: of ada with 80 s of thread time for $2, and of bob, of which nobody knows what it cost."""
    known: list[dict[str, Any]] = [
        {"account": "acme", "cluster": CLUSTER, "user": "ada", "thread_us": 80_000_000, "dollars": 2.0},
        {"account": "acme", "cluster": OTHER, "user": "bob", "thread_us": 0, "dollars": None},
    ]
    return pa.Table.from_pylist(known, CATALOG.schema)


@pytest.fixture
def codes(adapters: LocalAdapters) -> CodeKeeper:
    return CodeKeeper(adapters.objects, adapters.vault)


@pytest.fixture
def same_code(rig: LakeRig, clock: FakeClock, codes: CodeKeeper) -> SameCode:
    """A lake in which ada's cluster ran the job twice, on small machines, and bob's once, on a large one."""
    kept = [wire.Code(hash=hash_of(text), text=text) for text in (JOB, LIB)]
    codes.keep("acme", kept)
    job = [[wire.Frame(code=hash_of(LIB), file="lib.py", line=9), wire.Frame(code=hash_of(JOB), file="job.py", line=3)]]
    elsewhere = [[wire.Frame(code=each.code, file=f"/home/bob/{each.file}", line=each.line) for each in job[0]]]
    rig.write(
        envelope(
            computations=[
                wire.Computation(no=0, start_ms=START_MS, stop_ms=START_MS + 10_000, code=job),
                wire.Computation(no=1, start_ms=START_MS + 20_000, stop_ms=START_MS + 40_000, code=job),
                wire.Computation(no=2, start_ms=START_MS + 50_000, code=job),
                wire.Computation(no=3, start_ms=START_MS + 50_000, stop_ms=START_MS + 51_000),
            ],
            groups=groups(
                {"no": 0, "computation": 0}, {"no": 1, "computation": 1, "action_us": {"compute": 16_000_000}}
            ),
            exceptions=[exception(group=1, count=3)],
            members=[member(no=0, hardware=0), member(no=1, id="b", hardware=0, joined_ms=START_MS + 15_000)],
            hardware=[SMALL],
        ),
        envelope(
            cluster=OTHER,
            cluster_id=2,
            identity=identity(user="bob"),
            computations=[
                wire.Computation(no=0, start_ms=START_MS + 60_000, stop_ms=START_MS + 63_000, code=elsewhere)
            ],
            groups=groups({"no": 0, "action_us": {"compute": 2_000_000}}),
            members=[member(no=0, n_threads=4, hardware=0)],
            hardware=[LARGE],
        ),
    )
    clock.at = START + 100
    return SameCode(Asker(str(rig.root), rig.seals, rig.deletions), clock, codes, catalog)


def hash_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


def test_one_record_a_fingerprint(same_code: SameCode) -> None:
    (found,) = same_code.code("acme", 10, 0).rows
    assert len(found.pop("fingerprint")) == 16
    assert found == {
        "n": 4, "n_clusters": 2, "users": ["ada", "bob"], "first": at(0), "last": at(60_000), "median_duration": 10.0,
        "p95_duration": 19.0, "n_failed": 1, "seconds": 22.0, "file": "/home/bob/job.py", "line": 3, "code": JOB,
    }  # fmt: skip
    (mine,) = same_code.code("acme", 10, 0, user="ada").rows
    assert (mine["n"], mine["users"], mine["median_duration"]) == (3, ["ada"], 15.0)
    (late,) = same_code.code("acme", 10, 0, between=(at(20_000), at(50_000))).rows
    assert late["n"] == 2
    assert same_code.code("globex", 10, 0).rows == []
    early = same_code.code("acme", 10, 0, between=(None, at(10_000)))
    assert [each["n"] for each in early.rows] == [1]


def test_code_that_is_kept_no_longer_has_no_text(same_code: SameCode, codes: CodeKeeper) -> None:
    codes.forget("acme")
    (found,) = same_code.code("acme", 10, 0).rows
    assert (found["code"], found["line"]) == (None, 3)


def test_hardware_for_the_same_code(same_code: SameCode) -> None:
    (code,) = same_code.code("acme", 10, 0).rows
    found = same_code.hardware("acme", 10, 0, fingerprint=code["fingerprint"]).rows
    alike = {"worker_memory_limit": 4 << 30, "n": 1, "n_clusters": 1, "currency": "USD"}
    small = {"instance_types": ["m6i.large"], "cores": 2, "memory": 8 << 30, "worker_threads": 2, **alike}
    assert found == [
        {
            "instance_types": ["m6i.xlarge"], "cores": 4, "memory": 16 << 30, "worker_threads": 4, **alike,
            "workers": 1, "median_duration": 3.0, "p95_duration": 3.0, "thread_seconds": 12.0,
            "seconds": 2.0, "dollars": None, "currency": "USD", "n_tasks_erred": 0,
        },
        {
            **small, "workers": 1, "median_duration": 10.0, "p95_duration": 10.0, "thread_seconds": 19.0,
            "seconds": 4.0, "dollars": pytest.approx(0.1), "currency": "USD", "n_tasks_erred": 0,
        },
        {
            **small, "workers": 2, "median_duration": 20.0, "p95_duration": 20.0, "thread_seconds": 80.0,
            "seconds": 16.0, "dollars": pytest.approx(0.4), "currency": "USD", "n_tasks_erred": 3,
        },
    ]  # fmt: skip
    assert same_code.hardware("acme", 10, 0, fingerprint="0" * 16).rows == []
    page = same_code.hardware("acme", 1, 1, fingerprint=code["fingerprint"]).rows
    assert [each["workers"] for each in page] == [1]


def test_workers_one_after_another_are_one(rig: LakeRig, same_code: SameCode) -> None:
    """Ten of 4 threads, each there for 10 s of a computation of 100 s, the last one for longer."""
    begin_ms = START_MS + 70_000
    ten = [
        member(no=no, id=f"w{no}", n_threads=4, hardware=0, joined_ms=begin_ms + no * 10_000,
               left_ms=begin_ms + (no + 1) * 10_000 if no < 9 else None)
        for no in range(10)
    ]  # fmt: skip
    call = [[wire.Frame(code="c" * 32, file="job.py", line=3)]]
    ran = [
        wire.Computation(no=0, start_ms=begin_ms, stop_ms=begin_ms + 100_000, code=call),
        wire.Computation(no=1, start_ms=begin_ms + 5_000, stop_ms=begin_ms + 5_000, code=call),
        wire.Computation(no=2, start_ms=begin_ms, stop_ms=begin_ms + 1, code=call),  # Without a task of its own.
    ]
    work = groups({"no": 0}, {"no": 1, "computation": 1})
    rig.write(envelope(cluster="3" * 32, cluster_id=3, computations=ran, groups=work, members=ten, hardware=[LARGE]))
    code = next(each for each in same_code.code("acme", 10, 0).rows if each["n"] == 2)
    found = same_code.hardware("acme", 10, 0, fingerprint=code["fingerprint"]).rows
    (only,) = found
    assert code["median_duration"] == 50.0
    assert (only["n"], only["workers"], only["thread_seconds"]) == (2, 1, 200.0)  # the median of 400 s and none

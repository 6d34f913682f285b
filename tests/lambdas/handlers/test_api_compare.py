"""Clusters and computations held against each other, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from daskscope import wire
from daskscope.testing import (
    CLUSTER,
    START_MS,
    boot_at,
    environment,
    exception,
    groups,
    identity,
    member,
    message,
    metrics,
    profile,
)

Get = Callable[..., dict[str, Any]]
Token = Callable[..., str]
OTHER = "0" * 31 + "2"
OTHER_BOOT = boot_at(START_MS, 7)
FIRST, SECOND = "a = read()\na.sum().compute()", "a = read()\na.mean().compute()"


def code_of(text: str) -> wire.Code:
    return wire.Code(hash=sha256(text.encode()).hexdigest()[:32], text=text)


def job(text: str, seconds: int) -> list[wire.Computation]:
    frames = [[wire.Frame(code=code_of(text).hash, file="job.py", line=2)]]
    return [wire.Computation(no=0, start_ms=START_MS, stop_ms=START_MS + seconds * 1000, code=frames)]


@pytest.fixture
def two(post: Callable[..., dict[str, Any]], drain: Callable[[], dict[str, Any]]) -> None:
    """Two clusters that ran a job: the second one's code, numpy and machines are others, and it took longer to read."""
    post(
        message(
            totals=wire.Totals(n_tasks=8, thread_us=40_000_000, action_us={"compute": 10_000_000}),
            computations=job(FIRST, 5), codes=[code_of(FIRST)],
            groups=groups({"no": 0, "prefix": "read", "action_us": {"disk-read": 6_000_000}},
                          {"no": 1, "prefix": "sum", "action_us": {"compute": 4_000_000}}),
            members=[member(no=0, environment=0, hardware=0)], environments=[environment()],
            hardware=[wire.Hardware(cores=2, memory_bytes=8 << 30, instance_type="m6i.large")],
            metrics=metrics({"activity": "memory-read", "unit": "bytes", "value": 300.0},
                            {"activity": "disk-write", "unit": "bytes", "value": 50.0, "context": "get-data"}),
            profiles=[profile(prefix=["read", "sum"])],
        )
    )  # fmt: skip
    post(
        message(
            cluster=OTHER, boot=OTHER_BOOT,
            identity=identity(name="etl", user="bob", tags={"team": "rivers"}),
            totals=wire.Totals(n_tasks=8, n_tasks_erred=3, thread_us=80_000_000, action_us={"compute": 12_000_000}),
            computations=job(SECOND, 9), codes=[code_of(SECOND)],
            groups=groups({"no": 0, "prefix": "read", "action_us": {"disk-read": 9_000_000}},
                          {"no": 1, "prefix": "sum", "action_us": {"compute": 3_000_000}}),
            exceptions=[exception(group=1)],
            members=[member(no=0, n_threads=4, environment=0, hardware=0),
                     member(no=1, id="b", n_threads=4, environment=0, hardware=0)],
            environments=[environment(packages={"distributed": "2026.8.0", "numpy": "1.26.4"})],
            hardware=[wire.Hardware(cores=4, memory_bytes=16 << 30, instance_type="m6i.xlarge")],
            profiles=[profile(prefix=["read", "sum"], count=[10, 30])],
        )
    )  # fmt: skip
    assert drain() == {"batchItemFailures": []}


def body(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["statusCode"] == 200, answer
    return json.loads(answer["body"])


def refused(answer: dict[str, Any]) -> tuple[int, str]:
    error = json.loads(answer["body"])["error"]
    return answer["statusCode"], error["message"]


def values(found: dict[str, Any]) -> dict[str, list[Any]]:
    return {each["name"]: each["values"] for each in found["measures"]}


def test_two_clusters(get: Get, token: Token, two: None):
    found = body(get(f"/api/v1/acme/compare?ids=1,{OTHER}", token("read")))
    assert (found["kind"], [each["name"] for each in found["items"]]) == ("cluster", ["demo", "etl"])
    measured = values(found)
    assert measured["n_tasks"] == [8, 8]
    assert measured["n_tasks_erred"] == [0, 3]
    assert measured["thread_seconds"] == [40.0, 80.0]
    assert measured["task_seconds"] == [10.0, 12.0]
    assert measured["input_bytes"] == [300, None]
    assert measured["spilled_bytes"] == [50, None]
    assert measured["bytes"] == [8_000, 8_000]
    assert [dollars > 0 for dollars in measured["dollars"]] == [True, True]
    assert found["seconds"] == [{"action": "compute", "values": [10.0, 12.0]}]
    assert [(each["prefix"], each["seconds"], each["share"]) for each in found["groups"]] == [
        ("read", [6.0, 9.0], 0.75),
        ("sum", [4.0, 3.0], 0.25),
    ]
    differing = {(each["what"], each["name"]): each["values"] for each in found["differs"]}
    assert differing == {
        ("cluster", "user"): ["ada", "bob"],
        ("package", "numpy"): ["2.1.0", "1.26.4"],
        ("tag", "team"): ["weather", "rivers"],
        ("worker", "instance_type"): ["m6i.large", "m6i.xlarge"],
        ("worker", "cores"): [2, 4],
        ("worker", "memory"): [8 << 30, 16 << 30],
        ("worker", "threads"): [2, 4],
    }
    (change,) = found["code"]
    assert (change["from"], change["to"]) == (1, 2)
    assert change["diff"].endswith(" a = read()\n-a.sum().compute()\n+a.mean().compute()")
    assert {each["frame"]: each["shares"] for each in found["profile"]} == {
        "load (job.py:7)": pytest.approx([0.75, 0.25]),
        "sum (job.py:9)": pytest.approx([0.25, 0.75]),
    }
    assert (found["missing"], found["skipped"]) == ([], [])
    assert found["as_of"] == "2026-11-21T08:00:00.000Z"


def test_two_computations(get: Get, token: Token, two: None):
    ids = f"{boot_at(START_MS)}-0,{OTHER_BOOT}-0"
    found = body(get(f"/api/v1/acme/compare?ids={ids}", token("read")))
    assert found["kind"] == "computation"
    assert [(each["cluster_id"], each["status"]) for each in found["items"]] == [(1, "finished"), (2, "erred")]
    measured = values(found)
    assert measured["duration"] == [5.0, 9.0]
    assert measured["thread_seconds"] == [9.0, 68.0]  # of workers that came half a second later
    assert measured["task_seconds"] == [10.0, 12.0]
    assert "n_computations" not in measured
    differing = {(each["what"], each["name"]): each["values"] for each in found["differs"]}
    assert differing["workers", "count"] == [1, 2]
    assert differing["package", "numpy"] == ["2.1.0", "1.26.4"]
    assert len(found["code"]) == 1


def test_packages_count_only_where_all_sides_tell_them(get: Get, token: Token, two: None,
                                                       post: Callable[..., Any], drain: Callable[[], Any]):  # fmt: skip
    mixed = [member(no=0), member(no=1, id="b", n_threads=8)]
    third = identity(versions={"dask": "1"})
    post(message(cluster="0" * 31 + "3", boot=boot_at(START_MS, 8), identity=third, members=mixed))
    drain()
    found = body(get("/api/v1/acme/compare?ids=1,3", token("read")))
    packages = {each["name"]: each["values"] for each in found["differs"] if each["what"] == "package"}
    assert {"what": "worker", "name": "threads", "values": [2, [2, 8]]} in found["differs"]
    assert packages == {"dask": [None, "1"], "distributed": ["2026.8.0", None]}
    assert found["missing"] == [
        "3: its processes have not told all of their packages: those of the scheduler's versions are compared",
        "3: its code is not kept",
        "3: nothing of its profile is kept",
    ]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ("", "ids names 0 things, each counted once; allowed: 2 to 8 clusters"),
        ("1", "ids names 1 things"),
        (f"1,{CLUSTER}", "ids names 1 things"),
        ("1,2,3,4,5,6,7,8,9", "ids names 9 things"),
        (f"1,{boot_at(START_MS)}-0", "ids are of clusters and of computations"),
    ],
)
def test_what_cannot_be_compared(get: Get, token: Token, two: None, ids: str, said: str):
    status, message = refused(get(f"/api/v1/acme/compare?ids={ids}", token("read")))
    assert (status, message.startswith(said)) == (400, True), message


def test_what_is_not_there(get: Get, token: Token, two: None):
    assert refused(get("/api/v1/acme/compare?ids=1,99", token("read")))[0] == 404
    assert (
        refused(get(f"/api/v1/acme/compare?ids={boot_at(START_MS)}-0,{boot_at(START_MS)}-9", token("read")))[0] == 404
    )
    assert refused(get("/api/v1/acme/compare?ids=1,2", token("read", account="globex")))[0] == 404


def test_workers_one_after_another_count_as_one(get: Get, token: Token, post: Any, drain: Any):
    """Against one that stays: ten, each there for a tenth of the time."""
    for number in range(2):
        ten = [
            member(no=no, id=f"w{no}", joined_ms=START_MS + no * 1000, left_ms=START_MS + (no + 1) * 1000)
            for no in range(10)
        ]
        stays = [member(no=0, joined_ms=START_MS)]
        posted = post(
            message(
                cluster=f"{number + 1:032x}", boot=boot_at(START_MS, number), computations=job(FIRST, 10),
                groups=groups({"no": 0}), members=ten if number else stays,
            )
        )  # fmt: skip
        assert posted["statusCode"] < 300, posted
    assert drain() == {"batchItemFailures": []}
    ids = f"{boot_at(START_MS, 0)}-0,{boot_at(START_MS, 1)}-0"
    found = body(get(f"/api/v1/acme/compare?ids={ids}", token("read")))
    assert values(found)["thread_seconds"] == [20.0, 20.0]
    assert not [each for each in found["differs"] if each["what"] == "workers"]

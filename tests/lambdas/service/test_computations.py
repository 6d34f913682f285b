import json
from datetime import UTC, datetime
from typing import Any

import pytest

from daskscope import wire
from daskscope.errors import NotFound
from daskscope.testing import CLUSTER, START_MS, boot_at, exception, groups, identity
from daskscope_lambdas.adapters.local.vault import DiskVault
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.computations import Computations, Wanted
from daskscope_lambdas.service.found import Asker, Found
from daskscope_lambdas.testing import FakeClock
from tests.query.lake_rig import DAY_S, OTHER, START, LakeRig, catalog, envelope

BOOT, LATER = boot_at(START_MS), boot_at(START_MS + 60_000)
CODE = wire.Code(hash="ba7816bf8f01cfea414140de5dae2223", text="abc")
LIBRARY = wire.Frame(code="b" * 32, file="lib.py", line=7, line_in_code=2)


def frame(**changes: Any) -> wire.Frame:
    values: dict[str, Any] = {"code": CODE.hash, "file": "job.py", "line": 3, "line_in_code": 1}
    return wire.Frame(**values | changes)


def computation(no: int, took_ms: int | None = 1_000, start_ms: int = 0, **changes: Any) -> wire.Computation:
    stop_ms = None if took_ms is None else START_MS + start_ms + took_ms
    return wire.Computation(no=no, start_ms=START_MS + start_ms, stop_ms=stop_ms, **changes)


def row(**changes: Any) -> ClusterRow:
    values: dict[str, Any] = {
        "account": "acme", "id": 1, "uuid": CLUSTER, "started_at": START, "first_received_at": START,
        "last_received_at": START, "next_s": 10.0,
    }  # fmt: skip
    return ClusterRow(**values | changes)


@pytest.fixture
def listed() -> dict[str, Any]:
    """The catalog, as keyword `table`."""
    return {"table": catalog({CLUSTER: "ada", OTHER: "bob"}, thread_us=20_000_000, dollars=10.0)}


@pytest.fixture
def computations(rig: LakeRig, clock: FakeClock, listed: dict[str, Any], tmp_path: Any) -> Computations:
    codes = CodeKeeper(rig.objects, DiskVault(tmp_path / "keys"))
    codes.keep("acme", [CODE])
    asker = Asker(str(rig.root), rig.seals, rig.deletions)
    return Computations(asker, clock, codes, lambda _: listed["table"])


def at(ms: int) -> datetime:
    return datetime.fromtimestamp((START_MS + ms) / 1000, UTC)


def numbers(found: Found) -> list[int]:
    return [int(record["id"].rpartition("-")[2]) for record in found.rows]


def test_computations_with_their_groups_sums_and_code(rig: LakeRig, computations: Computations) -> None:
    calls = [[frame(), LIBRARY], [frame()]]
    rig.write(
        envelope(
            computations=[
                computation(0, 9, code=calls), computation(1, None, 5), computation(2, 2, 6), computation(3, 1, 7),
                computation(4, 1, 8),
            ],
            groups=groups(
                {"no": 0, "name": "read", "states": {"released": 4}, "action_us": {"disk-read": 500_000}},
                {"no": 1, "name": "sum", "states": {"memory": 1, "released": 3}, "dependencies": [0], "n_tasks": 6},
                {"no": 2, "computation": None, "name": "scattered"},
                {"no": 3, "computation": 2, "states": {"erred": 1}},
                {"no": 4, "computation": 3, "states": {"forgotten": 1}},
            ),
            exceptions=[exception(group=4)],
        )
    )  # fmt: skip
    found = computations.of_cluster(row(), 100, 0)
    assert [(c["id"], c["status"]) for c in found.rows] == [
        (f"{BOOT}-4", "unknown"), (f"{BOOT}-3", "erred"), (f"{BOOT}-2", "erred"), (f"{BOOT}-1", "running"),
        (f"{BOOT}-0", "finished"),
    ]  # fmt: skip
    first = found.rows[4]
    assert (first["start"], first["stop"], first["duration"], first["cluster_id"]) == (at(0), at(9), 0.009, 1)
    assert (first["user"], first["cluster_name"]) == ("ada", "of ada")
    assert [(each["text"], each["file"]) for each in first["code"]] == [("abc", "job.py"), (None, "lib.py")]
    assert all("code" not in each for each in first["code"]), "hashes are nobody's business"
    assert (first["n_tasks"], first["bytes"]) == (10, 8_000)
    assert first["states"] == {"released": 7, "memory": 1}
    assert first["seconds"] == {"disk-read": 0.5, "compute": 4.0}
    assert [(g["name"], g["dependencies"]) for g in first["groups"]] == [("read", []), ("sum", ["read"])]
    assert set(first["groups"][0]) >= {
        "id", "name", "prefix", "start", "stop", "n_tasks", "states", "seconds", "bytes", "dependencies", "types",
        "span",
    }  # fmt: skip
    assert found.rows[3]["duration"] is None
    assert found.rows[3]["fingerprint"] is None
    assert found.rows[1]["n_tasks_erred"] == 3
    assert (found.skipped, found.as_of) == ([], at(0))
    assert numbers(computations.of_cluster(row(), 1, 2)) == [2]
    assert [g["name"] for g in computations.groups(row(), 9, 0).rows if g["computation"] is None] == ["scattered"]
    json.dumps(found.rows, default=datetime.isoformat)


def test_what_was_forgotten_before_any_of_it_was_done_is_unfinished(rig: LakeRig, computations: Computations) -> None:
    """Four of each computation's tasks: given up, done and forgotten, failed and forgotten, scattered; none at all."""
    forgotten = {"states": {"forgotten": 4}}
    never = {**forgotten, "start_ms": None, "stop_ms": None, "action_us": {}}
    rig.write(
        envelope(
            computations=[computation(no, start_ms=no) for no in range(4)],
            groups=groups(
                {"no": 0, "prefix": "slow", **never}, {"no": 1, "computation": 1, "prefix": "read", **forgotten},
                {"no": 2, "computation": 2, "prefix": "bad", **never},
                {"no": 3, "computation": 2, "prefix": "after", **never},
                {"no": 4, "computation": None, "prefix": "scattered", **never},
            ),
            exceptions=[exception(group=2, count=4)],
        )
    )  # fmt: skip
    found = computations.of_cluster(row(), 9, 0, Wanted(sort="start")).rows
    assert [each["status"] for each in found] == ["unfinished", "finished", "erred", "unknown"]
    assert [each["duration"] for each in found] == [1.0, 1.0, 1.0, None], (
        "without a task nothing tells how long it took"
    )
    told = {each["prefix"]: (each["n_given_up"], each["n_tasks_erred"]) for each in computations.prefixes(row()).rows}
    assert told == {"slow": (4, 0), "read": (0, 0), "bad": (0, 4), "after": (0, 0), "scattered": (0, 0)}


def test_what_a_computation_cost_is_its_part_of_the_threads_time(
    rig: LakeRig, computations: Computations, listed: dict[str, Any]
) -> None:
    """4 s of 20 s of a cluster that cost $10; what took longer than all threads had is all of it."""
    endless = {"compute": 10**15, "transfer": -5}
    rig.write(
        envelope(
            computations=[computation(0), computation(1)],
            groups=groups({"no": 0}, {"no": 1, "computation": 1, "action_us": endless}),
        )
    )
    dear, plain = (found["cost"] for found in computations.of_cluster(row(), 9, 0, Wanted(sort="-cost")).rows)
    assert plain == {
        "dollars": pytest.approx(2.0), "idle": None, "failed": None, "currency": "USD", "quality": "estimated",
        "basis": "estimated: 4 s of workers at $1,800.00 a thread-hour of cluster 1",
    }  # fmt: skip
    assert dear["dollars"] == 10.0
    listed["table"] = catalog({CLUSTER: "ada", OTHER: "bob"}, thread_us=20_000_000, dollars=10.0, currency="EUR")
    euros = computations.of_cluster(row(), 9, 0, Wanted(sort="cost")).rows[0]["cost"]
    assert (euros["currency"], euros["basis"]) == (
        "EUR", "estimated: 4 s of workers at 1,800.00 EUR a thread-hour of cluster 1",
    )  # fmt: skip
    listed["table"] = listed["table"].slice(0, 0)  # The registry's row has come, its line in the catalog has not.
    (cost, _) = (found["cost"] for found in computations.of_cluster(row(), 9, 0).rows)
    assert (cost["dollars"], cost["quality"]) == (None, "unknown")


def test_none_runs_on_in_a_cluster_that_has_ended(
    rig: LakeRig, computations: Computations, clock: FakeClock, listed: dict[str, Any]
) -> None:
    rig.write(envelope(computations=[computation(0, None), computation(1)], groups=groups({"no": 0})))
    table = listed["table"]

    def states(**columns: Any) -> list[str]:
        listed["table"] = catalog({CLUSTER: "ada"}, **columns)
        return [found["status"] for found in computations.of_cluster(row(), 9, 0).rows]

    assert states(next_s=10.0) == ["unknown", "running"]
    assert states(phase="closed") == ["unknown", "unfinished"]
    clock.at = START + 31
    assert states(next_s=10.0) == ["unknown", "unfinished"]
    listed["table"] = table.slice(0, 0)
    assert computations.of_cluster(row(phase="closed"), 9, 0).rows[1]["status"] == "unfinished"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, [3, 2, 1, 0]),
        ({"sort": "start"}, [0, 1, 2, 3]),
        ({"sort": "-duration"}, [1, 2, 0, 3]),  # what has not ended comes last, whichever way
        ({"sort": "duration"}, [0, 2, 1, 3]),
        ({"sort": "-work"}, [2, 1, 0, 3]),
        ({"sort": "-cost"}, [2, 1, 0, 3]),
        ({"sort": "-n_tasks"}, [0, 2, 1, 3]),
        ({"sort": "-n_tasks_erred"}, [1, 3, 2, 0]),
        ({"status": "erred"}, [1]),
        ({"status": "running"}, [3]),
        ({"status": "unfinished"}, []),
        ({"since": at(10_500)}, [3, 2, 1]),
        ({"until": at(10_000)}, [1, 0]),
        ({"since": at(500), "until": at(9_000)}, [0]),
        ({"user": "ada", "cluster": CLUSTER}, [3, 2, 1, 0]),
        ({"user": "bob", "cluster": CLUSTER}, []),
    ],
)
def test_computations_narrowed_and_sorted(
    rig: LakeRig, computations: Computations, wanted: dict[str, Any], expected: list[int]
) -> None:
    rig.write(
        envelope(
            computations=[
                computation(0), computation(1, 30_000, 10_000), computation(2, 20_000, 20_000),
                computation(3, None, 30_000),
            ],
            groups=groups(
                {"no": 0, "n_tasks": 90, "action_us": {"compute": 1}}, {"no": 1, "computation": 1, "n_tasks": 5},
                {"no": 2, "computation": 2, "action_us": {"compute": 4_000_000, "transfer": 1}, "n_tasks": 6},
            ),
            exceptions=[exception(group=1)],
            made_at_ms=START_MS + 31_000,
        )
    )  # fmt: skip
    assert numbers(computations.of_account("acme", 9, 0, Wanted(**wanted))) == expected
    if "user" not in wanted:
        assert numbers(computations.of_cluster(row(), 9, 0, Wanted(**wanted))) == expected


def test_the_same_code_wherever_it_lies_and_however_often_it_was_met(rig: LakeRig, computations: Computations) -> None:
    rig.write(
        envelope(computations=[
            computation(0, 4_000, code=[[frame(), LIBRARY]]),
            computation(1, 2_000, 1, code=[[frame(), LIBRARY], [frame()]]),
            computation(2, 1_000, 2, code=[[frame(line_in_code=9), LIBRARY]]),
            computation(3, 1_000, 3, code=[[LIBRARY]]),
            computation(4, 1_000, 4),
        ], groups=groups({"no": 0, "computation": 0}, {"no": 1, "computation": 1})),
        envelope(cluster=OTHER, cluster_id=2, computations=[
            computation(0, 9_000, code=[[frame(file="/tmp/ipykernel_7/1.py", line=80), LIBRARY]]),
            computation(1, None, 1, code=[[frame(), LIBRARY]]),
        ], groups=groups({"no": 0})),
    )  # fmt: skip
    found = computations.of_cluster(row(), 9, 0).rows
    told = {record["id"].rpartition("-")[2]: record["fingerprint"] for record in found}
    alike = told["0"]
    assert len(alike) == 16
    assert told["1"] == alike
    assert len({alike, told["2"], told["3"]}) == 3
    assert told["4"] is None
    theirs = computations.of_account("acme", 9, 0, Wanted(code=alike, sort="-duration")).rows
    assert [(record["cluster_id"], record["duration"]) for record in theirs] == [
        (2, 9.0),
        (1, 4.0),
        (1, 2.0),
        (2, None),
    ]
    assert "groups" not in theirs[0]
    (one,) = computations.one(row(), f"{BOOT}-0").rows
    assert one["same_code"] == {
        "since": at(-30 * 86_400_000), "n": 4, "n_clusters": 2, "rank": 2, "median_duration": 4.0,
        "least_duration": 2.0, "most_duration": 9.0,
    }  # fmt: skip
    assert computations.one(row(), f"{BOOT}-4").rows[0]["same_code"] is None


def test_a_computation_by_its_id(rig: LakeRig, computations: Computations, listed: dict[str, Any]) -> None:
    """Also of a plugin that has started anew since: its cluster shows the newest start alone."""
    listed["table"] = catalog({CLUSTER: "ada"}, boot=LATER)
    rig.write(
        envelope(computations=[computation(3)], groups=groups({"no": 0, "computation": 3})),
        envelope(boot=LATER, computations=[computation(0)], identity=identity()),
        envelope(account="globex", cluster=OTHER, boot=boot_at(START_MS + 1), computations=[computation(0)]),
    )
    assert computations.cluster_of("acme", f"{LATER}-0") == CLUSTER
    assert computations.cluster_of("acme", f"{BOOT}-3") == CLUSTER
    (one,) = computations.one(row(), f"{BOOT}-3").rows
    assert (one["id"], one["n_tasks"], len(one["groups"])) == (f"{BOOT}-3", 4, 1)
    for unknown in (f"{BOOT}-4", f"{boot_at(START_MS + 1)}-0", f"{boot_at(START_MS + 10**9)}-0"):
        with pytest.raises(NotFound, match=r"No computation .* in account acme"):
            computations.cluster_of("acme", unknown)
    for odd in ("3", f"{BOOT}-x", f"{BOOT}-3-3", "z" * 24 + "-3", ""):
        with pytest.raises(NotFound, match="names no computation"):
            computations.cluster_of("acme", odd)
    with pytest.raises(NotFound, match="in cluster 1"):
        computations.one(row(), f"{BOOT}-4")


def test_what_was_told_before_of_what_went_on_since_counts(
    rig: LakeRig, computations: Computations, clock: FakeClock, listed: dict[str, Any]
) -> None:
    """A computation over midnight: its first group ended the day before."""
    clock.at = START + DAY_S
    listed["table"] = catalog(
        {CLUSTER: "ada"},
        last_received_at=datetime.fromtimestamp(START + DAY_S, UTC),
        thread_us=20_000_000,
        dollars=10.0,
    )
    rig.write(envelope(computations=[computation(0, None)], groups=groups({"no": 0})))
    rig.write(
        envelope(
            seq=1, received_at=START + DAY_S, computations=[computation(0, round(DAY_S * 1e3))],
            groups=groups({"no": 1, "name": "late"}),
        )
    )  # fmt: skip
    (found,) = computations.of_account("acme", 9, 0, Wanted(since=at(round(DAY_S * 1e3) - 10_000))).rows
    assert (found["n_tasks"], found["cost"]["dollars"]) == (8, pytest.approx(4.0))


def test_groups_are_read_a_part_at_a_time_and_named_all_the_same(rig: LakeRig, computations: Computations) -> None:
    rig.write(
        envelope(
            groups=groups(
                {"no": 0, "name": "read"}, {"no": 1, "name": "sum", "dependencies": [0]}, {"no": 2, "name": "c"}
            )
        )
    )
    whole = computations.groups(row(), 9, 0).rows
    assert [(each["name"], each["dependencies"]) for each in whole] == [("read", []), ("sum", ["read"]), ("c", [])]
    assert computations.groups(row(), 1, 1).rows == whole[1:2]
    assert computations.groups(row(), 2, 2).rows == whole[2:]


def test_sums_without_the_groups_are_those_of_the_groups(rig: LakeRig, computations: Computations) -> None:
    """Also of time that a worker's clock told as negative, and of a computation that has none."""
    rig.write(
        envelope(
            computations=[computation(0), computation(1), computation(2)],
            groups=groups(
                {"no": 0, "action_us": {"compute": 5, "transfer": -9}, "states": {"memory": 1}},
                {"no": 1, "action_us": {"compute": 7, "disk-read": 1}, "states": {"memory": 2, "erred": 3}},
                {"no": 2, "computation": 1, "prefix": "read", "action_us": {}, "states": {}},
                {"no": 3, "computation": None, "prefix": "read"},
            ),
        )
    )
    whole = computations.of_cluster(row(), 9, 0).rows
    for record in whole:
        record.pop("groups")
    assert computations.of_cluster(row(), 9, 0, whole=False).rows == whole
    assert computations.of_account("acme", 9, 0, Wanted()).rows == whole
    assert [record["seconds"] for record in whole] == [
        {}, {}, {"compute": 12e-6, "transfer": 0.0, "disk-read": 1e-6},
    ]  # fmt: skip
    told = computations.prefixes(row()).rows
    assert {each["prefix"]: each["n_tasks"] for each in told} == {"sum": 8, "read": 8}
    (mine,) = computations.prefixes(row(), f"{BOOT}-1").rows
    assert (mine["prefix"], mine["n_tasks"]) == ("read", 4)

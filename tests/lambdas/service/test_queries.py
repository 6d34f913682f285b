from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from daskscope.testing import CLUSTER, START_MS, boot_at, event, exception, groups, identity, workers
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.queries import Queries
from daskscope_lambdas.testing import FakeClock
from daskscope_query.lake import Lake, MovedError
from tests.query.lake_rig import DAY, START, LakeRig, envelope

BOOT = boot_at(START_MS)
OTHER = "0" * 31 + "2"


def row(**changes: Any) -> ClusterRow:
    values: dict[str, Any] = {
        "account": "acme", "id": 1, "uuid": CLUSTER, "started_at": START,
        "first_received_at": START, "last_received_at": START,
    }  # fmt: skip
    return ClusterRow(**values | changes)


@pytest.fixture
def queries(rig: LakeRig, clock: FakeClock) -> Queries:
    return Queries(Asker(str(rig.root), rig.seals, rig.deletions), clock)


def at(ms: int) -> datetime:
    return datetime.fromtimestamp((START_MS + ms) / 1000, UTC)


def test_exceptions_name_their_group_and_computation(rig: LakeRig, queries: Queries) -> None:
    rig.write(
        envelope(
            groups=groups({"no": 0, "name": "clean-9", "computation": 5}),
            exceptions=[exception(), exception(no=1, group=None)],
        ),
        envelope(
            cluster=OTHER,
            cluster_id=2,
            identity=identity(user="bob", scheduler_id="Scheduler-2"),
            exceptions=[exception(no=7, last_ms=START_MS)],
        ),
    )
    newest, first = queries.exceptions(row(), 10, 0).rows
    assert (newest["group"], newest["computation"]) == (None, None)
    assert (first["group"], first["computation"], first["user"]) == ("clean-9", f"{BOOT}-5", "ada")
    assert set(first) == {
        "cluster_id", "scheduler_id", "user", "origin", "type", "text", "traceback", "key", "prefix", "group",
        "computation", "workers", "first", "last", "count",
    }  # fmt: skip
    everyone = queries.account_exceptions("acme", 10, 0).rows
    assert [e["user"] for e in everyone] == ["ada", "ada", "bob"]
    assert [e["scheduler_id"] for e in queries.account_exceptions("acme", 10, 0, user="bob").rows] == ["Scheduler-2"]
    recent = queries.account_exceptions("acme", 10, 0, since=at(-3_600_000), cluster=OTHER).rows
    assert [e["cluster_id"] for e in recent] == [2]
    assert queries.account_exceptions("globex", 10, 0).rows == []


def test_kinds_of_exception_are_all_counted(rig: LakeRig, queries: Queries) -> None:
    alike = [exception(no=no, type="KeyError", text="KeyError('a')", count=2) for no in range(3)]
    rare = [exception(no=no, type="ValueError", text=f"ValueError({no})", count=1) for no in range(3, 1500)]
    rig.write(envelope(exceptions=[*alike, *rare]))
    kinds = queries.exception_kinds(row()).rows
    assert len({each.pop("family") for each in kinds}) == 2, "KeyErrors, and ValueErrors of whatever number"
    assert kinds[0] == {"origin": "user", "type": "KeyError", "text": "KeyError('a')", "count": 6}
    assert len(kinds) == 1498


def test_exceptions_since_and_until(rig: LakeRig, queries: Queries, clock: FakeClock) -> None:
    rig.write(envelope(exceptions=[exception(no=0, last_ms=START_MS), exception(no=1, last_ms=START_MS + 5_000)]))
    clock.at = START + 10
    assert [e["last"] for e in queries.account_exceptions("acme", 10, 0, since=at(4_000)).rows] == [at(5_000)]
    assert len(queries.account_exceptions("acme", 10, 0, until=at(4_000)).rows) == 2


def test_events_and_workers_and_samples(rig: LakeRig, queries: Queries) -> None:
    rig.write(
        envelope(seq=0, events=[event(no=0), event(no=1, at_ms=START_MS + 2_000, topic="stealing", worker=None)]),
        envelope(seq=1, workers=workers(["tcp://127.0.0.1:40001"], memory_mib=[1])),
    )
    newest, oldest = queries.events(row(), 10, 0).rows
    assert (newest["topic"], newest["time"], newest["worker"]) == ("stealing", at(2_000), None)
    assert set(oldest) == {"cluster_id", "scheduler_id", "time", "topic", "action", "worker", "detail"}
    assert oldest["scheduler_id"] == "Scheduler-5e0cb1a9-4f7d-4c2e-9ab8-3d6f12e7c5d0"
    stays, left = queries.workers(row()).rows
    assert (stays["status"], stays["memory"], stays["peak_memory"]) == ("running", 1 << 20, 512 << 20)
    assert (left["status"], left["last"], left["in_memory"]) == ("left", at(0), 10)
    assert {w["status"] for w in queries.workers(row(phase="closed")).rows} == {"left"}
    assert [s["n_workers"] for s in queries.samples(row()).rows] == [2, 2]
    assert [w["address"] for w in queries.workers(row()).part(1, 1).rows] == ["tcp://127.0.0.1:40002"]


def test_a_cluster_shows_what_came_after_its_day_was_sealed(rig: LakeRig, queries: Queries) -> None:
    rig.seals.day = DAY
    rig.write(envelope(seq=1))
    assert [s["seq"] for s in queries.samples(row()).rows] == [1]


def test_a_skipped_file_of_either_question_is_told(rig: LakeRig, queries: Queries) -> None:
    rig.write(envelope(exceptions=[exception()]))
    rig.objects.put_new(f"open/groups/day={DAY}/bad.parquet", b"")
    found = queries.exceptions(row(), 10, 0)
    assert (len(found.rows), found.skipped) == (1, [f"open/groups/day={DAY}/bad.parquet"])


def test_when_the_boundary_moves_the_question_is_asked_again(
    rig: LakeRig, queries: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[date | None] = []
    ask = Lake.ask

    def moving(self: Lake, *args: Any, **params: Any) -> Any:
        asked.append(rig.seals.day)
        if len(asked) == 1:
            rig.seals.day = DAY - timedelta(1)
            raise MovedError("gone")
        return ask(self, *args, **params)

    monkeypatch.setattr(Lake, "ask", moving)
    rig.write(envelope())
    assert len(queries.samples(row()).rows) == 1
    assert asked == [None, DAY - timedelta(1)]

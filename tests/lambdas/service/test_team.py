"""What a team sees of all its clusters."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope.testing import CLUSTER, START_MS, death, event, exception, groups, identity
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.team import Team
from daskscope_lambdas.testing import FakeClock
from tests.query.lake_rig import DAY, DAY_S, OTHER, START, TOMORROW, LakeRig, catalog, envelope

BOB = identity(user="bob")


def at(ms: int) -> datetime:
    return datetime.fromtimestamp((START_MS + ms) / 1000, UTC)


@pytest.fixture
def team(rig: LakeRig, clock: FakeClock) -> Team:
    return team_of(rig, clock)


def team_of(rig: LakeRig, clock: FakeClock) -> Team:
    listed = catalog({CLUSTER: "ada", OTHER: "bob"})
    return Team(Asker(str(rig.root), rig.seals, rig.deletions), clock, lambda _: listed)


def seal(rig: LakeRig, clock: FakeClock) -> None:
    """The first day, early on the next one."""
    clock.at = (START // DAY_S + 1) * DAY_S + 2 * 3600 + 1
    assert Compactor(rig.objects, rig.seals, clock, str(rig.root)).run() == [DAY]


def test_prefixes_of_a_team_by_time_bytes_or_count(rig: LakeRig, team: Team) -> None:
    rig.write(
        envelope(
            groups=groups(
                {"no": 0, "prefix": "read", "n_tasks": 9, "nbytes": 10, "action_us": {"disk-read": 9_000_000}},
                {"no": 1, "prefix": "sum", "n_tasks": 4, "nbytes": 30},
            )
        ),
        envelope(cluster=OTHER, cluster_id=2, identity=BOB, groups=groups({"no": 0, "n_tasks": 50, "nbytes": 1})),
    )
    found = team.prefixes("acme", 10, 0)
    assert found.rows == [
        {"prefix": "read", "n_clusters": 1, "n_tasks": 9, "bytes": 10, "seconds": {"disk-read": 9.0}},
        {"prefix": "sum", "n_clusters": 2, "n_tasks": 54, "bytes": 31, "seconds": {"compute": 8.0}},
    ]
    assert found.more == {"days": [None, "2026-11-21"]}
    assert [each["prefix"] for each in team.prefixes("acme", 10, 0, sort="bytes").rows] == ["sum", "read"]
    assert [each["prefix"] for each in team.prefixes("acme", 10, 0, sort="count").rows] == ["sum", "read"]
    assert [each["n_tasks"] for each in team.prefixes("acme", 10, 0, user="bob").rows] == [50]
    later = team.prefixes("acme", 1, 1)
    assert ([each["prefix"] for each in later.rows], later.more) == (["sum"], {})
    assert team.prefixes("acme", 10, 0, between=(None, at(0) - timedelta(1))).rows == []
    assert team.prefixes("globex", 10, 0).rows == []


GROWING = st.lists(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 10**6), st.integers(0, 10**6)), min_size=4, max_size=4),
    min_size=1,
    max_size=4,
)
"""What each message adds to four task groups: tasks, bytes, microseconds of computing."""


SORTS = st.sampled_from(["time", "bytes", "count"])
NEXT_DAY = st.lists(st.booleans(), min_size=4, max_size=4)


@given(GROWING, NEXT_DAY, SORTS)
@settings(max_examples=6, deadline=None)
def test_prefixes_of_days_are_those_of_the_groups(
    added: list[list[tuple[int, int, int]]], next_day: list[bool], sort: str
) -> None:
    """A group's snapshots, on whichever of two days they come: roll-ups of the days add up to the last one."""
    compare_prefixes(added, next_day, sort, sealed=False)


@pytest.mark.long
@given(GROWING, NEXT_DAY, SORTS)
@settings(max_examples=30, deadline=None)
def test_prefixes_of_sealed_days_are_those_of_the_groups(
    added: list[list[tuple[int, int, int]]], next_day: list[bool], sort: str
) -> None:
    compare_prefixes(added, next_day, sort, sealed=True)


def compare_prefixes(added: list[list[tuple[int, int, int]]], next_day: list[bool], sort: str, *, sealed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rig, clock = LakeRig(Path(folder)), FakeClock()
        sums = [[0, 0, 0] for _ in range(4)]
        late = sorted(next_day[: len(added)])
        for seq, more in enumerate(added):
            sums = [[a + b for a, b in zip(old, new, strict=True)] for old, new in zip(sums, more, strict=True)]
            snapshot = groups(*(_group(no, *totals) for no, totals in enumerate(sums)))
            rig.write(envelope(seq=seq, received_at=START + late[seq] * DAY_S, groups=snapshot))
        if sealed and not late[0]:
            seal(rig, clock)
        clock.at = START + DAY_S + 1
        team = team_of(rig, clock)
        row = ClusterRow(
            account="acme", id=1, uuid=CLUSTER, started_at=START, first_received_at=START,
            last_received_at=START + DAY_S,
        )  # fmt: skip
        whole, by_days = team.prefixes_of(row, 10, 0, sort).rows, team.prefixes("acme", 10, 0, sort=sort).rows
        assert [_counted(each) for each in by_days] == [_counted(each) for each in whole]


def _group(no: int, n_tasks: int, nbytes: int, compute_us: int) -> dict[str, Any]:
    return {
        "no": no,
        "prefix": f"p{no % 2}",
        "n_tasks": n_tasks,
        "nbytes": nbytes,
        "action_us": {"compute": compute_us},
    }


def _counted(record: dict[str, Any]) -> tuple[Any, ...]:
    """All but in how many clusters: roll-ups count one on each of its days."""
    return record["prefix"], record["n_tasks"], record["bytes"], record["seconds"].get("compute", 0.0)


def test_families_of_exceptions(rig: LakeRig, team: Team) -> None:
    rig.write(
        envelope(
            exceptions=[
                exception(no=0, text="ValueError('no column x1')", count=3, last_ms=START_MS + 2_000),
                exception(no=1, text="ValueError('no column x22')", prefix="fill", count=5, last_ms=START_MS + 9_000,
                          traceback="the newest"),
                exception(no=2, type="KilledWorker", text="gave up 4 times", origin="scheduler", count=1),
            ]
        ),
        envelope(cluster=OTHER, cluster_id=2, identity=BOB, exceptions=[exception(text="ValueError('no column x1')")]),
    )  # fmt: skip
    found = team.families("acme", 10, 0)
    values, killed = found.rows
    assert len(values.pop("family")) == 16
    assert values == {
        "origin": "user", "type": "ValueError", "text": "ValueError('no column x22')", "pattern": "no column x<n>",
        "prefix": "clean", "n_prefixes": 2, "count": 11, "n_clusters": 2, "users": ["ada", "bob"], "first": at(1_000),
        "last": at(9_000), "new": None, "days": [{"day": "2026-11-21", "count": 11}], "traceback": "the newest",
    }  # fmt: skip
    assert (killed["origin"], killed["pattern"], killed["count"]) == ("scheduler", "gave up <n> times", 1)
    assert [each["type"] for each in team.families("acme", 10, 0, origin="scheduler").rows] == ["KilledWorker"]
    assert [each["count"] for each in team.families("acme", 10, 0, user="bob").rows] == [3]
    assert [each["type"] for each in team.families("acme", 1, 1).rows] == ["KilledWorker"]


def test_a_family_is_new_that_no_earlier_day_has(rig: LakeRig, team: Team, clock: FakeClock) -> None:
    rig.write(envelope(exceptions=[exception(no=0, text="old 1")]))
    seal(rig, clock)
    rig.write(
        envelope(
            seq=1, received_at=START + DAY_S, exceptions=[exception(no=1, text="old 2"), exception(no=2, text="fresh")]
        )
    )
    clock.at = START + DAY_S + 60
    since = datetime(TOMORROW.year, TOMORROW.month, TOMORROW.day, tzinfo=UTC)
    found = team.families("acme", 10, 0, between=(since, None))
    assert {each["pattern"]: (each["new"], each["count"]) for each in found.rows} == {
        "fresh": (True, 3),
        "old <n>": (False, 3),
    }
    assert found.more == {"days": ["2026-11-22", "2026-11-22"]}
    whole = team.families("acme", 10, 0).rows
    assert {each["pattern"]: [day["count"] for day in each["days"]] for each in whole} == {
        "old <n>": [3, 3],
        "fresh": [3],
    }


def test_families_are_the_same_after_a_day_is_sealed(rig: LakeRig, team: Team, clock: FakeClock) -> None:
    rig.write(
        envelope(exceptions=[exception(no=no, text=f"part {no} is gone", count=no + 1) for no in range(4)]),
        envelope(cluster=OTHER, cluster_id=2, exceptions=[exception(no=0, type="KeyError", text="'a'")]),
    )
    before = team.families("acme", 10, 0).rows
    assert [each["count"] for each in before] == [10, 3]
    seal(rig, clock)
    assert team.families("acme", 10, 0).rows == before


def test_deaths_and_events_name_their_cluster(rig: LakeRig, team: Team) -> None:
    rig.write(
        envelope(
            deaths=[death(no=0), death(no=1, expected=True, at_ms=START_MS + 8_000)],
            events=[event(no=0), event(no=1, topic="mine", at_ms=START_MS + 3_000)],
        ),
        envelope(cluster=OTHER, cluster_id=2, deaths=[death(at_ms=START_MS + 6_000)], events=[event(at_ms=START_MS)]),
    )
    deaths = team.deaths("acme", 10, 0).rows
    assert [(each["time"], each["cluster_id"], each["cluster_name"], each["user"]) for each in deaths] == [
        (at(8_000), 1, "of ada", "ada"), (at(6_000), 2, "of bob", "bob"), (at(4_000), 1, "of ada", "ada"),
    ]  # fmt: skip
    assert deaths[0]["memory_limit"] == 4 << 30
    assert [each["cluster_id"] for each in team.deaths("acme", 10, 0, expected=False).rows] == [2, 1]
    assert [each["cluster_id"] for each in team.deaths("acme", 10, 0, between=(at(5_000), at(7_000))).rows] == [2]
    events = team.events("acme", 10, 0).rows
    assert [(each["time"], each["cluster_id"], each["topic"]) for each in events] == [
        (at(3_000), 1, "mine"), (at(1_000), 1, "all"), (at(0), 2, "all"),
    ]  # fmt: skip
    assert [each["cluster_name"] for each in team.events("acme", 10, 0, user="bob").rows] == ["of bob"]
    assert [each["topic"] for each in team.events("acme", 10, 0, topic="mine").rows] == ["mine"]
    assert [each["cluster_id"] for each in team.events("acme", 1, 2).rows] == [2]

from datetime import UTC, datetime
from typing import Any

import pytest

from daskscope import wire
from daskscope.errors import NotFound
from daskscope.testing import CLUSTER, START_MS, boot_at, groups, profile
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.found import Asker, Record
from daskscope_lambdas.service.profiles import Profiles, Wanted
from daskscope_lambdas.testing import FakeClock
from tests.query.lake_rig import DAY_S, OTHER, START, LakeRig, catalog, envelope

BOOT = boot_at(START_MS)
ROW = ClusterRow(account="acme", id=1, uuid=CLUSTER, started_at=START, first_received_at=START, last_received_at=START)


@pytest.fixture
def profiles(rig: LakeRig, clock: FakeClock) -> Profiles:
    listed = catalog({CLUSTER: "ada", OTHER: "bob"})
    return Profiles(Asker(str(rig.root), rig.seals, rig.deletions), clock, lambda _: listed)


def at(ms: int) -> datetime:
    return datetime.fromtimestamp((START_MS + ms) / 1000, UTC)


def counts(stacks: list[Record]) -> list[int]:
    return [stack["count"] for stack in stacks]


def test_a_profile_is_summed_over_workers_and_time(rig: LakeRig, profiles: Profiles) -> None:
    rig.write(
        envelope(profiles=[profile(cut=4), profile(prefix=["sum", "read"], count=[1, 100], sample_us=20_000)]),
        envelope(seq=1, profiles=[profile(count=[1, 1])]),
    )
    found = profiles.of_cluster(ROW, Wanted()).stacks(10, 0)
    assert [(row["stack"][-1], row["count"], row["seconds"], row["prefix"]) for row in found.rows] == [
        ("sum (job.py:9)", 111, 2.11, None), ("load (job.py:7)", 32, 0.33, None),
    ]  # fmt: skip
    apart = profiles.of_cluster(ROW, Wanted(by="prefix")).stacks(10, 0).rows
    assert [(row["prefix"], row["count"]) for row in apart] == [("read", 100), ("sum", 32), ("sum", 11)]
    assert counts(profiles.of_cluster(ROW, Wanted(prefix="sum")).stacks(10, 0).rows) == [32, 11]
    assert counts(profiles.of_cluster(ROW, Wanted()).stacks(1, 1).rows) == [32]
    assert found.more == {"total": {"count": 143, "seconds": 2.44}, "cut": {"count": 4, "seconds": 0.04}}
    read = profiles.of_cluster(ROW, Wanted(prefix="read")).stacks(10, 0)
    assert read.more["total"] == {"count": 100, "seconds": 2.0}


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, at(60_000), [30, 10]), (at(60_000), None, [3, 1]), (at(59_999), at(60_001), [33, 11]),
        (at(120_000), None, []), (None, at(0), []),
    ],
)  # fmt: skip
def test_a_profile_of_some_intervals(rig: LakeRig, profiles: Profiles, since: datetime | None, until: datetime | None,
                                     expected: list[int]) -> None:  # fmt: skip
    later = profile(from_ms=START_MS + 60_000, to_ms=START_MS + 120_000, count=[3, 1], cut=5)
    rig.write(envelope(profiles=[profile()]), envelope(seq=1, profiles=[later]))
    found = profiles.of_cluster(ROW, Wanted(since=since, until=until)).stacks(10, 0)
    assert counts(found.rows) == expected
    assert found.more["total"]["count"] == sum(expected)
    assert found.more["cut"]["count"] == (5 if 3 in expected or 33 in expected else 0)


def test_a_profile_that_was_sent_again_on_another_day_counts_once(rig: LakeRig, profiles: Profiles) -> None:
    rig.write(envelope(profiles=[profile()]), envelope(profiles=[profile()]))
    rig.write(envelope(profiles=[profile()], received_at=START + DAY_S))
    row = ClusterRow(account="acme", id=1, uuid=CLUSTER, started_at=START, first_received_at=START,
                     last_received_at=START + DAY_S)  # fmt: skip
    assert counts(profiles.of_cluster(row, Wanted()).stacks(9, 0).rows) == [30, 10]


def test_a_profile_of_a_computation(rig: LakeRig, profiles: Profiles) -> None:
    """Its prefixes, while it ran: the interval of which it has a part, and no other boot's."""
    minute = 60_000
    rig.write(
        envelope(
            computations=[
                wire.Computation(no=0, start_ms=START_MS, stop_ms=START_MS + 9),
                wire.Computation(no=1, start_ms=START_MS + minute + 1, stop_ms=START_MS + 2 * minute - 1),
                wire.Computation(no=2, start_ms=START_MS + 2 * minute),
            ],
            groups=groups({"no": 0}, {"no": 1, "computation": 1}, {"no": 2, "computation": 1, "prefix": "read"}),
            profiles=[profile(prefix=["sum", "other"], count=[1, 2])],
        ),
        envelope(seq=1, profiles=[profile(
            from_ms=START_MS + minute, to_ms=START_MS + 2 * minute, prefix=["sum", "read"], count=[4, 8])]),
        envelope(seq=2, profiles=[profile(
            from_ms=START_MS + 2 * minute, to_ms=START_MS + 3 * minute, prefix=["sum", "read"], count=[16, 32])]),
        envelope(boot=boot_at(START_MS + 1), profiles=[profile(
            from_ms=START_MS + minute, to_ms=START_MS + 2 * minute, prefix=["sum", "read"], count=[64, 128])]),
    )  # fmt: skip

    def total(no: int, **wanted: Any) -> tuple[int, list[int]]:
        found = profiles.of_cluster(ROW, Wanted(**wanted), f"{BOOT}-{no}").stacks(9, 0)
        return found.more["total"]["count"], counts(found.rows)

    assert total(0) == (1, [1])
    assert total(1) == (12, [8, 4])
    assert total(1, prefix="sum") == (4, [4])
    assert total(1, prefix="other") == total(1, since=at(2 * minute)) == total(1, until=at(minute)) == (0, [])
    assert total(2) == (0, []), "it has no group of its own"
    with pytest.raises(NotFound, match=r"No computation .*-7 in cluster 1"):
        profiles.of_cluster(ROW, Wanted(), f"{BOOT}-7")


def test_a_profile_of_all_clusters(rig: LakeRig, profiles: Profiles) -> None:
    rig.write(
        envelope(profiles=[profile(count=[1, 2], cut=7)]),
        envelope(cluster=OTHER, cluster_id=2, profiles=[profile(count=[4, 8], cut=9)]),
        envelope(account="globex", profiles=[profile(count=[900, 900])]),
    )

    def told(**wanted: Any) -> list[int]:
        return counts(profiles.of_account("acme", Wanted(**wanted)).stacks(9, 0).rows)

    assert told() == [10, 5]
    assert told(user="bob") == [8, 4]
    assert told(user="bob", prefix="nothing") == told(since=at(120_000)) == []
    by_user = profiles.of_account("acme", Wanted(by="user")).stacks(9, 0)
    assert [(row["user"], row["count"]) for row in by_user.rows] == [("bob", 8), ("bob", 4), ("ada", 2), ("ada", 1)]
    assert by_user.more == {"total": {"count": 15, "seconds": 0.15}, "cut": {"count": 16, "seconds": 0.16}}
    bob = profiles.of_account("acme", Wanted(user="bob")).stacks(9, 0)
    assert (bob.more["total"]["count"], bob.more["cut"]["count"]) == (12, 9)


def test_trees_of_a_profile(rig: LakeRig, profiles: Profiles) -> None:
    rig.write(
        envelope(profiles=[profile(count=[1, 2])]),
        envelope(cluster=OTHER, cluster_id=2, profiles=[profile(count=[4, 8])]),
    )
    found = profiles.of_account("acme", Wanted()).trees()
    (root,) = found.rows
    assert (root["name"], root["count"], root["seconds"], root["self_count"]) == ("all", 15, 0.15, 0)
    (main,) = root["children"]
    assert (main["name"], main["file"], main["line"], main["count"]) == ("main", "job.py", 1, 15)
    assert found.more["total"]["count"] == 15
    apart = profiles.of_account("acme", Wanted(by="user")).trees().rows
    assert [(tree["name"], tree["count"]) for tree in apart] == [("bob", 12), ("ada", 3)]


def test_what_the_heaviest_stacks_do_not_have_is_the_rest(
    rig: LakeRig, profiles: Profiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daskscope_lambdas.service.profiles.MAX_STACKS", 1)
    rig.write(envelope(profiles=[profile(count=[30, 10])]))
    (root,) = profiles.of_cluster(ROW, Wanted()).trees().rows
    assert root["count"] == 40
    assert [(child["name"], child["count"]) for child in root["children"]] == [("main", 30), ("(rest)", 10)]

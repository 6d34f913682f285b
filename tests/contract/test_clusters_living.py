from collections.abc import Callable
from dataclasses import replace

import pytest

from daskscope_lambdas.ports import Clusters, Heard, Missing, identity_key
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters
from tests.contract.beats import BEAT, alive, all_pages


def test_living_are_those_of_all_accounts_that_did_not_close(clusters: Clusters) -> None:
    assert alive(clusters) == []
    for account, uuid in (("acme", "u1"), ("acme", "u2"), ("other", "u3")):
        clusters.enrol(account, uuid, 90.0, 100.0)
    assert alive(clusters) == ["u1", "u2", "u3"]
    clusters.beat("acme", "u1", BEAT)
    clusters.beat("acme", "u2", replace(BEAT, phase="closed"))
    assert alive(clusters) == ["u1", "u3"]
    assert {row.uuid: row for row in clusters.living()}["u1"] == clusters.find("acme", "u1")


def test_a_closed_cluster_that_speaks_again_lives_again(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    clusters.beat("acme", "u1", replace(BEAT, phase="closed", reason="user"))
    assert not clusters.beat("acme", "u1", BEAT).newer  # it stays closed
    assert alive(clusters) == []
    assert clusters.beat("acme", "u1", replace(BEAT, boot="b2")).newer
    assert alive(clusters) == ["u1"]
    assert clusters.find("acme", "u1").reason is None


def test_all_of_many_live(clusters: Clusters) -> None:
    uuids = [f"u{n:04}" for n in range(230)]  # DynamoDB gives 100 rows at a time
    for uuid in uuids:
        clusters.enrol("acme", uuid, 90.0, 100.0)
    clusters.beat("acme", uuids[7], replace(BEAT, phase="closed"))
    clusters.retire(clusters.find("acme", uuids[8]))
    assert alive(clusters) == uuids[:7] + uuids[9:]
    rows = all_pages(clusters, "acme", None, 220)
    assert [row.id for row in rows] == sorted((row.id for row in rows), reverse=True)
    assert sorted(row.uuid for row in rows) == uuids


def test_a_retired_cluster_is_left_alone_until_its_next_beat(clusters: Clusters) -> None:
    clusters.enrol("acme", "u0", 90.0, 100.0)
    clusters.enrol("acme", "u1", 90.0, 100.0)
    clusters.beat("acme", "u1", BEAT)
    row = clusters.find("acme", "u1")
    assert clusters.retire(row)
    assert alive(clusters) == ["u0"]
    assert clusters.find("acme", "u1") == row
    assert row in clusters.page("acme", None, 10, None).rows
    assert not clusters.retire(row)
    assert clusters.beat("acme", "u1", replace(BEAT, seq=1, identity=None)).newer
    assert alive(clusters) == ["u0", "u1"]


def test_one_that_never_spoke_can_be_retired(clusters: Clusters) -> None:
    assert clusters.retire(clusters.enrol("acme", "u1", 90.0, 100.0))
    assert alive(clusters) == []


def test_who_was_heard_of_since_is_not_retired(clusters: Clusters) -> None:
    before = clusters.enrol("acme", "u1", 90.0, 100.0)
    clusters.beat("acme", "u1", BEAT)
    assert not clusters.retire(before)
    assert alive(clusters) == ["u1"]
    clusters.beat("acme", "u1", replace(BEAT, seq=1, phase="closed"))
    assert not clusters.retire(clusters.find("acme", "u1"))  # it closed, so it is out already


def test_retiring_what_is_not_there_is_missing(clusters: Clusters) -> None:
    row = clusters.enrol("acme", "u1", 90.0, 100.0)
    for other in (replace(row, uuid="u2"), replace(row, account="other")):
        with pytest.raises(Missing):
            clusters.retire(other)
    assert alive(clusters) == ["u1"]


def test_one_of_many_racing_callers_retires(connect_again: Callable[[], Adapters]) -> None:
    registries = [connect_again().clusters for _ in range(32)]
    row = registries[0].enrol("acme", "u1", 90.0, 100.0)
    outcomes = race(32, lambda n: registries[n].retire(row))
    assert sorted(outcomes, key=bool) == [False] * 31 + [True]


def test_a_beat_wins_over_those_who_retire(connect_again: Callable[[], Adapters]) -> None:
    registries = [connect_again().clusters for _ in range(16)]
    row = registries[0].enrol("acme", "u1", 90.0, 100.0)

    def work(n: int) -> bool:
        return registries[n].beat("acme", "u1", BEAT).newer if n == 7 else registries[n].retire(row)

    assert race(16, work)[7] is True
    assert alive(registries[0]) == ["u1"]


def test_a_beat_tells_that_the_cluster_was_asked_to_close(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    clusters.beat("acme", "u1", BEAT)
    before = clusters.find("acme", "u1")
    assert clusters.ask_close("acme", "u1", "ann", "costs \u20ac 4 an hour", 120.25)
    asked = replace(before, close_asked_at=120.25, close_asked_by="ann", close_asked_reason="costs \u20ac 4 an hour")
    assert clusters.find("acme", "u1") == clusters.get("acme", 1) == asked
    assert clusters.page("acme", None, 10, None).rows == list(clusters.living()) == [asked]
    assert clusters.beat("acme", "u1", BEAT) == Heard(False, 120.25)  # come again, and not newer
    assert clusters.beat("acme", "u1", replace(BEAT, seq=1, identity=None)) == Heard(True, 120.25)
    assert clusters.beat("acme", "u1", replace(BEAT, seq=2, received_at=50.0)) == Heard(True, 120.25)
    assert clusters.find("acme", "u1") == replace(asked, seq=2, identity_of=identity_key("b1", 2))


def test_the_last_who_asks_stands(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    assert clusters.ask_close("acme", "u1", "ann", "idle", 120.0)
    assert clusters.ask_close("acme", "u1", "bob", None, 130.0)
    row = clusters.find("acme", "u1")
    assert (row.close_asked_at, row.close_asked_by, row.close_asked_reason) == (130.0, "bob", None)


def test_one_that_has_closed_is_not_asked(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    clusters.ask_close("acme", "u1", "ann", None, 105.0)
    clusters.beat("acme", "u1", replace(BEAT, phase="closed", reason="close-requested"))
    before = clusters.find("acme", "u1")
    assert before.close_asked_at == 105.0
    assert not clusters.ask_close("acme", "u1", "bob", None, 130.0)
    assert clusters.find("acme", "u1") == before
    with pytest.raises(Missing):
        clusters.ask_close("acme", "u2", "bob", None, 130.0)


def test_asking_makes_no_retired_cluster_live(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    clusters.retire(clusters.find("acme", "u1"))
    assert clusters.ask_close("acme", "u1", "ann", None, 105.0)
    assert alive(clusters) == []

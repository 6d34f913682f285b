from collections.abc import Callable
from dataclasses import replace

import pytest

from daskscope_lambdas.ports import Clusters, Gone, Missing
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters
from tests.contract.beats import BEAT, alive, all_pages


@pytest.fixture
def gone(clusters: Clusters) -> str:
    clusters.enrol("acme", "c1", 100.0, 110.0)
    clusters.beat("acme", "c1", BEAT)
    clusters.enrol("acme", "c2", 101.0, 111.0)
    clusters.forget("acme", "c1", 200.0)
    return "c1"


def test_a_forgotten_cluster_is_in_no_answer(clusters: Clusters, gone: str) -> None:
    with pytest.raises(Missing):
        clusters.find("acme", gone)
    with pytest.raises(Missing):
        clusters.get("acme", 1)
    assert [row.uuid for row in all_pages(clusters, "acme")] == ["c2"]
    assert alive(clusters) == ["c2"]


def test_it_does_not_come_again(clusters: Clusters, gone: str) -> None:
    for account in ("acme", "globex"):
        with pytest.raises(Gone):
            clusters.enrol(account, gone, 100.0, 300.0)
    with pytest.raises(Gone):
        clusters.beat("acme", gone, replace(BEAT, seq=9))
    with pytest.raises(Gone):
        clusters.beat("acme", gone, BEAT)
    with pytest.raises(Missing):
        clusters.ask_close("acme", gone, "ann", None, 300.0)
    assert [row.uuid for row in all_pages(clusters, "acme")] == ["c2"]


def test_it_cannot_be_retired(clusters: Clusters) -> None:
    row = clusters.enrol("acme", "c1", 100.0, 110.0)
    clusters.forget("acme", "c1", 200.0)
    with pytest.raises(Missing):
        clusters.retire(row)


def test_forgetting_twice_is_quiet_but_only_for_its_account(clusters: Clusters, gone: str) -> None:
    clusters.forget("acme", gone, 300.0)
    for account, uuid in (("globex", gone), ("globex", "c2"), ("acme", "never")):
        with pytest.raises(Missing):
            clusters.forget(account, uuid, 300.0)
    assert clusters.find("acme", "c2").id == 2


def test_one_that_is_dropped_may_come_again(clusters: Clusters) -> None:
    clusters.enrol("acme", "c1", 100.0, 110.0)
    clusters.beat("acme", "c1", BEAT)
    row = clusters.find("acme", "c1")
    assert clusters.drop(row)
    assert clusters.drop(row), "quiet if it is gone"
    for ask in (lambda: clusters.find("acme", "c1"), lambda: clusters.get("acme", 1)):
        with pytest.raises(Missing):
            ask()
    assert (all_pages(clusters, "acme"), alive(clusters), clusters.deleted(["c1"])) == ([], [], set())
    assert clusters.enrol("acme", "c1", 100.0, 300.0).id == 2
    assert clusters.beat("acme", "c1", replace(BEAT, seq=9)).newer


def test_one_that_is_heard_of_meanwhile_is_not_dropped(clusters: Clusters) -> None:
    row = clusters.enrol("acme", "c1", 100.0, 110.0)
    clusters.beat("acme", "c1", BEAT)
    assert not clusters.drop(row)
    assert clusters.find("acme", "c1").seq == BEAT.seq
    assert clusters.get("acme", 1).uuid == "c1"


def test_that_it_was_deleted_stays_when_it_is_dropped(clusters: Clusters) -> None:
    row = clusters.enrol("acme", "c1", 100.0, 110.0)
    clusters.forget("acme", "c1", 200.0)
    assert clusters.drop(row)
    assert clusters.deleted(["c1"]) == {"c1"}


def test_which_were_deleted(clusters: Clusters, gone: str) -> None:
    assert clusters.deleted([gone, "c2", "never"]) == {gone}
    assert clusters.deleted([]) == set()
    many = [f"c{n}" for n in range(10, 220)]
    for uuid in many[:150]:
        clusters.enrol("acme", uuid, 1.0, 1.0)
        if uuid < "c15":
            clusters.forget("acme", uuid, 2.0)
    assert clusters.deleted(many) == {uuid for uuid in many[:150] if uuid < "c15"}


def test_its_number_is_not_given_again(clusters: Clusters, gone: str) -> None:
    clusters.forget("acme", "c2", 200.0)
    assert clusters.enrol("acme", "c3", 102.0, 112.0).id == 3


def test_an_account_without_clusters_may_start_anew(clusters: Clusters, gone: str) -> None:
    clusters.forget_numbers("acme")
    assert clusters.enrol("acme", "c3", 102.0, 112.0).id == 3
    for uuid in ("c2", "c3"):
        clusters.forget("acme", uuid, 200.0)
    clusters.forget_numbers("acme")
    clusters.forget_numbers("nobody")
    assert clusters.enrol("acme", "c4", 103.0, 113.0).id == 1


def test_many_may_forget_it_at_once(clusters: Clusters, connect_again: Callable[[], Adapters]) -> None:
    clusters.enrol("acme", "c1", 100.0, 110.0)
    every = [connect_again().clusters for _ in range(8)]
    assert race(8, lambda n: every[n].forget("acme", "c1", 200.0 + n)) == [None] * 8
    assert clusters.deleted(["c1"]) == {"c1"}

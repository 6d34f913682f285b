from dataclasses import replace

import pytest

from daskscope_lambdas.ports import Clusters
from tests.contract.beats import BEAT


def changed(clusters: Clusters, since_at: float, last_id: int = 0, running: tuple[str, ...] = ()) -> list[str]:
    rows = list(clusters.changed("acme", since_at, last_id, running))
    assert all(row == clusters.find("acme", row.uuid) for row in rows)
    return sorted(row.uuid for row in rows)


def enrol(clusters: Clusters, *uuids: str, account: str = "acme", at: float = 100.0) -> None:
    for uuid in uuids:
        clusters.enrol(account, uuid, 90.0, at)


def test_many_come_in_the_order_they_were_asked_for(clusters: Clusters) -> None:
    uuids = [f"u{n:03}" for n in range(230)]  # DynamoDB gives 100 at a time
    enrol(clusters, *uuids)
    enrol(clusters, "theirs", account="other")
    clusters.forget("acme", "u007", 120.0)
    asked = ["u200", "never", "u001", "u007", "theirs", *uuids[100:220]]
    rows = clusters.get_many("acme", asked[:5])
    assert [row.uuid for row in rows] == ["u200", "u001"]
    assert rows[0] == clusters.find("acme", "u200")
    assert [row.uuid for row in clusters.get_many("acme", uuids[220:0:-1])] == [
        uuid for uuid in uuids[220:0:-1] if uuid != "u007"
    ]
    assert clusters.get_many("acme", []) == []


def test_who_knows_nothing_is_told_all_that_was_heard_of(clusters: Clusters) -> None:
    assert changed(clusters, 0.0) == []
    enrol(clusters, "u1", "u2")
    enrol(clusters, "u3", at=200.0)
    enrol(clusters, "o1", account="other")
    clusters.beat("acme", "u1", replace(BEAT, phase="closed", received_at=150.0))
    assert changed(clusters, 0.0) == ["u1", "u2", "u3"]
    assert changed(clusters, 150.0) == ["u1", "u3"], "the moment itself counts"
    assert changed(clusters, 200.1) == []


def test_who_lives_who_did_and_who_is_new(clusters: Clusters) -> None:
    enrol(clusters, "lives", "closes", "slept", "ended", "silent")
    for uuid in ("lives", "closes", "slept", "silent"):
        clusters.beat("acme", uuid, BEAT)
    clusters.beat("acme", "ended", replace(BEAT, phase="closed"))
    clusters.retire(clusters.find("acme", "slept"))
    running = ("lives", "closes", "slept", "silent")
    later = replace(BEAT, seq=1, identity=None, received_at=210.0)
    clusters.beat("acme", "lives", later)
    clusters.beat("acme", "closes", replace(later, phase="closed"))
    clusters.beat("acme", "slept", later)
    enrol(clusters, "new", at=205.0)
    clusters.beat("acme", "new", replace(BEAT, phase="closed", received_at=206.0))
    enrol(clusters, "theirs", account="other", at=206.0)
    assert changed(clusters, 200.0, 5, running) == ["closes", "lives", "new", "slept"]
    clusters.beat("acme", "ended", replace(BEAT, boot="b2", received_at=220.0))
    assert changed(clusters, 200.0, 6, running) == ["closes", "ended", "lives", "new", "slept"]


def test_one_whose_number_was_given_out_and_whose_row_came_late_is_told(clusters: Clusters) -> None:
    enrol(clusters, "u1", "u2", "u3")
    clusters.beat("acme", "u2", replace(BEAT, phase="closed", received_at=110.0))
    # Number 3 was seen before number 2 was there: who knows 3 has not heard of 2.
    assert "u2" in changed(clusters, 105.0, 3, ("u1", "u3"))


def test_who_is_new_is_told_though_the_clock_was_set_back(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope_lambdas.adapters.local.clusters._TOGETHER", 4)
    enrol(clusters, "u1", "u2", at=5000.0)
    later = [f"v{n}" for n in range(10)]
    enrol(clusters, *later[:-1], at=900.0)
    enrol(clusters, later[-1], at=5000.0)
    clusters.beat("acme", "v0", replace(BEAT, phase="closed", received_at=901.0))
    enrol(clusters, "theirs", account="other", at=900.0)
    assert changed(clusters, 4000.0, 2, ("u1", "u2")) == ["u1", "u2", *later]
    assert changed(clusters, 6000.0, 2, ("u1", "u2")) == later


def test_what_is_gone_is_not_told(clusters: Clusters) -> None:
    enrol(clusters, "u1", "u2", "u3")
    clusters.forget("acme", "u1", 120.0)
    clusters.drop(clusters.find("acme", "u2"))
    assert changed(clusters, 0.0) == changed(clusters, 0.0, 2, ("u1", "u2")) == ["u3"]


def test_of_many_none_is_left_out_or_told_twice(clusters: Clusters) -> None:
    uuids = [f"u{n:04}" for n in range(530)]
    enrol(clusters, *uuids)
    known = tuple(uuids[:300])
    assert changed(clusters, 100.0, 300, known) == changed(clusters, 100.0) == uuids


def test_accounts_are_those_that_enrolled(clusters: Clusters) -> None:
    assert clusters.accounts() == set()
    enrol(clusters, "u1", "u2")
    enrol(clusters, "o1", account="other")
    clusters.beat("acme", "u1", replace(BEAT, phase="closed"))
    assert clusters.accounts() == {"acme", "other"}
    clusters.forget("other", "o1", 120.0)
    clusters.forget_numbers("other")
    assert clusters.accounts() == {"acme"}

import itertools
import string
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskscope_lambdas.ports import ClusterRow, Clusters, Heard, Missing, StoreError, Taken, identity_key
from daskscope_lambdas.service.check import MAX_ROW_BYTES
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters
from tests.contract.beats import BEAT, all_pages


def test_a_new_cluster_gets_the_accounts_next_number(clusters: Clusters) -> None:
    assert clusters.enrol("acme", "u1", 90.0, 100.0) == ClusterRow(
        account="acme", id=1, uuid="u1", started_at=90.0, first_received_at=100.0, last_received_at=100.0
    )
    assert clusters.enrol("acme", "u2", 91.0, 101.0).id > 1
    assert clusters.enrol("other", "u3", 92.0, 102.0).id == 1


def test_enrolling_again_changes_nothing(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    clusters.beat("acme", "u1", BEAT)
    known = clusters.find("acme", "u1")
    assert clusters.enrol("acme", "u1", 55.0, 200.0) == known == clusters.get("acme", 1)


def test_a_uuid_belongs_to_its_first_account(clusters: Clusters) -> None:
    row = clusters.enrol("acme", "u1", 90.0, 100.0)
    with pytest.raises(Taken):
        clusters.enrol("other", "u1", 90.0, 100.0)
    assert clusters.find("acme", "u1") == row
    assert clusters.enrol("other", "u2", 90.0, 100.0).id == 1


def test_one_number_for_one_uuid_among_racing_callers(connect_again: Callable[[], Adapters]) -> None:
    registries = [connect_again().clusters for _ in range(32)]
    rows = race(32, lambda n: registries[n].enrol("acme", "u1", 90.0, 100.0 + n))
    assert len({row.id for row in rows if isinstance(row, ClusterRow)}) == 1
    assert all(isinstance(row, ClusterRow) for row in rows)
    assert len(all_pages(registries[0], "acme")) == 1


def test_a_number_each_for_many_uuids_among_racing_callers(connect_again: Callable[[], Adapters]) -> None:
    registries = [connect_again().clusters for _ in range(32)]
    rows = race(32, lambda n: registries[n].enrol("acme", f"u{n}", 90.0, 100.0))
    ids = {row.id for row in rows if isinstance(row, ClusterRow)}
    assert len(ids) == 32
    assert min(ids) >= 1


def test_one_account_wins_a_uuid_among_racing_accounts(connect_again: Callable[[], Adapters]) -> None:
    registries = [connect_again().clusters for _ in range(32)]
    rows = race(32, lambda n: registries[n].enrol(f"a{n}", "u1", 90.0, 100.0))
    assert sum(isinstance(row, ClusterRow) for row in rows) == 1
    assert sum(isinstance(row, Taken) for row in rows) == 31


def test_a_beat_is_taken_in_whole(clusters: Clusters) -> None:
    enrolled = clusters.enrol("acme", "u1", 90.0, 100.0)
    beat = replace(
        BEAT, phase="closed", reason="idle-timeout-exceeded", lost={"buffer": 3}, uptime_s=19.25, skew_s=-1e-320
    )
    assert clusters.beat("acme", "u1", beat) == Heard(True, None)
    assert clusters.find("acme", "u1") == replace(
        enrolled,
        last_received_at=110.0,
        boot="b1",
        seq=0,
        made_at=109.5,
        next_s=10.0,
        phase="closed",
        reason="idle-timeout-exceeded",
        identity=BEAT.identity,
        totals=BEAT.totals,
        lost={"buffer": 3},
        uptime_s=19.25,
        skew_s=-1e-320,
        skew_of=identity_key(BEAT.boot, BEAT.seq),
        identity_of=identity_key("b1", 0),
    )


@pytest.mark.parametrize(
    ("boot", "seq", "taken"),
    [("b5", 8, True), ("b5", 10, True), ("b6", 0, True), ("b50", 0, True), ("b5", 7, False), ("b5", 6, False),
     ("b4", 99, False), ("b", 99, False), ("a9", 99, False)],
)  # fmt: skip
def test_only_a_newer_boot_or_number_counts(clusters: Clusters, boot: str, seq: int, taken: bool) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    clusters.beat("acme", "u1", replace(BEAT, boot="b5", seq=7, received_at=200.0))
    before = clusters.find("acme", "u1")
    beat = replace(BEAT, boot=boot, seq=seq, received_at=300.0, identity=None, totals={}, lost={"x": 1}, uptime_s=9.0)
    assert clusters.beat("acme", "u1", beat) == Heard(taken, None)
    after = clusters.find("acme", "u1")
    assert ((after.boot, after.seq, after.last_received_at) == (boot, seq, 300.0)) is taken
    assert (after == before) is not taken


def test_a_known_identity_is_never_lost(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    clusters.beat("acme", "u1", BEAT)
    clusters.beat("acme", "u1", replace(BEAT, seq=1, identity=None))
    assert clusters.find("acme", "u1").identity == BEAT.identity
    clusters.beat("acme", "u1", replace(BEAT, seq=2, identity={"name": "y"}))
    assert clusters.find("acme", "u1").identity == {"name": "y"}


def test_a_row_may_be_as_large_as_two_messages_make_it(clusters: Clusters) -> None:
    """Of text that no compression makes smaller: the identity from one message, the rest from a later one."""
    clusters.enrol("acme", "u1", 90.0, 100.0)
    text = Random(7)
    identity = {"tags": {"note": "".join(chr(text.randrange(0x4E00, 0x9FFF)) for _ in range(MAX_ROW_BYTES // 3))}}
    spent = {
        "".join(text.choices(string.printable, k=100)): text.randrange(1 << 63) for _ in range(MAX_ROW_BYTES // 140)
    }
    assert clusters.beat("acme", "u1", replace(BEAT, identity=identity)).newer
    assert clusters.beat("acme", "u1", replace(BEAT, seq=1, identity=None, totals={"action_us": spent})).newer
    row = clusters.find("acme", "u1")
    assert (row.identity, row.totals) == (identity, {"action_us": spent})


def test_last_received_never_goes_back_and_the_start_never_changes(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    assert clusters.beat("acme", "u1", replace(BEAT, received_at=50.0, seq=4)).newer
    row = clusters.find("acme", "u1")
    assert (row.seq, row.started_at, row.first_received_at, row.last_received_at) == (4, 90.0, 100.0, 100.0)


def test_the_newest_of_racing_beats_stays(connect_again: Callable[[], Adapters]) -> None:
    registries = [connect_again().clusters for _ in range(32)]
    registries[0].enrol("acme", "u1", 90.0, 100.0)
    outcomes = race(
        32, lambda n: registries[n].beat("acme", "u1", replace(BEAT, seq=n, received_at=200.0 - n, totals={"n": n}))
    )
    assert outcomes[31] == Heard(True, None)
    assert not [outcome for outcome in outcomes if isinstance(outcome, StoreError)]
    row = registries[0].find("acme", "u1")
    assert (row.seq, row.totals) == (31, {"n": 31})
    assert row.last_received_at == max(200.0 - n for n, outcome in enumerate(outcomes) if outcome == outcomes[31])


def test_nobody_sees_or_moves_another_accounts_cluster(clusters: Clusters) -> None:
    clusters.enrol("acme", "u0", 90.0, 100.0)
    row = clusters.enrol("acme", "u1", 90.0, 100.0)
    for look in (lambda: clusters.get("other", row.id), lambda: clusters.find("other", "u1"),
                 lambda: clusters.beat("other", "u1", BEAT),
                 lambda: clusters.ask_close("other", "u1", "ann", None, 120.0)):  # fmt: skip
        with pytest.raises(Missing):
            look()
    assert clusters.page("other", None, 10, None).rows == []
    assert clusters.find("acme", "u1") == row


@pytest.mark.parametrize("number", [0, -1, 2, 2**63, 10**40])
def test_a_number_that_is_nobodys_is_missing(clusters: Clusters, number: int) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    with pytest.raises(Missing):
        clusters.get("acme", number)


def test_a_beat_of_an_unknown_cluster_is_missing(clusters: Clusters) -> None:
    with pytest.raises(Missing):
        clusters.beat("acme", "u1", BEAT)
    with pytest.raises(Missing):
        clusters.find("acme", "u1")


def test_what_is_no_json_is_refused(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    no_json: list[dict[str, Any]] = [{"x": float("nan")}, {"x": float("inf")}]
    for totals in no_json:
        with pytest.raises(ValueError, match="JSON"):
            clusters.beat("acme", "u1", replace(BEAT, totals=totals))
    assert clusters.find("acme", "u1").seq == -1


def test_odd_values_come_back(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    odd = {"": "", "null": None, "nested": {"a": [1, -2.5, True, {"ü": "\U0001f600\0\n\"'"}]}, "big": 2**63 - 1}
    clusters.beat("acme", "u1", replace(BEAT, identity=odd, totals=odd, reason="", lost={"": 2**53}, next_s=5e-324))
    row = clusters.find("acme", "u1")
    assert (row.identity, row.totals, row.reason, row.lost) == (odd, odd, "", {"": 2**53})
    assert row.next_s == 5e-324


EXAMPLES = itertools.count()
BEATS = st.tuples(st.sampled_from(["u0", "u1", "u2"]), st.sampled_from(["a", "b", "ba"]), st.integers(0, 3),
                  st.integers(0, 9), st.booleans())  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(beats=st.lists(BEATS, max_size=15))
def test_it_does_what_a_dict_would(clusters: Clusters, beats: list[tuple[str, str, int, int, bool]]) -> None:
    # Each example in an account of its own, for the registry forgets nothing.
    name, model = f"example-{next(EXAMPLES)}", dict[str, ClusterRow]()
    for uuid, boot, seq, at, named in beats:
        uuid = f"{name}/{uuid}"
        row = clusters.enrol(name, uuid, float(at), float(at))
        known = model.setdefault(uuid, row)
        assert row == known
        identity = {"name": f"{boot}{seq}"} if named else None
        newer = (boot, seq) > (known.boot, known.seq)
        beat = replace(BEAT, boot=boot, seq=seq, received_at=float(at), identity=identity, totals={"at": at})
        assert clusters.beat(name, uuid, beat) == Heard(newer, None)
        if newer:
            known = model[uuid] = replace(
                known, boot=boot, seq=seq, made_at=beat.made_at, next_s=beat.next_s, totals={"at": at},
                last_received_at=max(known.last_received_at, at),
            )  # fmt: skip
        if identity and identity_key(boot, seq) > known.identity_of:
            model[uuid] = replace(known, identity=identity, identity_of=identity_key(boot, seq))
    listed = all_pages(clusters, name, since=4.0)
    kept = [row for row in model.values() if row.last_received_at >= 4.0]
    assert listed == sorted(kept, key=lambda row: (row.started_at, row.id), reverse=True)

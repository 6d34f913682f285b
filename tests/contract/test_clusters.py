import itertools
import string
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskscope_lambdas.ports import Beat, ClusterPage, ClusterRow, Clusters, Heard, Missing, StoreError, Taken
from daskscope_lambdas.service.check import MAX_ROW_BYTES
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters

BEAT = Beat(
    boot="b1",
    seq=0,
    received_at=110.0,
    made_at=109.5,
    next_s=10.0,
    phase="running",
    reason=None,
    identity={"name": "x", "tags": {"ä": "€"}, "dashboard": None},
    totals={"n_workers": 2, "action_us": {"compute": 2**53}},
    lost={},
)


def all_pages(clusters: Clusters, account: str, since: float | None = None, limit: int = 2) -> list[ClusterRow]:
    rows: list[ClusterRow] = []
    cursor: str | None = None
    for _ in range(1000):
        page = clusters.page(account, since, limit, cursor)
        assert len(page.rows) <= limit
        rows += page.rows
        cursor = page.cursor
        if cursor is None:
            return rows
    raise AssertionError("the list has no end")


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
    beat = replace(BEAT, phase="closed", reason="idle-timeout-exceeded", lost={"buffer": 3})
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
    beat = replace(BEAT, boot=boot, seq=seq, received_at=300.0, identity={"name": "y"}, totals={}, lost={"x": 1})
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


def test_pages_go_from_the_latest_start_on_and_ties_by_number(clusters: Clusters) -> None:
    starts = [5.0, 7.0, 7.0, 1.25, 7.0, 9.0, 5.0]
    for n, started_at in enumerate(starts):
        clusters.enrol("acme", f"u{n}", started_at, 100.0)
        clusters.enrol("other", f"o{n}", started_at, 100.0)
    expected = sorted(((started_at, n + 1) for n, started_at in enumerate(starts)), reverse=True)
    for limit in (1, 2, 3, 7, 8):
        assert [(row.started_at, row.id) for row in all_pages(clusters, "acme", None, limit)] == expected


def test_the_last_page_has_no_cursor(clusters: Clusters) -> None:
    assert clusters.page("acme", None, 2, None) == ClusterPage([], None)
    clusters.enrol("acme", "u1", 1.0, 100.0)
    clusters.enrol("acme", "u2", 2.0, 100.0)
    assert clusters.page("acme", None, 2, None).cursor is None


def test_since_is_about_the_last_message_and_includes_its_moment(clusters: Clusters) -> None:
    for n in range(6):
        clusters.enrol("acme", f"u{n}", float(n), 100.0 + n)
    clusters.beat("acme", "u0", replace(BEAT, received_at=300.0))
    rows = all_pages(clusters, "acme", since=103.0)
    assert [row.uuid for row in rows] == ["u5", "u4", "u3", "u0"]
    assert all_pages(clusters, "acme", since=300.1) == []


def test_a_cluster_enrolled_between_two_pages_moves_no_other(clusters: Clusters) -> None:
    for n in range(4):
        clusters.enrol("acme", f"u{n}", float(n), 100.0)
    first = clusters.page("acme", None, 2, None)
    clusters.enrol("acme", "new", 99.0, 100.0)
    clusters.enrol("acme", "old", 0.5, 100.0)
    second = clusters.page("acme", None, 10, first.cursor)
    assert [row.uuid for row in first.rows] == ["u3", "u2"]
    assert [row.uuid for row in second.rows] == ["u1", "old", "u0"]


@pytest.mark.parametrize(
    "cursor", ["", "x", "1", "2.0", "2.0_", "_1", "2_1", "2.0_-1", "nan_1", "1e999_1", "2.0_1\n", "2.0_" + "9" * 5000]
)
def test_a_foreign_cursor_is_refused(clusters: Clusters, cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        clusters.page("acme", None, 10, cursor)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(clusters: Clusters, limit: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        clusters.page("acme", None, limit, None)


def alive(clusters: Clusters) -> list[str]:
    return sorted(row.uuid for row in clusters.living())


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
    assert clusters.find("acme", "u1") == replace(asked, seq=2)


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


@pytest.mark.parametrize(
    "starts", [[-2.5, -1.0, -0.0, 1e-300, 0.1, 1.0, 1.0000000000000002, 1e9, 1795248000.123, 1e18]]
)
def test_the_list_rounds_no_start(clusters: Clusters, starts: list[float]) -> None:
    for n, started_at in enumerate(starts):
        clusters.enrol("acme", f"u{n}", started_at, 100.0)
    rows = all_pages(clusters, "acme", None, 1)
    assert [row.started_at for row in rows] == sorted(starts, reverse=True)


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
            model[uuid] = replace(
                known, boot=boot, seq=seq, made_at=beat.made_at, next_s=beat.next_s, totals={"at": at},
                identity=known.identity if identity is None else identity,
                last_received_at=max(known.last_received_at, at),
            )  # fmt: skip
    listed = all_pages(clusters, name, since=4.0)
    kept = [row for row in model.values() if row.last_received_at >= 4.0]
    assert listed == sorted(kept, key=lambda row: (row.started_at, row.id), reverse=True)

"""Messages in any order, some of them again: one row."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from daskscope_lambdas.ports import Beat, ClusterRow, Clusters, Heard, StoreError, identity_key
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters
from tests.contract.beats import BEAT

DAY_S = 86_400.0


def test_an_older_message_changes_nothing_but_an_identity_that_is_newer(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    clusters.beat("acme", "u1", replace(BEAT, boot="b2", seq=9, identity=None))
    before = clusters.find("acme", "u1")
    told = [("b1", 50, "old"), ("b2", 3, "new"), ("b2", 2, "older"), ("b2", 3, "again"), ("b1", 99, "oldest")]
    for boot, seq, name in told:
        late = replace(BEAT, boot=boot, seq=seq, identity={"name": name}, totals={"n_workers": 7}, uptime_s=99.0)
        assert clusters.beat("acme", "u1", replace(late, received_at=300.0, phase="closed")) == Heard(False, None)
    assert clusters.find("acme", "u1") == replace(before, identity={"name": "new"}, identity_of=identity_key("b2", 3))


def test_numbers_sort_as_numbers(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    clusters.beat("acme", "u1", replace(BEAT, seq=100, identity=None))
    for seq, name in ((9, "nine"), (10, "ten"), (8, "eight")):
        clusters.beat("acme", "u1", replace(BEAT, seq=seq, identity={"name": name}))
    assert clusters.find("acme", "u1").identity == {"name": "ten"}


def test_a_message_that_does_not_tell_the_skew_leaves_it(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    assert clusters.find("acme", "u1").skew_s is None
    for seq, told, known in ((0, None, None), (1, 3.5, 3.5), (2, None, 3.5), (3, 0.0, 0.0), (4, -3600.25, -3600.25)):
        clusters.beat("acme", "u1", replace(BEAT, seq=seq, skew_s=told))
        assert clusters.find("acme", "u1").skew_s == known


def test_the_skew_is_of_the_newest_message_that_told_one(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    clusters.beat("acme", "u1", replace(BEAT, boot="b2", seq=9, skew_s=None))
    for boot, seq, told, known in (
        ("b1", 7, 1.0, 1.0),
        ("b2", 3, 2.0, 2.0),
        ("b2", 2, 3.0, 2.0),
        ("b2", 8, None, 2.0),
        ("b1", 8, 4.0, 2.0),
        ("b2", 8, 5.0, 5.0),
        ("b2", 10, 6.0, 6.0),
    ):
        clusters.beat("acme", "u1", replace(BEAT, boot=boot, seq=seq, identity=None, skew_s=told))
        assert clusters.find("acme", "u1").skew_s == known
    assert clusters.find("acme", "u1").skew_of == identity_key("b2", 10)


def test_an_older_message_moves_the_last_receipt_into_a_later_day_and_no_further(clusters: Clusters) -> None:
    clusters.enrol("acme", "u1", 90.0, 100.0)
    clusters.beat("acme", "u1", replace(BEAT, seq=9, received_at=200.0))
    before = clusters.find("acme", "u1")
    late = replace(BEAT, seq=3, identity=None)
    for received_at, last in (
        (DAY_S - 1, 200.0),
        (DAY_S, DAY_S),
        (DAY_S + 50, DAY_S),
        (100.0, DAY_S),
        (5 * DAY_S + 7, 5 * DAY_S + 7),
    ):
        clusters.beat("acme", "u1", replace(late, received_at=received_at))
        assert clusters.find("acme", "u1") == replace(before, last_received_at=last)


def _beats(random: Random) -> list[Beat]:
    """Of three boots, some with an identity, some again."""
    beats = [
        replace(
            BEAT,
            boot=boot,
            seq=seq,
            identity={"name": f"{boot}-{seq}"} if seq % 3 == 0 else None,
            totals={"n_tasks": seq},
            uptime_s=seq * 10.0,
            skew_s=float(f"{boot[1]}.{seq}") if seq % 4 == 1 else None,
            phase="closed" if (boot, seq) == ("b3", 7) else "running",
        )
        for boot in ("b1", "b2", "b3")
        for seq in range(8)
    ]
    again = [*beats, *random.sample(beats, 8)]
    random.shuffle(again)
    return again


def test_any_order_gives_one_row(clusters: Clusters) -> None:
    rows: set[str] = set()
    for n in range(8):
        clusters.enrol("acme", f"u{n}", 90.0, 100.0)
        for beat in _beats(Random(n)):
            clusters.beat("acme", f"u{n}", beat)
        found = clusters.find("acme", f"u{n}")
        assert (found.identity, found.phase, found.uptime_s) == ({"name": "b3-6"}, "closed", 70.0)
        rows.add(repr(replace(found, uuid="", id=0)))
    assert len(rows) == 1


def test_so_do_racing_callers(connect_again: Callable[[], Adapters]) -> None:
    registries = [connect_again().clusters for _ in range(8)]
    registries[0].enrol("acme", "u1", 90.0, 100.0)
    beats = _beats(Random(7))
    outcomes = race(8, lambda n: [registries[n].beat("acme", "u1", beat) for beat in beats[n::8]])
    assert not [outcome for outcome in outcomes if isinstance(outcome, StoreError)]
    found: ClusterRow = registries[0].find("acme", "u1")
    assert (found.boot, found.seq, found.identity, found.identity_of) == (
        "b3", 7, {"name": "b3-6"}, identity_key("b3", 6),
    )  # fmt: skip

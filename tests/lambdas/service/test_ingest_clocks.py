"""What a message says of its clock, its start and its parts, and what the row and the queue have of that."""

import pytest

from daskscope import wire
from daskscope.compression import compress
from daskscope.errors import Deleted
from daskscope.testing import START_MS, boot_at, identity, message
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.envelope import Envelope, unpack
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.service.records import cluster
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters

START = START_MS / 1000
HOUR_S = 3600.0


@pytest.fixture
def ingest(adapters: LocalAdapters) -> Ingest:
    return Ingest.over(adapters)


def post(ingest: Ingest, posted: wire.Message, sent_at_ms: int | None = None) -> wire.Reply:
    return ingest.take("acme", *compress(wire.encode(posted)), sent_at_ms)


def queued(adapters: LocalAdapters) -> list[Envelope]:
    return [unpack(delivery.body) for delivery in adapters.feed.receive(100, 60)]


def row(adapters: LocalAdapters) -> ClusterRow:
    return adapters.clusters.get("acme", 1)


@pytest.mark.parametrize(
    ("sent_at_ms", "skew_ms"), [(None, None), (START_MS + 250, -250), (0, START_MS), (START_MS, 0)]
)
def test_the_skew_is_in_the_queue_and_in_the_row(
    ingest: Ingest, adapters: LocalAdapters, sent_at_ms: int | None, skew_ms: int | None
):
    post(ingest, message(), sent_at_ms)
    (envelope,) = queued(adapters)
    assert envelope.skew_ms == skew_ms
    assert row(adapters).skew_s == (None if skew_ms is None else skew_ms / 1000)


def test_a_message_that_does_not_say_when_it_was_sent_leaves_the_skew(ingest: Ingest, adapters: LocalAdapters):
    post(ingest, message(seq=0), START_MS - 5_000)
    post(ingest, message(seq=1))
    assert row(adapters).skew_s == 5.0


def test_a_part_is_queued_and_its_cluster_enrolled_and_nothing_else(ingest: Ingest, adapters: LocalAdapters):
    part = message(seq=4, part=2, phase="closed", identity=identity(), started_at_ms=START_MS - 1_000)
    assert post(ingest, part).wish == ["identity"], "the row is for the message itself"
    assert [envelope.message.part for envelope in queued(adapters)] == [2]
    known = row(adapters)
    assert (known.seq, known.phase, known.identity, known.started_at) == (-1, "running", {}, START - 1)
    post(ingest, message(seq=4, identity=identity()))
    known = row(adapters)
    assert (known.seq, known.identity["user"]) == (4, "ada")
    assert post(ingest, message(seq=5, part=1)).wish == []
    assert row(adapters) == known


def test_a_part_does_not_hear_a_wish_to_close(ingest: Ingest, adapters: LocalAdapters, clock: FakeClock):
    post(ingest, message(seq=0))
    adapters.clusters.ask_close("acme", message().cluster, "ann", "idle", clock.now())
    assert post(ingest, message(seq=1, part=1)).wish == []
    assert post(ingest, message(seq=1)).wish == ["close"]


@pytest.mark.parametrize("sent_late_s", [0.0, 600.0])
@pytest.mark.parametrize("ahead_s", [0.0, 1.9, -1.9, HOUR_S, -HOUR_S, -START + 31.0])
def test_the_start_is_right_within_two_seconds_whatever_the_clock_shows(
    ingest: Ingest, adapters: LocalAdapters, clock: FakeClock, ahead_s: float, sent_late_s: float
):
    """Ninety seconds before the boot, by a clock that is off; sent at once, or after an outage."""
    clock.at = START + 30 + sent_late_s + 0.05
    off_ms = round(ahead_s * 1000)
    told = {
        "boot": boot_at(START_MS + off_ms),
        "made_at_ms": START_MS + 30_000 + off_ms,
        "started_at_ms": max(START_MS - 30_000 + off_ms, 1),
        "uptime_us": 30_000_000,
    }
    post(ingest, message(seq=3, **told), START_MS + 30_000 + round(sent_late_s * 1000) + off_ms)
    true = START - (30 if ahead_s > -START else 30 - 29.999)
    assert row(adapters).started_at == pytest.approx(true, abs=2.0)


@pytest.mark.parametrize("set_by_s", [HOUR_S, -HOUR_S, 300.0])
def test_any_message_gives_the_same_start_though_the_clock_was_set(
    adapters: LocalAdapters, clock: FakeClock, set_by_s: float
):
    starts = list[float]()
    for n, seq in enumerate((0, 50, 99)):
        off_s = HOUR_S + (set_by_s if seq >= 50 else 0.0)
        clock.at = START + seq * 10
        ingest = Ingest.over(adapters)
        told = message(
            cluster=f"{n:032x}",
            seq=seq,
            boot=boot_at(START_MS + 3_600_000),
            made_at_ms=round((clock.at + off_s) * 1000),
            started_at_ms=START_MS + 3_600_000 - 1_000,
        )
        post(ingest, told, round((clock.at + off_s) * 1000))
        starts.append(adapters.clusters.get("acme", n + 1).started_at)
    assert starts == [START - 1] * 3


@pytest.mark.parametrize(
    ("sent_at_ms", "changes"),
    [
        (0, {"made_at_ms": wire.LATEST_MS, "started_at_ms": wire.LATEST_MS}),
        (wire.LATEST_MS, {"made_at_ms": 0, "uptime_us": 1 << 60}),
        (0, {"made_at_ms": wire.LATEST_MS, "started_at_ms": 1, "uptime_us": 0}),
        (wire.LATEST_MS, {"made_at_ms": wire.LATEST_MS, "started_at_ms": 1}),
    ],
)
def test_no_clock_makes_a_record_that_cannot_be_shown(
    ingest: Ingest, adapters: LocalAdapters, clock: FakeClock, sent_at_ms: int, changes: dict[str, int]
):
    post(ingest, message(**changes), sent_at_ms)
    for now in (clock.now(), clock.now() + 100):
        record = cluster(row(adapters), now)
        assert "1970-01-01" <= record["created"] <= record["last_seen"] <= "2026-11-21T08:00:00.000Z"


def test_the_start_of_format_1_is_that_of_its_identity_or_when_it_was_made(ingest: Ingest, adapters: LocalAdapters):
    post(ingest, message(seq=3, identity=identity(started_at_ms=START_MS - 5_000)))
    post(ingest, message(seq=3, cluster="0" * 32))
    assert adapters.clusters.get("acme", 1).started_at == START - 5
    assert adapters.clusters.get("acme", 2).started_at == START + 30


def test_a_message_of_a_deleted_cluster_is_told_so(ingest: Ingest, adapters: LocalAdapters, clock: FakeClock):
    """By the process that knew it, and by one that never saw it."""
    post(ingest, message())
    adapters.clusters.forget("acme", message().cluster, clock.now())
    fresh = Ingest.over(adapters)
    for process in (ingest, ingest, fresh, fresh):
        with pytest.raises(Deleted, match="was deleted"):
            post(process, message(seq=1))
    assert post(fresh, message(cluster="1" * 32)).id == 2, "all others go on"

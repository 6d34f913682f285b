"""Asking a cluster to close: what is written down, and what is refused."""

import dataclasses

import pytest

from daskscope.errors import NotClosable
from daskscope_lambdas.ports import Beat, ClusterRow
from daskscope_lambdas.service import closing
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters

UUID = "5" * 32


@pytest.fixture
def row(adapters: LocalAdapters, clock: FakeClock) -> ClusterRow:
    """One that has reported four seconds ago, and is to report again in six."""
    adapters.clusters.enrol("acme", UUID, clock.now(), clock.now())
    beat = Beat(
        boot="b", seq=1, received_at=clock.now(), made_at=clock.now(), next_s=10.0, phase="running", reason=None,
        identity={"remote_close": True}, totals={}, lost={},
    )  # fmt: skip
    adapters.clusters.beat("acme", UUID, beat)
    clock.advance(4)
    return adapters.clusters.find("acme", UUID)


def test_it_is_written_down_and_the_asker_is_told_when_to_expect_it(
    adapters: LocalAdapters, clock: FakeClock, row: ClusterRow
):
    assert closing.ask(adapters.clusters, clock, row, "ann", "costs money") == {
        "asked_at": "2026-11-21T08:00:04.000Z",
        "by": "ann",
        "reason": "costs money",
        "expected_by": "2026-11-21T08:00:10.000Z",
        "sentence": "Cluster 1 is asked to close: it is told with its next message, due by 21 Nov 2026 08:00:10 UTC, "
        "and closes then if it can. Whoever is connected to it is warned.",
    }
    asked = adapters.clusters.find("acme", UUID)
    assert (asked.close_asked_at, asked.close_asked_by, asked.close_asked_reason) == (clock.now(), "ann", "costs money")


def test_a_message_that_is_late_is_due_now(adapters: LocalAdapters, clock: FakeClock, row: ClusterRow):
    clock.advance(20)
    told = closing.ask(adapters.clusters, clock, row, "ann", None)
    assert told["expected_by"] == told["asked_at"] == "2026-11-21T08:00:24.000Z"


def test_before_its_first_message_nothing_speaks_against_it(adapters: LocalAdapters, clock: FakeClock):
    new = adapters.clusters.enrol("acme", "6" * 32, clock.now(), clock.now())
    assert closing.ask(adapters.clusters, clock, new, "ann", None)["by"] == "ann"


def refused(adapters: LocalAdapters, clock: FakeClock, row: ClusterRow) -> str:
    with pytest.raises(NotClosable) as caught:
        closing.ask(adapters.clusters, clock, row, "ann", None)
    assert adapters.clusters.find("acme", UUID).close_asked_at is None
    return str(caught.value)


def test_one_that_cannot_hear_it_or_would_not_is_not_asked(adapters: LocalAdapters, clock: FakeClock, row: ClusterRow):
    keeps = dataclasses.replace(row, identity={"remote_close": False})
    assert "remote-close: false and would not obey" in refused(adapters, clock, keeps)
    closed = dataclasses.replace(row, phase="closed")
    assert refused(adapters, clock, closed) == "Cluster 1 has closed already."
    clock.advance(27)
    assert "not been heard of for 31 s: it counts as lost" in refused(adapters, clock, row)


def test_one_that_closes_at_the_same_moment_has_closed(adapters: LocalAdapters, clock: FakeClock, row: ClusterRow):
    last = Beat(
        boot="b", seq=2, received_at=clock.now(), made_at=clock.now(), next_s=10.0, phase="closed", reason="closed",
        identity=None, totals={}, lost={},
    )  # fmt: skip
    adapters.clusters.beat("acme", UUID, last)
    assert refused(adapters, clock, row) == "Cluster 1 has closed already."

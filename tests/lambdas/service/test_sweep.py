import dataclasses
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from daskscope_lambdas.ports import Beat, ClusterRow, StoreError
from daskscope_lambdas.service import sweep
from daskscope_lambdas.service.records import status
from daskscope_lambdas.service.sweep import EVERY_S, IDLE_S, UNHEARD_S, Sweeper, Swept
from daskscope_lambdas.testing import FakeClock, race
from daskscope_lambdas.wiring import LocalAdapters

UUID = "a" * 32
IDLE_MS = 1_795_240_000_000


@pytest.fixture
def sweeper(adapters: LocalAdapters) -> Sweeper:
    return Sweeper(adapters.clusters, adapters.clock)


class Cluster:
    """Posts what it is told to, by a clock of its own that is a day ahead."""

    def __init__(self, adapters: LocalAdapters, uuid: str = UUID) -> None:
        self._adapters, self._uuid, self._seq = adapters, uuid, 0
        self.started_at = adapters.clock.now() + 86_400
        adapters.clusters.enrol("acme", uuid, self.started_at, adapters.clock.now())

    def post(self, phase: Any = "running", next_s: float = 10.0, **totals: Any) -> None:
        now, self._seq = self._adapters.clock.now(), self._seq + 1
        beat = Beat(
            boot="b", seq=self._seq, received_at=now, made_at=now + 86_400, next_s=next_s, phase=phase, reason=None,
            identity=None, totals=totals, lost={},
        )  # fmt: skip
        assert self._adapters.clusters.beat("acme", self._uuid, beat).newer

    def idle(self, seconds: float) -> None:
        """Posts that it has been idle for so long."""
        made_at = self._adapters.clock.now() + 86_400
        self.post(idle_since_ms=round((made_at - seconds) * 1000))


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was told since they were last asked for."""
    found = [record.getMessage() for record in caplog.records if record.name == "daskscope.sweep"]
    caplog.clear()
    return found


def test_a_cluster_that_falls_silent_is_told_once(
    adapters: LocalAdapters, sweeper: Sweeper, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    Cluster(adapters).post(n_tasks=5, processing=2)
    clock.advance(30)
    assert sweeper.run() == Swept(living=1, idle=0, lost=0), "three messages late is not lost yet"
    clock.advance(0.5)
    assert status(adapters.clusters.get("acme", 1), clock.now()) == "lost"
    assert sweeper.run() == Swept(living=0, idle=0, lost=1)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "Cluster 1 of acme: Not heard of for 30 s, after 0 s: lost. "
        "At its last message: 5 tasks seen, 0 failed, 2 tasks not done."
    )
    facts = {name: getattr(record, name) for name in ("account", "cluster", "silent_s", "last_heard_at")}
    assert facts == {
        "account": "acme", "cluster": 1, "silent_s": 30.5, "last_heard_at": "2026-11-21T08:00:00.000Z",
    }  # fmt: skip
    caplog.clear()
    clock.advance(EVERY_S)
    assert sweeper.run() == Sweeper(adapters.clusters, clock).run() == Swept(living=0, idle=0, lost=0)
    assert lines(caplog) == []
    assert adapters.clusters.get("acme", 1).phase == "running", "pages go on as before"


def test_a_silence_that_began_while_nobody_looked_is_told(
    adapters: LocalAdapters, sweeper: Sweeper, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    Cluster(adapters).post()
    clock.advance(3 * 86_400)
    assert sweeper.run().lost == 1
    assert "Not heard of for 3 d" in lines(caplog)[0]


def test_a_cluster_that_comes_back_may_be_lost_again(adapters: LocalAdapters, sweeper: Sweeper, clock: FakeClock):
    cluster = Cluster(adapters)
    for _ in range(2):
        cluster.post()
        assert sweeper.run() == Swept(living=1, idle=0, lost=0)
        clock.advance(31)
        assert sweeper.run().lost == 1


def test_the_pace_is_the_clusters_own(adapters: LocalAdapters, sweeper: Sweeper, clock: FakeClock):
    Cluster(adapters).post(next_s=86_400)
    clock.advance(3 * 86_400)
    assert sweeper.run() == Swept(living=1, idle=0, lost=0)
    clock.advance(1)
    assert sweeper.run() == Swept(living=0, idle=0, lost=1)


def test_a_message_that_comes_while_we_look_is_in_time(
    adapters: LocalAdapters,
    sweeper: Sweeper,
    clock: FakeClock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
    cluster = Cluster(adapters)
    cluster.post()
    clock.advance(31)
    retire = adapters.clusters.retire

    def late(row: ClusterRow) -> bool:
        cluster.post()
        return retire(row)

    monkeypatch.setattr(adapters.clusters, "retire", late)
    assert sweeper.run().lost == 0
    assert lines(caplog) == []
    assert sweeper.run() == Swept(living=1, idle=0, lost=0)


def test_sweeps_at_once_tell_a_cluster_once(
    adapters: LocalAdapters, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    Cluster(adapters).post()
    clock.advance(31)
    swept = race(8, lambda _: Sweeper(adapters.clusters, clock).run())
    assert sum(found.lost for found in swept if not isinstance(found, StoreError)) == 1
    assert len(lines(caplog)) == 1


def test_a_cluster_that_closed_is_nobodys_worry(
    adapters: LocalAdapters, sweeper: Sweeper, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    Cluster(adapters).post(phase="closed")
    clock.advance(31)
    assert sweeper.run() == Swept(living=0, idle=0, lost=0)
    assert lines(caplog) == []


def test_a_cluster_whose_first_message_is_on_its_way_is_not_lost(
    adapters: LocalAdapters, sweeper: Sweeper, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    Cluster(adapters)
    clock.advance(UNHEARD_S)
    assert sweeper.run() == Swept(living=1, idle=0, lost=0)
    assert lines(caplog) == []
    clock.advance(1)
    assert sweeper.run() == Swept(living=0, idle=0, lost=1)


def test_after_an_outage_of_ours_not_all_are_told_at_once(
    adapters: LocalAdapters, sweeper: Sweeper, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sweep, "MAX_TOLD", 2)
    clusters = [Cluster(adapters, f"{n:032x}") for n in range(5)]
    for cluster in clusters:
        cluster.post()
    clock.advance(31)
    assert sweeper.run().lost == 2
    for cluster in clusters:
        cluster.post()
    assert sweeper.run() == Swept(living=5, idle=0, lost=0)


def test_long_idleness_is_told_once(
    adapters: LocalAdapters, sweeper: Sweeper, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    cluster = Cluster(adapters)
    cluster.idle(IDLE_S - 20)
    clock.advance(19.9)
    assert sweeper.run() == Swept(living=1, idle=0, lost=0)
    clock.advance(0.1)
    assert sweeper.run() == Swept(living=1, idle=1, lost=0)
    (record,) = caplog.records
    assert record.getMessage() == (
        "Cluster 1 of acme: Idle for 30 min; 0 clients connected, 0 results (0 bytes) held; no idle timeout set."
    )
    assert (getattr(record, "cluster", None), getattr(record, "idle_s", None)) == (1, IDLE_S)
    caplog.clear()
    for _ in range(3):
        clock.advance(EVERY_S)
        cluster.post(idle_since_ms=round((cluster.started_at + 20 - IDLE_S) * 1000 - 40_000))
        sweeper.run()
    assert len(lines(caplog)) == 1, "since another moment: another idleness"


def test_idleness_is_told_anew_after_work(
    adapters: LocalAdapters, sweeper: Sweeper, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    cluster = Cluster(adapters)
    for _ in range(2):
        cluster.post(processing=1)
        assert sweeper.run().idle == 0
        clock.advance(IDLE_S)
        cluster.idle(IDLE_S)
        assert sweeper.run().idle == 1
    assert len(lines(caplog)) == 2
    cluster.post(processing=1)
    sweeper.run()
    assert not sweeper._told, "what is over is forgotten"


def test_runs_that_were_skipped_or_doubled_change_nothing(
    adapters: LocalAdapters, sweeper: Sweeper, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    cluster = Cluster(adapters)
    cluster.idle(0)
    sweeper.run()
    clock.advance(3 * IDLE_S)
    cluster.idle(3 * IDLE_S)
    assert sweeper.run() == sweeper.run() == Swept(living=1, idle=1, lost=0)
    assert len(lines(caplog)) == 1


@pytest.mark.parametrize(("since_the_line_s", "told"), [(0, 1), (EVERY_S - 1, 1), (EVERY_S, 0), (86_400, 0)])
def test_a_new_process_takes_idleness_for_told_unless_it_crossed_the_line_just_now(
    adapters: LocalAdapters, sweeper: Sweeper, caplog: pytest.LogCaptureFixture, since_the_line_s: float, told: int
):
    Cluster(adapters).idle(IDLE_S + since_the_line_s)
    for _ in range(2):
        assert sweeper.run() == Swept(living=1, idle=1, lost=0)
    assert len(lines(caplog)) == told


def test_idle_and_then_silent_is_lost(
    adapters: LocalAdapters, sweeper: Sweeper, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    Cluster(adapters).idle(IDLE_S)
    clock.advance(31)
    assert sweeper.run() == Swept(living=0, idle=0, lost=1)
    assert len(lines(caplog)) == 1


def test_ten_thousand_clusters_are_one_look(adapters: LocalAdapters, sweeper: Sweeper, monkeypatch: pytest.MonkeyPatch):
    cluster = Cluster(adapters)
    cluster.idle(IDLE_S)
    row = adapters.clusters.get("acme", 1)

    class OneLook:
        looks = 0

        def living(self) -> Iterator[ClusterRow]:
            self.looks += 1
            for n in range(10_000):
                yield dataclasses.replace(row, id=n, uuid=f"{n:032x}")

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"a call of {name}, a cluster")

    only = OneLook()
    monkeypatch.setattr(sweeper, "_clusters", only)
    assert sweeper.run() == Swept(living=10_000, idle=10_000, lost=0)
    assert only.looks == 1

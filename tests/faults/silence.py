"""Hours of clusters that report late, fall silent and come back, under the real sweep and the real rule of `lost`.

Simulated time, the real registry on SQLite. A message comes up to two intervals late, those of one cluster in their
order. While the server is down nothing comes; then each sender is back within its back-off.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal, cast

from daskscope.testing import boot_at
from daskscope_lambdas.ports import Beat, ClusterRow, Clusters
from daskscope_lambdas.service import records
from daskscope_lambdas.service.sweep import EVERY_S, Sweeper
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.faults.stores import Failing, Trouble

LATE = 2
"""Intervals."""
BACK_OFF_S = 60.0
PACES_S = (10.0, 10.0, 30.0, 60.0)
HOUR_S = 3600.0
DOWN_EVERY_S = 4 * HOUR_S
DOWN_S = (20.0, 600.0)

Kind = Literal["sweep", "message", "silent"]


@dataclass(slots=True)
class Silences:
    """What came of it. Times are seconds, the longest of all."""

    hours: float = 0.0
    messages: int = 0
    shown_falsely: int = 0
    """Answers that said lost of a cluster that was not silent."""
    told_falsely: int = 0
    """Lines of the log that did."""
    n_silent: int = 0
    n_told: int = 0
    n_missed: int = 0
    """Silences that nobody told although the server was up all the time."""
    shown_after_s: float = 0.0
    """From the last message to the moment at which an answer says lost, at an interval of ten seconds."""
    told_after_s: float = 0.0
    shown_after_outage_s: float = 0.0
    """How long after an outage of the server itself a cluster was still shown as lost."""
    not_back: int = 0
    """Clusters that reported again and were not shown as running."""


@dataclass(slots=True)
class _Cluster:
    row: ClusterRow
    pace_s: float
    silent: bool = False
    told: bool = False


@dataclass
class Simulation:
    world: LocalAdapters
    clock: FakeClock
    random: Random
    n_clusters: int
    length_s: float
    found: Silences = field(default_factory=Silences)
    _clusters: dict[str, _Cluster] = field(default_factory=dict[str, _Cluster])
    _up_since: float = 0.0

    def run(self) -> Silences:
        start = self.clock.now()
        downs = list(self._downs(start))
        events: list[tuple[float, int, Kind, str]] = []
        for n in range(self.n_clusters):
            uuid = f"{n:032x}"
            row = self.world.clusters.enrol("acme", uuid, start, start)
            self._clusters[uuid] = _Cluster(row, self.random.choice(PACES_S))
            for at, kind in self._life(start, downs, self._clusters[uuid].pace_s):
                events.append((at, n, kind, uuid))
        for at in self._sweeps(start, downs):
            events.append((at, -1, "sweep", ""))
        heapq.heapify(events)
        sweeper = Sweeper(cast("Clusters", _Watched(self.world.clusters, self)), self.clock)
        while events:
            at, _, kind, uuid = heapq.heappop(events)
            self.clock.at = at
            self._up_since = max((end for _, end in downs if end <= at), default=start)
            if kind == "sweep":
                sweeper.run()
            elif kind == "silent":
                self._clusters[uuid].silent, self._clusters[uuid].told = True, False
                self.found.n_silent += 1
            else:
                self._hear(self._clusters[uuid], at)
        for cluster in self._clusters.values():
            self._close(cluster)
        self.found.hours = self.n_clusters * self.length_s / HOUR_S
        return self.found

    def _downs(self, start: float) -> Iterator[tuple[float, float]]:
        at = start + self.random.uniform(0, DOWN_EVERY_S)
        while at < start + self.length_s:
            end = at + self.random.uniform(*DOWN_S)
            yield at, end
            at = end + self.random.uniform(0.5, 1.5) * DOWN_EVERY_S

    def _sweeps(self, start: float, downs: list[tuple[float, float]]) -> Iterator[float]:
        """As the embedded server has them: none while it is down, and the first one a while after it is back."""
        ups = [start, *(end for _, end in downs)]
        for up, down in zip(ups, [*(began for began, _ in downs), start + self.length_s + HOUR_S], strict=True):
            at = up + EVERY_S
            while at < down:
                yield at
                at += EVERY_S

    def _life(self, start: float, downs: list[tuple[float, float]], pace_s: float) -> Iterator[tuple[float, Kind]]:
        """When messages come, and after which of them the cluster falls silent for a while or, at the end, for good."""
        made = came = start + self.random.uniform(0, pace_s)
        # The sender that is back sends all it has kept, one after another.
        backs = [(began, end, end + self.random.uniform(0, BACK_OFF_S)) for began, end in downs]
        silent_at = made + self.random.expovariate(1 / (2 * HOUR_S))
        while made < start + self.length_s:
            came = max(came + 0.5, _up(made + self.random.uniform(0, LATE * pace_s), backs))
            yield came, "message"
            if made > silent_at:
                yield came, "silent"
                made = came + self.random.uniform(5 * pace_s + 2 * EVERY_S, HOUR_S)
                silent_at = made + self.random.expovariate(1 / (2 * HOUR_S))
            made += pace_s
        yield came, "silent"

    def _hear(self, cluster: _Cluster, at: float) -> None:
        row = cluster.row
        if row.boot and not cluster.silent:
            # The moment before it comes is the worst of all.
            self._look(row, at)
        self._close(cluster)
        beat = Beat(boot=boot_at(1), seq=row.seq + 1, received_at=at, made_at=at, next_s=cluster.pace_s,
                    phase="running", reason=None, identity=None, totals={}, lost={})  # fmt: skip
        self.world.clusters.beat(row.account, row.uuid, beat)
        cluster.row = replace(row, boot=beat.boot, seq=beat.seq, last_received_at=at, next_s=cluster.pace_s)
        cluster.silent = False
        self.found.messages += 1
        self.found.not_back += records.status(cluster.row, at) != "running"

    def _close(self, cluster: _Cluster) -> None:
        """A silence is over."""
        if cluster.silent and not cluster.told and self._up_since + EVERY_S <= cluster.row.last_received_at:
            self.found.n_missed += 1

    def _look(self, row: ClusterRow, at: float) -> None:
        if records.status(row, at) != "lost":
            return
        if row.last_received_at < self._up_since and at - self._up_since <= BACK_OFF_S:
            self.found.shown_after_outage_s = max(self.found.shown_after_outage_s, at - self._up_since)
        else:
            self.found.shown_falsely += 1

    def told(self, row: ClusterRow) -> None:
        """The sweep says that it is lost."""
        cluster = self._clusters[row.uuid]
        if not cluster.silent:
            self.found.told_falsely += 1
            return
        self.found.n_told += not cluster.told
        cluster.told = True
        heard, at = row.last_received_at, self.clock.now()
        if cluster.pace_s == min(PACES_S) and self._up_since + EVERY_S <= heard:
            self.found.told_after_s = max(self.found.told_after_s, at - heard)
            lost_at = heard + records.MISSED * row.next_s
            assert records.status(row, lost_at) == "running"
            assert records.status(row, lost_at + 0.001) == "lost"
            self.found.shown_after_s = max(self.found.shown_after_s, lost_at - heard)


class _Watched(Failing):
    """The registry; what it retires is told."""

    def __init__(self, clusters: object, simulation: Simulation) -> None:
        super().__init__(clusters, Trouble(seed=0))
        self._simulation = simulation

    def retire(self, row: ClusterRow) -> bool:
        done: bool = self._adapter.retire(row)
        if done:
            self._simulation.told(row)
        return done


def _up(at: float, backs: list[tuple[float, float, float]]) -> float:
    """When a message gets through that would come at `at`."""
    return next((back for began, end, back in backs if began <= at < end), at)

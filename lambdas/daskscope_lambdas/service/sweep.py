"""The look at every living cluster, once a minute: tells in the log who fell silent, and who idles for long.

Ports only. Nothing here decides what a cluster is: pages and API compute that on reading, by the same rules, and
say so at once. A line in the log is for whoever reads no page, or has an alarm on it.

A schedule may skip a run or make it twice, and a process may end at any time. Still a line is to come once:

- *lost*: the registry remembers. A lost cluster is retired, and who retires it tells. Its next message brings it back
  among the living, and then it may be lost anew. So each silence is told once, also one that began while no sweep ran.
  Its line is missing only if the process, or the registry's answer, is lost between the two steps.
- *idle*: this process remembers. A new process does not know what the one before it told: it tells those that crossed
  the line in the last minute, and takes the others for told. Only where one process follows another can a line be
  missing, or come twice.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass

from daskscope_lambdas.ports import Clock, ClusterRow, Clusters, Missing
from daskscope_lambdas.service import records
from daskscope_lambdas.service.answers import finished, running

logger = logging.getLogger("daskscope.sweep")

EVERY_S = 60.0
"""From one sweep to the next."""
IDLE_S = 1800.0
"""Idle for so long, a cluster is worth a line."""
UNHEARD_S = 86_400.0
"""Patience with a cluster that has a number and no message: its first one may be on its way this very moment."""
MAX_TOLD = 1000
"""Lost clusters a sweep. More of them at once are an outage of ours: most will be back before the next sweep."""

_Idleness = tuple[str, str, int]
"""One stretch of idleness: the cluster's uuid, its boot, and when it began by the scheduler's clock (ms)."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep saw: how many run, how many of these idle for long, and how many it told as lost."""

    living: int
    idle: int
    lost: int


class Sweeper:
    """One per process: it remembers which idleness it told. `run` is for one thread at a time."""

    def __init__(self, clusters: Clusters, clock: Clock) -> None:
        self._clusters, self._clock = clusters, clock
        self._told: frozenset[_Idleness] | None = None

    def run(self) -> Swept:
        """One look at all. Raises StoreError; the next sweep finds what this one left."""
        now = self._clock.now()
        living, silent, idle = 0, list[ClusterRow](), set[_Idleness]()
        for row in self._clusters.living():
            if records.status(row, now) == "running" or _is_new(row, now):
                living += 1
                if idleness := self._look_for_idleness(row, now):
                    idle.add(idleness)
            elif len(silent) < MAX_TOLD:
                silent.append(row)
        self._told = frozenset(idle)
        # After the walk, which would else change what it walks on.
        return Swept(living, len(idle), sum(self._take_leave(row, now) for row in silent))

    def _look_for_idleness(self, row: ClusterRow, now: float) -> _Idleness | None:
        answer = running(row, now, "running")
        idle_s = answer.get("idle_seconds", 0.0)
        if idle_s < IDLE_S:
            return None
        idleness = row.uuid, row.boot, row.totals["idle_since_ms"]
        if idle_s < IDLE_S + EVERY_S if self._told is None else idleness not in self._told:
            _tell(row, answer["sentence"], idle_s=idle_s)
        return idleness

    def _take_leave(self, row: ClusterRow, now: float) -> bool:
        with suppress(Missing):
            if self._clusters.retire(row):
                _tell(row, finished(row, now, "lost")["sentence"], silent_s=now - row.last_received_at)
                return True
        return False


def _is_new(row: ClusterRow, now: float) -> bool:
    return not row.boot and now - row.last_received_at <= UNHEARD_S


def _tell(row: ClusterRow, sentence: str, **seconds: float) -> None:
    facts = {"account": row.account, "cluster": row.id, "last_heard_at": records.iso(row.last_received_at)}
    logger.warning("Cluster %d of %s: %s", row.id, row.account, sentence, extra=facts | seconds)

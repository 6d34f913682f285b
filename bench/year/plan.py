"""Which clusters there were: everything that one table must know of another."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa

from bench.year import words
from bench.year.columns import Columns, hexes, moments
from bench.year.size import FIRST_DAY, SEED, Numbers, Size, apportion
from daskscope_query import layout

ACCOUNT = "team"
INTERVAL_MS = 10_000
_DAY_MS = 86_400_000
_MOST_MESSAGES = 6_000
"""About 17 hours: a cluster begins and ends on one day, so that what a day added is all there is of it."""
_WEEKEND = 0.25
"""Of a working day's clusters."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """An array each, a row a cluster, by day and then by UUID, as sealed files have them."""

    number: Numbers
    uuid: Numbers
    day: Numbers
    start_ms: Numbers
    user: Numbers
    job: Numbers
    kind: Numbers
    machine: Numbers
    n_workers: Numbers
    n_messages: Numbers
    n_computations: Numbers
    n_groups: Numbers
    n_exceptions: Numbers

    def on(self, day: int) -> Clusters:
        """Those of the day (0 is the first)."""
        first, end = np.searchsorted(self.day, [day, day + 1])
        return Clusters(*(getattr(self, field.name)[first:end] for field in fields(self)))

    def __len__(self) -> int:
        return len(self.number)

    @property
    def boot(self) -> Numbers:
        return np.array([f"{ms:012x}{n:012x}" for ms, n in zip(self.start_ms, self.number, strict=True)], dtype=object)

    @property
    def n_threads(self) -> Numbers:
        return np.array([machine.cores for machine in words.MACHINES])[self.machine]

    @property
    def memory_mib(self) -> Numbers:
        return np.array([machine.memory_gib * 1024 for machine in words.MACHINES])[self.machine]

    @property
    def end_ms(self) -> Numbers:
        """When the last message was made."""
        return self.made_ms(np.arange(len(self)), self.n_messages - 1)

    def made_ms(self, cluster: Numbers | int, seq: Numbers | int) -> Numbers:
        return self.start_ms[cluster] + 2_000 + seq * INTERVAL_MS

    def received_ms(self, cluster: Numbers | int, seq: Numbers | int) -> Numbers:
        return self.made_ms(cluster, seq) + 150 + (seq * 7_919 + self.number[cluster] * 104_729) % 1_300

    def seq_at(self, cluster: Numbers, ms: Numbers) -> Numbers:
        """The first message made at `ms` or after it, or the last one."""
        seq = -(-(ms - self.start_ms[cluster] - 2_000) // INTERVAL_MS)
        return np.clip(seq, 0, self.n_messages[cluster] - 1)

    def origin(self, cluster: Numbers, seq: Numbers) -> Columns:
        """The columns that every table starts with, for rows of these clusters (places) and messages."""
        places = pa.array(cluster)
        return {
            "account": ACCOUNT,
            "cluster": pa.array(self.uuid, pa.string()).take(places),
            "cluster_id": self.number[cluster],
            "boot": pa.array(self.boot, pa.string()).take(places),
            "seq": seq,
            "received_at": moments(self.received_ms(cluster, seq)),
            "at": moments(self.made_ms(cluster, seq)),
        }


def plan(size: Size) -> Clusters:
    """All clusters of a year (or part of one)."""
    rng = np.random.default_rng(SEED)
    n = size.clusters
    weekend = (np.arange(size.days) % 7) >= 5
    per_day = apportion(n, np.where(weekend, _WEEKEND, 1.0))
    day = np.repeat(np.arange(size.days), per_day)
    n_workers = np.clip(np.round(rng.lognormal(np.log(8), 0.8, n)), 1, 120).astype(np.int64)
    n_messages = _messages(size.worker_samples, n_workers, rng.lognormal(0, 1, n))
    n_computations = 1 + apportion(size.computations - n, rng.lognormal(0, 1, n))
    n_groups = n_computations + apportion(size.groups - size.computations, n_computations * rng.lognormal(0, 0.5, n))
    failing = np.where(rng.random(n) < 0.3, rng.lognormal(0, 1, n), 0.0)
    failing[0] += 1e-9  # someone fails, however few there are
    latest_ms = _DAY_MS - n_messages * INTERVAL_MS - 60_000
    start_ms = np.int64(layout.midnight_ms(FIRST_DAY)) + day * _DAY_MS + (rng.random(n) * latest_ms).astype(np.int64)
    user = np.minimum(rng.zipf(1.4, n) - 1, len(words.USERS) - 1)
    # Numbers by start, as enrolment gives them; a user mostly runs the same jobs in the same way.
    number = np.empty(n, np.int64)
    number[np.argsort(start_ms, kind="stable")] = np.arange(1, n + 1)
    habit = user * 3 + rng.integers(0, 3, n)
    clusters = Clusters(
        number=number,
        uuid=np.array(hexes(rng, n).to_pylist(), dtype=object),
        day=day,
        start_ms=start_ms,
        user=user,
        job=habit % len(words.JOBS),
        kind=habit % len(words.KINDS),
        machine=rng.integers(0, len(words.MACHINES), n),
        n_workers=n_workers,
        n_messages=n_messages,
        n_computations=n_computations,
        n_groups=n_groups,
        n_exceptions=apportion(size.exceptions, failing),
    )
    order = np.lexsort((clusters.uuid.astype(str), clusters.day))
    return Clusters(*(getattr(clusters, field.name)[order] for field in fields(clusters)))


def _messages(total: int, n_workers: Numbers, weights: Numbers) -> Numbers:
    """Messages of each cluster such that workers x messages come to about `total`."""
    wanted = weights / weights.sum() * total / n_workers
    found = np.clip(wanted, 6, _MOST_MESSAGES)
    for _ in range(20):  # What the limits take from some goes to the others.
        found = np.clip(found * total / (found * n_workers).sum(), 6, _MOST_MESSAGES)
    return np.round(found).astype(np.int64)

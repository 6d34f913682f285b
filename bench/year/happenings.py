"""A day's exceptions, events, log lines and profiles."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bench.year import words
from bench.year.columns import joined, lists, moments, picked, rows_of, within
from bench.year.plan import Clusters
from bench.year.processes import Crew
from bench.year.size import Numbers
from daskscope_query.tables import EVENTS, EXCEPTIONS, LOGS, PROFILES

LINES_PER_CLUSTER = 20
STACKS_PER_INTERVAL = 10
_PROFILED_MS = 600_000
_SAMPLE_US = 10_000
_NUMBERS = 100
"""A text of a family says one of so many numbers."""


def _times(clusters: Clusters, cluster: Numbers, rng: np.random.Generator) -> Numbers:
    """Some time of each cluster, growing within it."""
    length_ms = (clusters.end_ms - clusters.start_ms)[cluster]
    at_ms = clusters.start_ms[cluster] + (rng.random(len(cluster)) * length_ms).astype(np.int64)
    return at_ms[np.lexsort((at_ms, cluster))]


def exceptions(clusters: Clusters, rng: np.random.Generator) -> pa.Table:
    cluster, no = np.repeat(np.arange(len(clusters)), clusters.n_exceptions), within(clusters.n_exceptions)
    n, at_ms = len(cluster), _times(clusters, cluster, rng)
    # A job fails in its own ways.
    family = (clusters.job[cluster] + rng.integers(0, 3, n)) % len(words.FAMILIES)
    number = rng.integers(0, _NUMBERS, n)
    texts = [text.replace("{n}", str(n)) for _, text, _ in words.FAMILIES for n in range(_NUMBERS)]
    prefix = (family * 31 + clusters.user[cluster]) % len(words.PREFIXES)
    tracebacks = [
        "Traceback (most recent call last):\n"
        + "".join(
            f'  File "/srv/team/{job}.py", line {9 + depth}, in step_{depth}\n    run(x)\n' for depth in range(12)
        )
        for job in words.JOBS
    ]
    failed = joined(
        picked(tracebacks, clusters.job[cluster]),
        picked([kind for kind, _, _ in words.FAMILIES], family),
        picked(texts, family * _NUMBERS + number),
        by=": ",
    )
    seq = clusters.seq_at(cluster, at_ms)
    return rows_of(
        EXCEPTIONS,
        n,
        {
            **clusters.origin(cluster, seq),
            "no": no,
            "origin": picked([origin for _, _, origin in words.FAMILIES], family),
            "type": picked([kind for kind, _, _ in words.FAMILIES], family),
            "text": picked(texts, family * _NUMBERS + number),
            "traceback": failed,
            "key": joined("('", picked(words.PREFIXES, prefix), "', 0)"),
            "prefix": picked(words.PREFIXES, prefix),
            "group_no": (rng.random(n) * clusters.n_groups[cluster]).astype(np.int64),
            "workers": lists(picked(["tcp://10.0.0.2:40001"], np.zeros(n, np.int64)), np.ones(n, np.int64)),
            "first_at": moments(at_ms),
            "last_at": moments(at_ms + 2_000),
            "count": rng.integers(1, 40, n),
        },
    )


def events(clusters: Clusters, hands: Crew) -> pa.Table:
    """Workers come and go."""
    n = 2 * len(hands.cluster)
    cluster, worker = np.tile(hands.cluster, 2), np.tile(np.arange(len(hands.cluster)), 2)
    goes = np.arange(n) >= len(hands.cluster)
    no = hands.no[worker] + np.where(goes, clusters.n_workers[cluster], 0)
    at_ms = np.where(goes, clusters.end_ms[cluster], clusters.start_ms[cluster] + 1_500 + 40 * hands.no[worker])
    seq = clusters.seq_at(cluster, at_ms)
    table = rows_of(
        EVENTS,
        n,
        {
            **clusters.origin(cluster, seq),
            "no": no,
            "logged_at": moments(at_ms),
            "topic": "all",
            "action": picked(["add-worker", "remove-worker"], goes.astype(np.int64)),
            "worker": pa.array(hands.address, pa.string()).take(pa.array(worker)),
            "detail": "{}",
        },
    )
    return table.take(pa.array(np.lexsort((no, seq, cluster))))


def logs(clusters: Clusters, hands: Crew, rng: np.random.Generator) -> pa.Table:
    cluster = np.repeat(np.arange(len(clusters)), LINES_PER_CLUSTER)
    n, at_ms = len(cluster), _times(clusters, cluster, rng)
    line, number = rng.integers(0, len(words.LINES), n), rng.integers(0, _NUMBERS, n)
    texts = [text.replace("{n}", str(n)) for _, _, text in words.LINES for n in range(_NUMBERS)]
    first = np.searchsorted(hands.cluster, np.arange(len(clusters)))
    worker = first[cluster] + rng.integers(0, 1 << 30, n) % clusters.n_workers[cluster]
    return rows_of(
        LOGS,
        n,
        {
            **clusters.origin(cluster, clusters.seq_at(cluster, at_ms)),
            "no": np.tile(np.arange(LINES_PER_CLUSTER), len(clusters)),
            "logged_at": moments(at_ms),
            "level": picked([level for level, _, _ in words.LINES], line),
            "logger": picked([logger for _, logger, _ in words.LINES], line),
            "role": picked(["worker", "nanny"], (line == 4).astype(np.int64)),
            "worker": pa.array(hands.address, pa.string()).take(pa.array(worker)),
            "text": picked(texts, line * _NUMBERS + number),
            "dropped": 0,
        },
    )


def profiles(clusters: Clusters, rng: np.random.Generator) -> pa.Table:
    """Some stacks once in ten minutes, in whichever message tells of them."""
    intervals = np.maximum((clusters.end_ms - clusters.start_ms) // _PROFILED_MS, 1)
    of = np.repeat(np.arange(len(clusters)), intervals)
    to_ms = np.minimum(clusters.start_ms[of] + (within(intervals) + 1) * _PROFILED_MS, clusters.end_ms[of])
    cluster, to_ms = np.repeat(of, STACKS_PER_INTERVAL), np.repeat(to_ms, STACKS_PER_INTERVAL)
    n, no = len(cluster), np.tile(np.arange(STACKS_PER_INTERVAL), len(of))
    stack = (clusters.user[cluster] * 13 + clusters.job[cluster] * 5 + no * 7) % len(words.STACKS)
    return rows_of(
        PROFILES,
        n,
        {
            **clusters.origin(cluster, clusters.seq_at(cluster, to_ms)),
            "no": no,
            "from_at": moments(to_ms - _PROFILED_MS),
            "to_at": moments(to_ms),
            "n_workers": clusters.n_workers[cluster],
            "sample_us": _SAMPLE_US,
            "prefix": picked(words.PREFIXES, stack),
            "stack": picked(words.STACKS, stack),
            "count": rng.integers(1, 6_000, n),
        },
    )

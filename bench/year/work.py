"""A day's computations, task groups, spans and fine metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.year import words
from bench.year.columns import hexes, joined, lists, maps, moments, nullable, picked, rows_of, within
from bench.year.plan import Clusters
from bench.year.size import Numbers
from daskscope_query.tables import COMPUTATIONS, FINE_METRICS, FRAME, GROUPS, SPANS

SPANS_PER_CLUSTER = 2
PREFIXES_MEASURED = 8
_STILL_RUNNING = 0.002
"""Of computations: their clusters were lost."""


@dataclass(frozen=True, slots=True)
class Computed:
    """A day's computations: an array each, a row a computation, in the order of their clusters and numbers."""

    cluster: Numbers
    no: Numbers
    code: Numbers
    start_ms: Numbers
    stop_ms: Numbers


def computed(clusters: Clusters, rng: np.random.Generator) -> Computed:
    """When each began, with which code, and how long it took."""
    cluster = np.repeat(np.arange(len(clusters)), clusters.n_computations)
    n = len(cluster)
    length_ms = (clusters.end_ms - clusters.start_ms)[cluster]
    start_ms = clusters.start_ms[cluster] + (rng.random(n) * 0.95 * length_ms).astype(np.int64)
    start_ms = start_ms[np.lexsort((start_ms, cluster))]
    # Someone's job has a few pieces of code of its own, and some that all share.
    own = (clusters.user[cluster] * 11 + clusters.job[cluster] * 3 + rng.integers(0, 4, n)) % words.N_CODES
    code = np.where(rng.random(n) < 0.15, rng.integers(0, 12, n), own)
    took_ms = (1_000 + 211 * (code % 37)) * rng.lognormal(0, 0.6, n) * 4 / clusters.n_threads[cluster]
    stop_ms = np.minimum(start_ms + took_ms.astype(np.int64) + 1, clusters.end_ms[cluster])
    return Computed(cluster, within(clusters.n_computations), code, start_ms, np.maximum(stop_ms, start_ms + 1))


def computations(clusters: Clusters, done: Computed, rng: np.random.Generator) -> pa.Table:
    n = len(done.cluster)
    running = rng.random(n) < _STILL_RUNNING
    seq = clusters.seq_at(done.cluster, np.where(running, done.start_ms, done.stop_ms))
    n_frames = 1 + done.code % 3
    code = (np.repeat(done.code, n_frames) + within(n_frames) * 7) % words.N_CODES
    frames = pa.StructArray.from_arrays(
        [
            picked(words.CODES, code),
            picked([f"/srv/team/{words.JOBS[c % len(words.JOBS)]}_{c}.py" for c in range(words.N_CODES)], code),
            pa.array((40 + code % 300).astype(np.int32)),
            pa.array((1 + code % 25).astype(np.int32)),
        ],
        fields=list(FRAME),
    )
    calls = lists(frames, n_frames)
    table = rows_of(
        COMPUTATIONS,
        n,
        {
            **clusters.origin(done.cluster, seq),
            "no": done.no,
            "start_at": moments(done.start_ms),
            "stop_at": moments(done.stop_ms, running),
            "code": lists(calls, np.ones(n, np.int64)),
        },
    )
    return table.take(pa.array(np.lexsort((done.no, seq, done.cluster))))


def groups(clusters: Clusters, done: Computed, spans: pa.Array, rng: np.random.Generator) -> pa.Table:
    """Each computation has one group or more; ten on average. `spans`: their ids, SPANS_PER_CLUSTER of each cluster."""
    cluster = np.repeat(np.arange(len(clusters)), clusters.n_groups)
    no, n = within(clusters.n_groups), clusters.n_groups.sum()
    n_computations = clusters.n_computations[cluster]
    drawn = (rng.random(n) * n_computations).astype(np.int64)
    computation = np.where(no < n_computations, no, drawn)
    computation = computation[np.lexsort((computation, cluster))]
    of = (clusters.n_computations.cumsum() - clusters.n_computations)[cluster] + computation
    begins = np.concatenate([[True], of[1:] != of[:-1]])
    layer = np.arange(n) - np.maximum.accumulate(np.where(begins, np.arange(n), 0))
    prefix = (done.code[of] * 7 + layer * 13) % len(words.PREFIXES)
    took_ms = done.stop_ms[of] - done.start_ms[of]
    start_ms = done.start_ms[of] + (rng.random(n) * 0.5 * took_ms).astype(np.int64)
    stop_ms = np.maximum(start_ms + (rng.random(n) * (done.stop_ms[of] - start_ms)).astype(np.int64), start_ms)
    n_tasks = np.clip(rng.lognormal(2.5, 1.2, n), 1, 50_000).astype(np.int64)
    compute_us = (n_tasks * (2_000 + 970 * (prefix % 29)) * rng.lognormal(0, 0.4, n)).astype(np.int64)
    spent = np.stack(
        [
            compute_us,
            np.where(prefix % 3 == 0, compute_us // 5, 0),
            np.where(prefix % 11 == 0, compute_us // 9, 0),
        ],
        axis=1,
    )
    erred = np.where(rng.random(n) < 0.002, np.minimum(n_tasks, 3), 0)
    states = np.stack([n_tasks - erred, erred], axis=1)
    alone = layer == 0
    seq = clusters.seq_at(cluster, stop_ms)
    table = rows_of(
        GROUPS,
        int(n),
        {
            **clusters.origin(cluster, seq),
            "no": no,
            "name": joined(picked(words.PREFIXES, prefix), hexes(rng, int(n)), by="-"),
            "prefix": picked(words.PREFIXES, prefix),
            "computation": computation,
            "span": picked(spans, cluster * SPANS_PER_CLUSTER + no % SPANS_PER_CLUSTER),
            "start_at": moments(start_ms),
            "stop_at": moments(stop_ms),
            "n_tasks": n_tasks,
            "nbytes": n_tasks * 1_024 * (1 + prefix % 101),
            "states": maps(["released", "erred"], states),
            "action_us": maps(["compute", "transfer", "disk-write"], spent),
            "dependencies": lists(pa.array((no - 1)[~alone].astype(np.int32)), (~alone).astype(np.int64)),
            "types": lists(
                picked(["pandas.core.frame.DataFrame", "numpy.ndarray", "int"], prefix % 3), np.ones(n, np.int64)
            ),
        },
    )
    return table.take(pa.array(np.lexsort((no, seq, cluster))))


def spans(clusters: Clusters, rng: np.random.Generator) -> tuple[pa.Table, pa.Array]:
    """The rows, and all ids in the order of clusters."""
    cluster = np.repeat(np.arange(len(clusters)), SPANS_PER_CLUSTER)
    n, second = len(cluster), np.arange(len(cluster)) % SPANS_PER_CLUSTER == 1
    ids = hexes(rng, n)
    start_ms, stop_ms = clusters.start_ms[cluster] + 3_000, clusters.end_ms[cluster]
    seq = clusters.seq_at(cluster, stop_ms)
    table = rows_of(
        SPANS,
        n,
        {
            **clusters.origin(cluster, seq),
            "id": ids,
            "parent": nullable(np.repeat(ids.to_numpy(zero_copy_only=False)[::SPANS_PER_CLUSTER], 2), ~second),
            "name": lists(picked(words.JOBS, clusters.job[cluster]), np.ones(n, np.int64)),
            "enqueued_at": moments(start_ms),
            "start_at": moments(start_ms + 500),
            "stop_at": moments(stop_ms),
            "collections": "[]",
        },
    )
    return table.take(pa.array(np.lexsort((np.array(ids.to_pylist()), cluster)))), ids


def fine_metrics(clusters: Clusters, spans: pa.Array, rng: np.random.Generator) -> pa.Table:
    """For each span, some prefixes, each with every activity."""
    n_each = SPANS_PER_CLUSTER * PREFIXES_MEASURED * len(words.ACTIVITIES)
    cluster = np.repeat(np.arange(len(clusters)), n_each)
    place = np.tile(np.arange(n_each), len(clusters))
    activity, prefix = place % len(words.ACTIVITIES), place // len(words.ACTIVITIES) % PREFIXES_MEASURED
    prefix = (clusters.user[cluster] * 5 + prefix * 17) % len(words.PREFIXES)
    span = cluster * SPANS_PER_CLUSTER + place // (n_each // SPANS_PER_CLUSTER)
    table = rows_of(
        FINE_METRICS,
        len(cluster),
        {
            **clusters.origin(cluster, clusters.n_messages[cluster] - 1),
            "span": picked(spans, span),
            "context": "execute",
            "prefix": picked(words.PREFIXES, prefix),
            "activity": picked([activity for activity, _ in words.ACTIVITIES], activity),
            "unit": picked([unit for _, unit in words.ACTIVITIES], activity),
            "value": rng.lognormal(3, 1.5, len(cluster)),
        },
    )
    keys = ("cluster", "span", "context", "prefix", "activity", "unit")
    return table.sort_by([(key, "ascending") for key in keys])

"""A day's clusters, their totals, their workers once an interval, who they were and how they went."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.year import words
from bench.year.columns import Columns, lists, maps, moments, nullable, picked, rows_of, walk, within
from bench.year.plan import INTERVAL_MS, Clusters
from bench.year.size import Numbers
from daskscope_query.tables import CLUSTERS, DEATHS, MEMBERS, SAMPLES, WORKERS

_MIB = 1 << 20
_VERSIONS = [("dask", "2026.8.0"), ("distributed", "2026.8.0"), ("numpy", "2.4.6"), ("pandas", "3.0.1")]


@dataclass(frozen=True, slots=True)
class Crew:
    """A day's workers: an array each, a row a worker, by cluster and then by address."""

    cluster: Numbers
    no: Numbers
    address: Numbers
    host: Numbers


def crew(clusters: Clusters) -> Crew:
    cluster, no = np.repeat(np.arange(len(clusters)), clusters.n_workers), within(clusters.n_workers)
    host = np.array(
        [f"10.{c >> 8 & 255}.{c & 255}.{w + 2}" for c, w in zip(clusters.number[cluster], no, strict=True)],
        dtype=object,
    )
    address = np.array([f"tcp://{h}:{40_001 + w}" for h, w in zip(host, no, strict=True)], dtype=object)
    order = np.lexsort((address.astype(str), cluster))
    return Crew(cluster[order], no[order], address[order], host[order])


def identities(clusters: Clusters) -> pa.Table:
    every = np.arange(len(clusters))
    n = len(every)
    versions = pa.array([_VERSIONS] * n, pa.map_(pa.string(), pa.string()))
    tags = [[("project", words.PROJECTS[user % len(words.PROJECTS)])] for user in clusters.user]
    return rows_of(
        CLUSTERS,
        n,
        {
            **clusters.origin(every, np.zeros(n, np.int64)),
            "name": picked(words.JOBS, clusters.job),
            "scheduler_id": pa.array([f"Scheduler-{uuid}" for uuid in clusters.uuid]),
            "user": picked(words.USERS, clusters.user),
            "host": picked([f"login{n}" for n in range(8)], clusters.user % 8),
            "started_at": moments(clusters.start_ms),
            "python": "3.12.4",
            "platform": "Linux x86_64",
            "kind": picked(words.KINDS, clusters.kind),
            "python_path": "/opt/conda/bin/python",
            "versions": versions,
            "tags": pa.array(tags, pa.map_(pa.string(), pa.string())),
        },
    )


def samples(clusters: Clusters, rng: np.random.Generator) -> pa.Table:
    """One a message."""
    cluster, seq = np.repeat(np.arange(len(clusters)), clusters.n_messages), within(clusters.n_messages)
    n = len(cluster)
    n_workers, n_threads = clusters.n_workers[cluster], clusters.n_threads[cluster]
    limit_bytes = n_workers * clusters.memory_mib[cluster] * _MIB
    busy, memory = walk(rng, n, 0.05), walk(rng, n, 0.03)
    uptime_us = (seq * INTERVAL_MS + 2_000) * 1_000
    thread_us = uptime_us * n_workers * n_threads
    used_us = (thread_us * (0.35 + 0.4 * (clusters.user[cluster] % 7) / 7)).astype(np.int64)
    n_tasks = seq * n_workers * 9
    last = seq == clusters.n_messages[cluster] - 1
    columns: Columns = {
        **clusters.origin(cluster, seq),
        "uptime_us": uptime_us,
        "skew_ms": (seq * 31 % 40) - 5,
        "merged": 0,
        "n_workers": n_workers,
        "n_threads": n_workers * n_threads,
        "n_clients": 1,
        "memory_bytes": (limit_bytes * (0.2 + 0.6 * memory)).astype(np.int64) // _MIB * _MIB,
        "managed_bytes": (limit_bytes * 0.5 * memory).astype(np.int64) // _MIB * _MIB,
        "spilled_bytes": 0,
        "memory_limit_bytes": limit_bytes,
        "waiting": (busy * 4_000).astype(np.int64),
        "queued": (busy * 900).astype(np.int64),
        "no_worker": 0,
        "processing": (busy * n_workers * n_threads * 2).astype(np.int64),
        "in_memory": (memory * 5_000).astype(np.int64),
        "erred": 0,
        "held_bytes": (limit_bytes * 0.4 * memory).astype(np.int64) // _MIB * _MIB,
        "n_tasks": n_tasks,
        "n_tasks_erred": np.where(clusters.n_exceptions[cluster] > 0, n_tasks // 500, 0),
        "thread_us": thread_us,
        "action_us": maps(
            ["compute", "transfer", "disk-write"], np.stack([used_us, used_us // 7, used_us // 40], axis=1)
        ),
        "n_workers_lost": 0,
        "scheduler_cpu_pct": (5 + busy * 60).astype(np.int64),
        "scheduler_memory_bytes": (300 + (memory * 200).astype(np.int64)) * _MIB,
        "scheduler_loop_ms": 20,
        "cpu_pct": (busy * n_workers * n_threads * 95).astype(np.int64),
        "net_read_kib_s": (busy * n_workers * 8_000).astype(np.int64),
        "net_write_kib_s": (busy * n_workers * 8_000).astype(np.int64),
        "disk_read_kib_s": (memory * n_workers * 500).astype(np.int64),
        "disk_write_kib_s": (memory * n_workers * 700).astype(np.int64),
        "worker_loop_ms": 20 + (busy * 9).astype(np.int64),
        "self_cpu_us": seq * 1_700,
        "self_slowest_us": 900,
        "self_messages": seq,
        "self_bytes": seq * 1_400,
        "self_failed_tries": 0,
        "self_detail": 0,
        "phase": picked(["running", "closed"], (last & (clusters.number[cluster] % 20 != 0)).astype(np.int64)),
        "reason": nullable(np.full(n, "asked"), ~last | (clusters.number[cluster] % 20 == 0)),
    }
    return rows_of(SAMPLES, n, columns)


def workers(clusters: Clusters, hands: Crew, rng: np.random.Generator) -> pa.Table:
    """Each worker in every message, one worker after the other."""
    n_each = clusters.n_messages[hands.cluster]
    worker, seq = np.repeat(np.arange(len(n_each)), n_each), within(n_each)
    cluster, n = hands.cluster[worker], len(worker)
    memory_mib, n_threads = clusters.memory_mib[cluster], clusters.n_threads[cluster]
    full, busy, ready = walk(rng, n, 0.02), walk(rng, n, 0.08), walk(rng, n, 0.1)
    columns: Columns = {
        **clusters.origin(cluster, seq),
        "address": pa.array(hands.address, pa.string()).take(pa.array(worker)),
        "name": picked([str(no) for no in range(int(hands.no.max()) + 1)], hands.no[worker]),
        "status": picked(["running", "paused"], (full > 0.95).astype(np.int64)),
        "n_threads": n_threads,
        "memory_limit_mib": memory_mib,
        "memory_mib": (memory_mib * (0.05 + 0.9 * full)).astype(np.int64),
        "managed_mib": (memory_mib * 0.7 * full).astype(np.int64),
        "spilled_mib": np.where(full > 0.8, (memory_mib * (full - 0.8)).astype(np.int64), 0),
        "cpu_pct": (busy * n_threads * 100).astype(np.int64),
        "executing": np.minimum((busy * n_threads).astype(np.int64) + 1, n_threads),
        "ready": (ready * 40).astype(np.int64),
        "in_memory": (full * 300).astype(np.int64),
        "net_read_kib_s": (ready * 9_000).astype(np.int64),
        "net_write_kib_s": (busy * 9_000).astype(np.int64),
        "disk_read_kib_s": (busy * 300).astype(np.int64),
        "disk_write_kib_s": (ready * 200).astype(np.int64),
        "loop_interval_ms": 20 + (seq * 7 + worker) % 4,
    }
    return rows_of(WORKERS, n, columns)


def members(clusters: Clusters, hands: Crew) -> pa.Table:
    """The scheduler (number 0) and the workers of each cluster; all of them told where they run."""
    alone = np.arange(len(clusters))
    cluster = np.concatenate([alone, hands.cluster])
    no = np.concatenate([np.zeros(len(alone), np.int64), hands.no + 1])
    n, works = len(cluster), np.concatenate([np.zeros(len(alone), bool), np.ones(len(hands.cluster), bool)])
    schedulers = np.array([f"10.{c >> 8 & 255}.{c & 255}.1" for c in clusters.number], dtype=object)
    host = np.concatenate([schedulers, hands.host])
    ids = np.concatenate([np.array([f"tcp://{h}:8786" for h in schedulers], dtype=object), hands.address])
    machine = clusters.machine[cluster]
    joined_ms = clusters.start_ms[cluster] + np.where(works, 1_500 + no * 40, 0)
    columns: Columns = {
        **clusters.origin(cluster, clusters.n_messages[cluster] - 1),
        "no": no,
        "role": picked(["scheduler", "worker"], works.astype(np.int64)),
        "id": pa.array(ids, pa.string()),
        "name": pa.array(no).cast(pa.string()),
        "host": pa.array(host, pa.string()),
        "joined_at": moments(joined_ms),
        "left_at": moments(clusters.end_ms[cluster], clusters.number[cluster] % 20 == 0),
        "n_threads": np.where(works, clusters.n_threads[cluster], 0),
        "memory_limit_bytes": np.where(works, clusters.memory_mib[cluster] * _MIB, 0),
        "python": "3.12.4",
        "python_path": "/opt/conda/bin/python",
        "os": "Linux",
        "machine": "x86_64",
        "packages": pa.array([_VERSIONS], pa.map_(pa.string(), pa.string())).take(pa.array(np.zeros(n, np.int64))),
        "cores": clusters.n_threads[cluster],
        "memory_bytes": clusters.memory_mib[cluster] * _MIB,
        "provider": "aws",
        "instance_type": picked([each.instance_type for each in words.MACHINES], machine),
        "region": picked(words.REGIONS, clusters.user[cluster] % len(words.REGIONS)),
        "zone": picked([f"{region}a" for region in words.REGIONS], clusters.user[cluster] % len(words.REGIONS)),
        "lifecycle": picked(["on-demand", "spot"], clusters.job[cluster] % 2),
        "agent": "running",
    }
    return rows_of(MEMBERS, n, columns).take(pa.array(np.lexsort((no, cluster))))


def deaths(clusters: Clusters, hands: Crew, rng: np.random.Generator) -> pa.Table:
    """One worker in forty went before the end."""
    gone = np.flatnonzero(rng.random(len(hands.cluster)) < 0.025)
    cluster = hands.cluster[gone]
    died_ms = clusters.start_ms[cluster] + (
        (0.1 + 0.85 * rng.random(len(gone))) * (clusters.end_ms - clusters.start_ms)[cluster]
    ).astype(np.int64)
    order = np.lexsort((died_ms, cluster))
    gone, cluster, died_ms = gone[order], cluster[order], died_ms[order]
    reason = rng.integers(0, len(words.REASONS), len(gone))
    no = within(np.bincount(cluster, minlength=len(clusters)))
    limit_bytes = clusters.memory_mib[cluster] * _MIB
    return rows_of(
        DEATHS,
        len(gone),
        {
            **clusters.origin(cluster, clusters.seq_at(cluster, died_ms)),
            "no": no,
            "died_at": moments(died_ms),
            "worker": pa.array(hands.address[gone], pa.string()),
            "name": pa.array(hands.no[gone]).cast(pa.string()),
            "host": pa.array(hands.host[gone], pa.string()),
            "expected": reason == words.REASONS.index("retired"),
            "reason": picked(words.REASONS, reason),
            "memory_bytes": (limit_bytes * (0.5 + 0.5 * rng.random(len(gone)))).astype(np.int64),
            "memory_limit_bytes": limit_bytes,
            "memory_slope_bytes_s": rng.integers(0, 50 * _MIB, len(gone)),
            "n_processing": rng.integers(0, 9, len(gone)),
            "processing": lists(
                picked(["('read-parquet', 3)"], np.zeros(len(gone), np.int64)), np.ones(len(gone), np.int64)
            ),
            "n_results_lost": rng.integers(0, 100, len(gone)),
        },
    )

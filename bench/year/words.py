"""What the team's code, people and machines are called."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

USERS = [f"{name}{n or ''}" for n in range(4) for name in (
    "ada", "grace", "alan", "edsger", "barbara", "donald", "katherine", "leslie", "radia", "tony",
)]  # fmt: skip
KINDS = ["LocalCluster", "SLURMCluster", "KubeCluster", "EC2Cluster"]
JOBS = ["nightly-etl", "features", "training", "backfill", "report", "notebook", "simulation", "regrid"]
PROJECTS = ["weather", "ads", "risk", "genomics", "maps"]
REGIONS = ["eu-central-1", "us-east-1"]


class Machine(NamedTuple):
    instance_type: str
    cores: int
    memory_gib: int


MACHINES = [
    Machine("m6i.large", 2, 8), Machine("m6i.xlarge", 4, 16), Machine("m6i.2xlarge", 8, 32),
    Machine("c6i.xlarge", 4, 8), Machine("r6i.xlarge", 4, 32), Machine("r6i.2xlarge", 8, 64),
]  # fmt: skip

_VERBS = [
    "read",
    "sum",
    "mean",
    "merge",
    "shuffle",
    "getitem",
    "concat",
    "store",
    "rechunk",
    "map",
    "assign",
    "groupby",
]
_OBJECTS = [
    "parquet",
    "chunk",
    "agg",
    "transfer",
    "p2p",
    "blockwise",
    "tile",
    "frame",
    "index",
    "series",
    "matmul",
    "zarr",
]
PREFIXES = [f"{verb}-{thing}" for verb in _VERBS for thing in _OBJECTS]
N_CODES = 400
"""Different pieces of code that the team computes with."""
CODES = [hashlib.sha256(f"code {n}".encode()).hexdigest() for n in range(N_CODES)]
STACKS = [
    [f"{verb}_{depth} (/srv/team/{thing}.py:{17 * depth + n})" for depth, (verb, thing) in enumerate(zip(
        _VERBS[: 3 + n % 9], _OBJECTS[n % 4 :], strict=False))]
    for n in range(120)
]  # fmt: skip

FAMILIES = [
    ("KeyError", "'column_{n} not in index'", "user"),
    ("ValueError", "Metadata mismatch found in partition {n}", "user"),
    ("MemoryError", "Unable to allocate {n} MiB for an array", "user"),
    ("FileNotFoundError", "s3://bucket/day={n}/part-0.parquet", "user"),
    ("ZeroDivisionError", "division by zero", "user"),
    ("KilledWorker", "Attempted to run task on 4 workers that died; last tcp://10.0.{n}.7:40001", "scheduler"),
    ("ConnectionError", "Timed out after {n} s", "user"),
    ("TypeError", "unsupported operand type(s) for +: 'int' and 'str'", "user"),
    ("P2PConsistencyError", "No active shuffle with id {n} found", "dask"),
    ("RuntimeError", "model {n} did not converge", "user"),
]
REASONS = ["nanny-memory", "worker-ttl", "retired", "lost"]
LINES = [
    (30, "distributed.worker.memory", "Worker is at {n}% memory usage. Pausing worker. Process memory: 12.{n} GiB"),
    (30, "distributed.utils_perf", "full garbage collections took {n}% CPU time recently (threshold: 10%)"),
    (20, "distributed.core", "Event loop was unresponsive in Worker for {n}.10s."),
    (40, "distributed.worker", "Compute Failed\nKey: ('read-parquet', {n})\nException: KeyError('x')"),
    (20, "distributed.nanny", "Worker process {n} was killed by signal 9"),
]
ACTIVITIES = [
    ("thread-cpu", "seconds"), ("thread-noncpu", "seconds"), ("deserialize", "seconds"), ("disk-read", "bytes"),
    ("failed", "seconds"),
]  # fmt: skip

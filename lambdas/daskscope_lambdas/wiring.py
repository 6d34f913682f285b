"""Which adapter stands behind which port: the one place that knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from daskscope_lambdas.adapters import local
from daskscope_lambdas.adapters.system import SystemClock
from daskscope_lambdas.env import Env
from daskscope_lambdas.ports import Clock, Clusters, ObjectStore, Queue, QueueFeed, Seals, Tokens, Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """One adapter per port, all of one world. Safe to use from many threads; not over a fork."""

    objects: ObjectStore
    queue: Queue
    feed: QueueFeed
    clusters: Clusters
    seals: Seals
    tokens: Tokens
    vault: Vault
    clock: Clock
    lake_root: str
    """Where `objects` lie, as a path or URI that pyarrow opens."""
    close: Callable[[], object]
    """Let go of files and connections; happens by itself when the process ends."""


def connect(env: Env, clock: Clock | None = None) -> Adapters:
    """Open the world that `env` names; folders and files that are not there yet are made, for their owner alone.

        lake/              the objects
        keys/              the vault's keys: whoever backs up the rest should not keep them together
        registry.sqlite    queue, clusters, seals and tokens

    `clock` is the machine's unless given. Raises StoreError. Opens anew on each call: the caller keeps the answer.
    """
    clock = clock or SystemClock()
    root = Path(env.data)
    vault = local.DiskVault(root / "keys")
    objects = local.DiskObjects(Path(env.lake))
    database = local.Database(root / "registry.sqlite")
    queue = local.SqliteQueue(database, clock)
    return Adapters(
        objects=objects,
        queue=queue,
        feed=queue,
        clusters=local.SqliteClusters(database),
        seals=local.SqliteSeals(database),
        tokens=local.SqliteTokens(database),
        vault=vault,
        clock=clock,
        lake_root=env.lake,
        close=database.close,
    )

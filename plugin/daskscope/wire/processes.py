"""Who is there: the cluster, its processes, where they run, and those that went."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(slots=True, kw_only=True)
class Identity:
    """Who this cluster is: sent in the first message, and again when the server asks for it."""

    scheduler_id: str
    name: str
    user: str
    """The operating system's user name where the scheduler runs: claimed, not proven."""
    host: str
    address: str
    dashboard: str | None = None
    started_at_ms: int
    python: str
    versions: dict[str, str] = field(default_factory=dict)
    """Package name to version, from `distributed.versions`."""
    platform: str
    kind: str = ""
    """What made the cluster: `LocalCluster`, `SSHCluster`, `KubeCluster`, `SLURMCluster`, ...; empty if nothing tells
    (`dask scheduler` by hand)."""
    python_path: str = ""
    """The interpreter that runs the scheduler."""
    remote_close: bool = True
    """Whether it obeys a `close` among a reply's wishes."""
    tags: dict[str, str] = field(default_factory=dict)
    plugin_version: str


@dataclass(slots=True, kw_only=True)
class Environment:
    """The software that a process runs in."""

    python: str = ""
    python_path: str = ""
    """Empty where the process did not tell."""
    os: str = ""
    machine: str = ""
    """Architecture: `x86_64`, `arm64`, ..."""
    packages: dict[str, str] = field(default_factory=dict)
    """Name to version, those of `distributed.versions`."""


@dataclass(slots=True, kw_only=True)
class Hardware:
    """The machine that a process runs on: what its price depends on."""

    cores: int = 0
    """As the operating system counts them; 0 if not known."""
    memory_bytes: int = 0
    gpus: list[str] = field(default_factory=list)
    provider: str = ""
    """`aws`, or empty: not in a cloud that we know."""
    instance_type: str = ""
    region: str = ""
    zone: str = ""
    lifecycle: str = ""
    """`on-demand`, `spot`, `scheduled` or `capacity-block`, as EC2 calls them."""


@dataclass(slots=True, kw_only=True)
class Member:
    """A process of the cluster: a complete snapshot."""

    no: int
    """Number of this process within the boot."""
    role: Literal["scheduler", "worker", "client"]
    id: str
    """Address of the scheduler or worker, id of the client."""
    name: str = ""
    host: str = ""
    joined_ms: int
    left_ms: int | None = None
    n_threads: int = 0
    memory_limit_bytes: int = 0
    environment: int | None = None
    """Index into the message's `environments`; None if it did not tell."""
    hardware: int | None = None
    """Index into the message's `hardware`; None if it did not tell."""
    agent: str = ""
    """`running` where our agent sends its logs and profile, or why it does not."""


@dataclass(slots=True, kw_only=True)
class Death:
    """A worker that went, and what is known about why."""

    no: int
    at_ms: int
    worker: str
    """Its address."""
    name: str = ""
    host: str = ""
    expected: bool
    """Whether somebody asked for it: scaling down, retiring, restarting, closing."""
    reason: str
    """`nanny-memory`, `worker-ttl`, `retired`, ... in Dask's word where it has one; `lost` if nothing tells."""
    memory_bytes: int = 0
    """Process memory in its last heartbeat, or when its nanny ended it for that."""
    memory_limit_bytes: int = 0
    memory_slope_bytes_s: int = 0
    """How fast its memory grew over its last heartbeats; negative if it shrank."""
    n_processing: int = 0
    """Tasks that it had been given."""
    processing: list[str] = field(default_factory=list)
    """Keys of the first 20 of these."""
    n_results_lost: int = 0
    """Results that were nowhere else."""

"""The cluster as it is at one moment: totals and workers, and what the plugin costs."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Itself:
    """What the plugin has cost its host since the boot, running totals."""

    cpu_us: int = 0
    """CPU time: of its visits to the scheduler's event loop and of the sender's thread, both measured; and what it does
    in between there, by count: 3 us a task where tasks are sent, 5 us an event that Dask keeps or a log line of the
    scheduler's, 1.5 us a message of an agent, 1 ms a call to a worker. Start and end are not in it."""
    slowest_us: int = 0
    """CPU time of the longest single visit to the event loop."""
    n_messages: int = 0
    """Messages that were answered with 2xx."""
    n_bytes: int = 0
    """Their size as posted."""
    n_failed_tries: int = 0
    """Tries after which a message had to be tried again."""
    detail: int = 0
    """Not a total: levels of detail that this message leaves out, for the plugin to stay within its budget."""


@dataclass(slots=True, kw_only=True)
class Totals:
    """The whole cluster at one moment, and running totals since this boot (they only grow)."""

    n_workers: int = 0
    n_threads: int = 0
    n_clients: int = 0
    memory_bytes: int = 0
    """Process memory of all workers."""
    managed_bytes: int = 0
    spilled_bytes: int = 0
    memory_limit_bytes: int = 0
    waiting: int = 0
    queued: int = 0
    no_worker: int = 0
    processing: int = 0
    in_memory: int = 0
    erred: int = 0
    """Tasks in each state now; `no_worker` ones wait for a worker that fits."""
    held_bytes: int = 0
    """Size of all task results that are kept in memory or spilled."""
    idle_since_ms: int | None = None
    """Since when the scheduler has had nothing to do; None while it works."""
    idle_timeout_us: int | None = None
    """After how long it closes itself when idle; None if never."""

    desired_workers: int | None = None
    """How many workers Dask would have for the present tasks (`Scheduler.adaptive_target`); None if not asked."""
    adaptive_minimum: int | None = None
    adaptive_maximum: int | None = None
    """Limits of adaptive scaling; None where it is off, not known, or without that limit."""
    scheduler_cpu_pct: int = 0
    """Of one core."""
    scheduler_memory_bytes: int = 0
    scheduler_loop_ms: int = 0
    """Mean interval between two ticks of the scheduler's event loop: 20 is healthy."""

    n_computations: int = 0
    n_groups: int = 0
    n_workers_lost: int = 0
    """Workers that went without being asked to."""
    n_tasks: int = 0
    """Tasks ever seen, over all groups, also forgotten ones."""
    n_tasks_erred: int = 0
    """Tasks ever found erred by their own doing (dependents do not count)."""
    thread_us: int = 0
    """Integral of `n_threads` over time: what the cluster offered."""
    action_us: dict[str, int] = field(default_factory=dict)
    """Seconds of workers per action (compute, transfer, disk-read, ...), over all groups: what was used."""
    peak_memory_bytes: int = 0
    peak_workers: int = 0


@dataclass(slots=True, kw_only=True)
class Workers:
    """One entry per worker in every column; the values of its last heartbeat."""

    address: list[str] = field(default_factory=list)
    name: list[str] = field(default_factory=list)
    status: list[str] = field(default_factory=list)
    n_threads: list[int] = field(default_factory=list)
    memory_limit_mib: list[int] = field(default_factory=list)
    memory_mib: list[int] = field(default_factory=list)
    managed_mib: list[int] = field(default_factory=list)
    spilled_mib: list[int] = field(default_factory=list)
    cpu_pct: list[int] = field(default_factory=list)
    """Of one core: 200 is two cores at full."""
    executing: list[int] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)
    in_memory: list[int] = field(default_factory=list)
    net_read_kib_s: list[int] = field(default_factory=list)
    net_write_kib_s: list[int] = field(default_factory=list)
    disk_read_kib_s: list[int] = field(default_factory=list)
    disk_write_kib_s: list[int] = field(default_factory=list)
    loop_interval_ms: list[int] = field(default_factory=list)
    """Mean interval between two ticks of the worker's event loop: 20 is healthy."""
    gpu_pct: list[int] = field(default_factory=list)
    gpu_memory_mib: list[int] = field(default_factory=list)
    """Use and used memory of GPUs; both empty where no worker has one."""

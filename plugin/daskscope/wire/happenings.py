"""What happened: exceptions, events, log lines, and where the time went."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(slots=True, kw_only=True)
class ExceptionFamily:
    """Tasks of one group that failed alike (same text and traceback) within one interval; or, without a group, a
    failure of Dask itself."""

    no: int
    origin: Literal["user", "scheduler", "dask"] = "user"
    """Who failed: a task's own code; the scheduler, which gave a task up (KilledWorker); Dask itself."""
    type: str
    text: str
    traceback: str
    key: str
    """The first of the failing tasks."""
    prefix: str
    group: int | None = None
    workers: list[str] = field(default_factory=list)
    """Addresses on which it failed, at most 10."""
    first_ms: int
    last_ms: int
    count: int


@dataclass(slots=True, kw_only=True)
class Event:
    """Something that Dask or a user logged as an event, or a worker that came or went."""

    no: int
    at_ms: int
    topic: str
    action: str
    worker: str | None = None
    detail: str = ""
    """The rest of the event as JSON text."""


@dataclass(slots=True, kw_only=True)
class Logs:
    """Lines that the cluster's processes logged, one entry each in every column."""

    no: list[int] = field(default_factory=list)
    at_ms: list[int] = field(default_factory=list)
    level: list[int] = field(default_factory=list)
    """As `logging` counts: 30 is WARNING."""
    logger: list[str] = field(default_factory=list)
    role: list[str] = field(default_factory=list)
    """`scheduler`, `worker` or `nanny`."""
    worker: list[str | None] = field(default_factory=list)
    """Address of the worker, also for its nanny's lines; None for the scheduler."""
    text: list[str] = field(default_factory=list)
    """With the traceback if there is one."""
    dropped: list[int] = field(default_factory=list)
    """Lines of the same process that were dropped before this one, because they came too fast."""


@dataclass(slots=True, kw_only=True)
class Profile:
    """What workers were doing in one interval: how often each stack was met."""

    from_ms: int
    to_ms: int
    n_workers: int = 1
    """Workers that were looked at."""
    sample_us: int
    """Time from one look to the next."""
    first_no: int = 0
    """Number of its first stack in the whole message, where that is told in several parts; the others follow, and what
    was cut comes after the last."""
    frames: list[str] = field(default_factory=list)
    """`function (file:line)`, counted by `stack`."""
    prefix: list[str] = field(default_factory=list)
    """Task prefix, one for each stack."""
    stack: list[list[int]] = field(default_factory=list)
    """Outermost frame first."""
    count: list[int] = field(default_factory=list)
    cut: int = 0
    """Samples of rare stacks that were left out."""

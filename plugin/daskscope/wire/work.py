"""What was computed: computations and their code, task groups, spans, fine metrics, tasks."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Groups:
    """Task groups that changed, one entry each in every column: complete snapshots."""

    no: list[int] = field(default_factory=list)
    """Number of this group within the boot; a name may come again, its number does not."""
    name: list[str] = field(default_factory=list)
    prefix: list[str] = field(default_factory=list)
    computation: list[int | None] = field(default_factory=list)
    span: list[str | None] = field(default_factory=list)
    start_ms: list[int | None] = field(default_factory=list)
    stop_ms: list[int | None] = field(default_factory=list)
    n_tasks: list[int] = field(default_factory=list)
    nbytes: list[int] = field(default_factory=list)
    states: dict[str, list[int]] = field(default_factory=dict)
    """Dask's task states, those that are not 0 for every group of the message."""
    action_us: dict[str, list[int]] = field(default_factory=dict)
    dependencies: list[list[int]] = field(default_factory=list)
    """Numbers of the groups that this one depends on."""
    types: list[list[str]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Frame:
    """One frame of the user's code that led to a computation; the text itself travels once, in `codes`."""

    code: str
    """Hash of the text."""
    file: str
    line: int
    """Line in the file that made the call."""
    line_in_code: int = 1
    """The same line counted within the text, from 1."""


@dataclass(slots=True, kw_only=True)
class Computation:
    """One `compute` or `persist`, as Dask's scheduler tells them apart; a complete snapshot."""

    no: int
    start_ms: int
    stop_ms: int | None = None
    """None while it runs."""
    code: list[list[Frame]] = field(default_factory=list)
    """For each call that led here, its frames, outermost first."""


@dataclass(slots=True, kw_only=True)
class Code:
    """A piece of source code: encrypted by the server before it is kept."""

    hash: str
    """SHA-256 of the text, first 32 hex digits."""
    text: str


@dataclass(slots=True, kw_only=True)
class Span:
    """One of Dask's spans: a complete snapshot. Its states and bytes are those of the groups that name it."""

    id: str
    parent: str | None = None
    name: list[str] = field(default_factory=list)
    """Its tags from the outermost span in: `["etl", "clean"]`; `["default"]` where the user opened none."""
    enqueued_ms: int
    """When its first graph came."""
    start_ms: int | None = None
    """First task's start, None if none succeeded."""
    stop_ms: int | None = None
    """When its last task ended, by our clock where all failed; None while it runs."""
    collections: str = ""
    """What was computed, as Dask tells it (`Span.metadata["collections"]`), JSON text."""


@dataclass(slots=True, kw_only=True)
class Metrics:
    """Dask's fine performance metrics that changed, one entry each in every column: running totals."""

    span: list[str | None] = field(default_factory=list)
    """None for what belongs to no span (`get-data`, `gather-dep`, `memory-monitor`)."""
    context: list[str] = field(default_factory=list)
    """`execute`, `p2p`, `get-data`, ..."""
    prefix: list[str] = field(default_factory=list)
    """Task prefix in `execute`, where in `p2p`; may be empty."""
    activity: list[str] = field(default_factory=list)
    """`thread-cpu`, `thread-noncpu`, `disk-read`, `compress`, `deserialize`, `failed`, `cancelled`, ..."""
    unit: list[str] = field(default_factory=list)
    """`seconds`, `bytes`, `count`, or the user's own."""
    value: list[float] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Tasks:
    """Tasks that ended since the last message, one entry each in every column. Sent only where a setting asks."""

    first_no: int = 0
    """Number of the first of them in the boot; the others follow."""
    weight: int = 1
    """Each stands for so many: above a rate, every so-manieth is taken."""
    from_ms: int = 0
    addresses: list[str] = field(default_factory=list)
    """Workers, counted by `worker`."""
    group: list[int | None] = field(default_factory=list)
    """Number of the task's group, None if the scheduler had forgotten it."""
    worker: list[int] = field(default_factory=list)
    start_ms: list[int] = field(default_factory=list)
    """Since `from_ms`."""
    duration_us: list[int] = field(default_factory=list)
    """Of computing, without transfer and disk; rounded to three digits."""
    nbytes: list[int] = field(default_factory=list)
    erred: list[int] = field(default_factory=list)
    """1 for a task that failed."""

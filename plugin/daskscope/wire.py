"""The message: what one plugin posts in one interval, and what the server answers.

A message is JSON, compressed by zstd or gzip. It is columns rather than rows, integers rather than floats, and leaves
out what is empty. Three kinds of fields, told apart because they heal differently when a message is lost:

- gauges (`totals`, `workers`): true at `made_at_ms`, replaced by the next message;
- running snapshots (`groups`, `computations`, `spans`, `metrics`, `members`): complete each time they change, so the
newest one wins;
- things that happen once (`identity`, `codes`, `exceptions`, `deaths`, `events`, `logs`, `tasks`, `profiles`):
numbered, sent until a message with them is acknowledged.

A message is identified by (cluster, boot, seq). `boot` starts with the time, so (boot, seq) sorts in the order of
making. Times are epoch milliseconds of the scheduler's clock (`_ms`), durations microseconds (`_us`), sizes bytes
(`_bytes`) unless a name ends in `_mib`, `_kib_s` or `_pct`. Unknown fields are ignored, so a newer plugin may post to
an older server.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, Literal

from daskscope.errors import BadMessage, UnknownVersion

VERSION = 1
PATH = "/api/v1/telemetry"
CONTENT_TYPE = "application/octet-stream"
"""Of a body as posted. Not `application/json`: API Gateway takes that for text, and compressed bytes are lost."""
MAX_BODY_BYTES = 768 << 10
"""Largest body as posted: what a queue of 1 MiB of text holds as base64. With 1,000 workers it is a tenth of it."""


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
class Itself:
    """What the plugin has cost its host since the boot, running totals."""

    cpu_us: int = 0
    """CPU time of its threads: on the scheduler's event loop, and in the sender."""
    slowest_us: int = 0
    """CPU time of the longest single visit to the event loop."""
    n_messages: int = 0
    """Messages that the server has."""
    n_bytes: int = 0
    """Their size as posted."""
    n_failed_tries: int = 0
    """Tries after which a message had to be tried again."""


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
    frames: list[str] = field(default_factory=list)
    """`function (file:line)`, counted by `stack`."""
    prefix: list[str] = field(default_factory=list)
    """Task prefix, one for each stack."""
    stack: list[list[int]] = field(default_factory=list)
    """Outermost frame first."""
    count: list[int] = field(default_factory=list)
    cut: int = 0
    """Samples of rare stacks that were left out."""


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
class Message:
    """What a plugin posts. See the module's docstring for how fields heal."""

    v: int
    cluster: str
    """32 hex digits: the UUID in `Scheduler.id`."""
    boot: str
    """24 hex digits: 12 of the epoch milliseconds at which collecting started, 12 at random."""
    seq: int
    made_at_ms: int
    uptime_us: int
    """Monotonic time since the boot."""
    next_s: float
    """The next message is due in so many seconds. Three missed: the cluster counts as lost."""
    phase: Literal["running", "closed"] = "running"
    reason: str | None = None
    """Why it closed, in Dask's word where there is one (`idle-timeout-exceeded`)."""
    identity: Identity | None = None
    itself: Itself = field(default_factory=Itself)
    totals: Totals = field(default_factory=Totals)
    workers: Workers = field(default_factory=Workers)
    members: list[Member] = field(default_factory=list)
    environments: list[Environment] = field(default_factory=list)
    hardware: list[Hardware] = field(default_factory=list)
    groups: Groups = field(default_factory=Groups)
    computations: list[Computation] = field(default_factory=list)
    codes: list[Code] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)
    tasks: Tasks = field(default_factory=Tasks)
    exceptions: list[ExceptionFamily] = field(default_factory=list)
    deaths: list[Death] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    logs: Logs = field(default_factory=Logs)
    profiles: list[Profile] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)
    """Running totals of what was dropped, by reason."""


@dataclass(slots=True, kw_only=True)
class Reply:
    """The server's 2xx answer: the message is kept."""

    id: int
    """The cluster's number in its account."""
    url: str
    """Page of the cluster, relative to the server's address."""
    next_s: float | None = None
    """Asked pace; None leaves it to the plugin."""
    wish: list[str] = field(default_factory=list)
    """What the server misses (`identity`), or what somebody asked of the cluster (`close`)."""


def encode(message: Message) -> bytes:
    """JSON of a message in UTF-8, fields at their default left out; a lone surrogate becomes `?`, for it has no
    UTF-8."""
    text = json.dumps(
        message, default=_lean, separators=(",", ":"), allow_nan=False, ensure_ascii=False, check_circular=False
    )
    return text.encode("utf-8", "replace")


def _lean(value: Any) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, default in _defaults(type(value)):
        item = getattr(value, name)
        if item != default:
            kept[name] = item
    return kept


@cache
def _defaults(kind: type[Any]) -> list[tuple[str, object]]:
    return [(f.name, f.default_factory() if f.default_factory is not MISSING else f.default) for f in fields(kind)]


def decode(plain: bytes) -> Message:
    """A message from its JSON, checked field by field (needs `msgspec`, part of `daskscope[serve]`).

    Raises UnknownVersion, or BadMessage with the place, also when two columns of one table differ in length.
    """
    import msgspec

    try:
        message = msgspec.json.decode(plain, type=Message)
    except msgspec.ValidationError as error:
        _check_version(_claimed_version(plain))  # another version may differ in anything: then that is what to say
        text, _, place = str(error).partition(" - at `")
        raise BadMessage(f"The message does not keep to format {VERSION}: {text}.", place.rstrip("`") or "$") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage(f"The message is not JSON: {error}.") from error
    _check_version(message.v)
    if _LONG_NUMBER in plain.translate(_DIGITS):
        _check_integers(message, "$")
    _check_columns(message.workers, "workers", _GPU)
    _check_columns(message.groups, "groups")
    _check_columns(message.metrics, "metrics")
    _check_columns(message.tasks, "tasks", apart=_ADDRESSES)
    _check_columns(message.logs, "logs")
    for n, profile in enumerate(message.profiles):
        _check_columns(profile, f"profiles[{n}]", apart=_FRAMES)
    _check_references(message)
    return message


_GPU, _ADDRESSES, _FRAMES = frozenset({"gpu_pct", "gpu_memory_mib"}), frozenset({"addresses"}), frozenset({"frames"})
"""Columns that may be empty, and lists that are no columns."""


@dataclass(slots=True)
class _Claim:
    v: int = VERSION


def _claimed_version(plain: bytes) -> int:
    """The version that a body says it is of; ours if it does not say."""
    import msgspec

    try:
        return msgspec.json.decode(plain, type=_Claim).v
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return VERSION


def _check_version(version: int) -> None:
    if not 1 <= version <= VERSION:
        raise UnknownVersion(f"Message version {version} is unknown here: this server takes 1 to {VERSION}.", "$.v")


_DIGITS = bytes(ord("0") if chr(byte).isdecimal() else ord(" ") for byte in range(256))
"""Turns every digit into 0 and the rest into blanks: to search in that is ten times cheaper than by a pattern."""
_LONG_NUMBER = b"0" * 19
"""Whatever does not fit into 64 bits has as many digits, which hardly any message has anywhere."""


def _check_integers(value: Any, place: str) -> None:
    # msgspec takes integers of any size, the lake's columns do not.
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise BadMessage("An integer does not fit into 64 bits.", place)
    elif isinstance(value, dict):
        entries: dict[str, Any] = value
        for name, item in entries.items():
            _check_integers(item, f"{place}.{name}")
    elif isinstance(value, list):
        items: list[Any] = value
        for n, item in enumerate(items):
            _check_integers(item, f"{place}[{n}]")
    elif is_dataclass(value):
        for f in fields(value):
            _check_integers(getattr(value, f.name), f"{place}.{f.name}")


def _check_columns(
    table: Any, where: str, may_be_empty: frozenset[str] = frozenset(), apart: frozenset[str] = frozenset()
) -> None:
    """`apart`: lists that are no columns of the table."""
    found, maps = _columns(type(table), may_be_empty | apart)(table), _map_names(type(table))
    if not (any(found) or maps or may_be_empty):
        return  # most tables of most messages are empty
    lengths = set(map(len, found))
    for name in maps:
        lengths.update(map(len, getattr(table, name).values()))
    lengths |= {len(column) for name in may_be_empty if (column := getattr(table, name))}
    if len(lengths) == 1:
        return
    columns = {name: getattr(table, name) for name in _column_names(type(table)) if name not in apart}
    for name in maps:
        columns |= {f"{name}.{key}": column for key, column in getattr(table, name).items()}
    (first, entries), *others = columns.items()
    for name, column in others:
        if len(column) != len(entries) and (column or name not in may_be_empty):
            told = f"Column {name} has {len(column)} entries where {first} has {len(entries)}."
            raise BadMessage(told, f"$.{where}.{name}")


@cache
def _columns(kind: type[Any], apart: frozenset[str]) -> Callable[[Any], tuple[list[Any], ...]]:
    return attrgetter(*(name for name in _column_names(kind) if name not in apart))


@cache
def _column_names(kind: type[Any]) -> list[str]:
    return [name for name, default in _defaults(kind) if isinstance(default, list)]


@cache
def _map_names(kind: type[Any]) -> list[str]:
    return [name for name, default in _defaults(kind) if isinstance(default, dict)]


def _check_references(message: Message) -> None:
    """Each index must stand in the list that it counts in."""
    _check_indexes(message.tasks.worker, len(message.tasks.addresses), "$.tasks.worker")
    for n, profile in enumerate(message.profiles):
        for stack in profile.stack:
            _check_indexes(stack, len(profile.frames), f"$.profiles[{n}].stack")
    for name, n_entries in (("environment", len(message.environments)), ("hardware", len(message.hardware))):
        told = [index for member in message.members if (index := getattr(member, name)) is not None]
        _check_indexes(told, n_entries, f"$.members.{name}")


def _check_indexes(indexes: list[int], n_entries: int, place: str) -> None:
    if indexes and not (min(indexes) >= 0 and max(indexes) < n_entries):
        raise BadMessage(f"An index is not within the list of {n_entries} that it counts in.", place)

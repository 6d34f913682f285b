"""The message: what one plugin posts in one interval, and what the server answers.

A message is JSON, compressed by zstd or gzip. It is columns rather than rows, integers rather than floats, and leaves
out what is empty. Three kinds of fields, told apart because they heal differently when a message is lost:

- gauges (`totals`, `workers`): true at `made_at_ms`, replaced by the next message;
- running snapshots (`groups`, `computations`): complete each time they change, so the newest one wins;
- things that happen once (`identity`, `codes`, `exceptions`, `events`): numbered, sent until a message with them is
acknowledged.

A message is identified by (cluster, boot, seq). `boot` starts with the time, so (boot, seq) sorts in the order of
making. Times are epoch milliseconds of the scheduler's clock (`_ms`), durations microseconds (`_us`), sizes bytes
(`_bytes`) unless a name ends in `_mib`, `_kib_s` or `_pct`. Unknown fields are ignored, so a newer plugin may post to
an older server.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
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
    versions: dict[str, str] = field(default_factory=dict[str, str])
    """Package name to version, from `distributed.versions`."""
    platform: str
    tags: dict[str, str] = field(default_factory=dict[str, str])
    plugin_version: str


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

    n_computations: int = 0
    n_groups: int = 0
    n_tasks: int = 0
    """Tasks ever seen, over all groups, also forgotten ones."""
    n_tasks_erred: int = 0
    """Tasks ever found erred by their own doing (dependents do not count)."""
    thread_us: int = 0
    """Integral of `n_threads` over time: what the cluster offered."""
    action_us: dict[str, int] = field(default_factory=dict[str, int])
    """Seconds of workers per action (compute, transfer, disk-read, ...), over all groups: what was used."""
    peak_memory_bytes: int = 0
    peak_workers: int = 0


@dataclass(slots=True, kw_only=True)
class Workers:
    """One entry per worker in every column; the values of its last heartbeat."""

    address: list[str] = field(default_factory=list[str])
    name: list[str] = field(default_factory=list[str])
    status: list[str] = field(default_factory=list[str])
    n_threads: list[int] = field(default_factory=list[int])
    memory_limit_mib: list[int] = field(default_factory=list[int])
    memory_mib: list[int] = field(default_factory=list[int])
    managed_mib: list[int] = field(default_factory=list[int])
    spilled_mib: list[int] = field(default_factory=list[int])
    cpu_pct: list[int] = field(default_factory=list[int])
    """Of one core: 200 is two cores at full."""
    executing: list[int] = field(default_factory=list[int])
    ready: list[int] = field(default_factory=list[int])
    in_memory: list[int] = field(default_factory=list[int])
    net_read_kib_s: list[int] = field(default_factory=list[int])
    net_write_kib_s: list[int] = field(default_factory=list[int])
    disk_read_kib_s: list[int] = field(default_factory=list[int])
    disk_write_kib_s: list[int] = field(default_factory=list[int])
    loop_interval_ms: list[int] = field(default_factory=list[int])
    """Mean interval between two ticks of the worker's event loop: 20 is healthy."""


@dataclass(slots=True, kw_only=True)
class Groups:
    """Task groups that changed, one entry each in every column: complete snapshots."""

    no: list[int] = field(default_factory=list[int])
    """Number of this group within the boot; a name may come again, its number does not."""
    name: list[str] = field(default_factory=list[str])
    prefix: list[str] = field(default_factory=list[str])
    computation: list[int | None] = field(default_factory=list[int | None])
    span: list[str | None] = field(default_factory=list[str | None])
    start_ms: list[int | None] = field(default_factory=list[int | None])
    stop_ms: list[int | None] = field(default_factory=list[int | None])
    n_tasks: list[int] = field(default_factory=list[int])
    nbytes: list[int] = field(default_factory=list[int])
    states: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Dask's task states, those that are not 0 for every group of the message."""
    action_us: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    dependencies: list[list[int]] = field(default_factory=list[list[int]])
    """Numbers of the groups that this one depends on."""
    types: list[list[str]] = field(default_factory=list[list[str]])


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
    code: list[list[Frame]] = field(default_factory=list[list[Frame]])
    """For each call that led here, its frames, outermost first."""


@dataclass(slots=True, kw_only=True)
class Code:
    """A piece of source code: encrypted by the server before it is kept."""

    hash: str
    """SHA-256 of the text, first 32 hex digits."""
    text: str


@dataclass(slots=True, kw_only=True)
class ExceptionFamily:
    """Tasks of one group that failed alike (same text and traceback) within one interval."""

    no: int
    type: str
    text: str
    traceback: str
    key: str
    """The first of the failing tasks."""
    prefix: str
    group: int | None = None
    workers: list[str] = field(default_factory=list[str])
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
    totals: Totals = field(default_factory=Totals)
    workers: Workers = field(default_factory=Workers)
    groups: Groups = field(default_factory=Groups)
    computations: list[Computation] = field(default_factory=list[Computation])
    codes: list[Code] = field(default_factory=list[Code])
    exceptions: list[ExceptionFamily] = field(default_factory=list[ExceptionFamily])
    events: list[Event] = field(default_factory=list[Event])
    lost: dict[str, int] = field(default_factory=dict[str, int])
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
    wish: list[str] = field(default_factory=list[str])
    """What the server misses: `identity`."""


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
    _check_columns(message.workers, "workers")
    _check_columns(message.groups, "groups")
    return message


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


def _check_columns(table: Workers | Groups, where: str) -> None:
    columns: dict[str, list[Any]] = {}
    for name in table.__slots__:
        value: Any = getattr(table, name)
        if isinstance(value, dict):
            nested: dict[str, list[int]] = value
            columns |= {f"{name}.{key}": column for key, column in nested.items()}
        else:
            columns[name] = value
    (first, entries), *others = columns.items()
    for name, column in others:
        if len(column) != len(entries):
            told = f"Column {name} has {len(column)} entries where {first} has {len(entries)}."
            raise BadMessage(told, f"$.{where}.{name}")

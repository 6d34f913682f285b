"""The whole of a message, and the answer to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from daskscope.wire.happenings import Event, ExceptionFamily, Logs, Profile
from daskscope.wire.processes import Death, Environment, Hardware, Identity, Member
from daskscope.wire.state import Itself, Totals, Workers
from daskscope.wire.work import Code, Computation, Groups, Metrics, Span, Tasks

VERSION = 2
"""Since 2: `started_at_ms`, `part`, `halved`, `merged`, `sums`."""
PATH = "/api/v1/telemetry"
CONTENT_TYPE = "application/octet-stream"
"""Of a body as posted. Not `application/json`: API Gateway takes that for text, and compressed bytes are lost."""
SENT_AT = "Daskscope-Sent-At"
"""Header of each try: what the sender's wall clock shows then, in epoch milliseconds."""
ACCOUNT = "Daskscope-Account"
"""Header: which account it is about, where the token's user is in several."""
MAX_BODY_BYTES = 768 << 10
"""Largest body as posted: what a queue of 1 MiB of text holds as base64. With 1,000 workers it is a tenth of it."""
MOST_BYTES = 1 << 60
"""No size that a message tells is larger: a user's own `sizeof` may say anything."""
LATEST_MS = 253_370_764_800_000
"""The year 9999: no time that a message tells is negative or later, for no calendar reaches further."""


@dataclass(slots=True, kw_only=True)
class Message:
    """What a plugin posts. See the package's docstring for how fields heal."""

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
    started_at_ms: int = 0
    """Start of the scheduler by its clock: the same in each of its messages, so that their order does not matter. 0
    where it does not tell (format 1)."""
    part: int = 0
    """0: the message itself. Else a piece of it that was too much for one body: the same `seq`, no totals, sent before
    the message itself, and known from its other pieces by this number (`parts.py`)."""
    halved: int = 0
    """How often this piece was divided: the numbers of pieces made of it are told from that."""
    merged: int = 0
    """So many messages right before it in the boot are in it, for there was no room to keep each (`parts.py`). Of
    their gauges nothing is left."""
    sums: dict[str, int] = field(default_factory=dict)
    """Column of `workers` to its sum over all workers (`loop_interval_ms`: the greatest), where some of them are told
    in other parts; else empty."""
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
    accepts: list[str] = field(default_factory=list)
    """Content-Encodings that the server takes beside zstd and gzip."""
    idle_timeout_s: float | None = None
    """After how long idleness the account wants this cluster closed; None for never. What the cluster's own settings
    say goes before it."""

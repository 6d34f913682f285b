"""The message: what one plugin posts in one interval, and what the server answers.

A message is JSON, compressed by zstd or gzip, after a sample (`sample.py`) where both sides know it. It is columns
rather than rows, integers rather than floats, and leaves out what is empty. Three kinds of fields, told apart because
they heal differently when a message is lost:

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

from daskscope.wire.encoding import decode, encode
from daskscope.wire.happenings import Event, ExceptionFamily, Logs, Profile
from daskscope.wire.message import (
    ACCOUNT,
    CONTENT_TYPE,
    LATEST_MS,
    MAX_BODY_BYTES,
    MOST_BYTES,
    PATH,
    SENT_AT,
    VERSION,
    Message,
    Reply,
)
from daskscope.wire.processes import Death, Environment, Hardware, Identity, Member
from daskscope.wire.state import Itself, Totals, Workers
from daskscope.wire.work import Code, Computation, Frame, Groups, Metrics, Span, Tasks

__all__ = [
    "ACCOUNT",
    "CONTENT_TYPE",
    "LATEST_MS",
    "MAX_BODY_BYTES",
    "MOST_BYTES",
    "PATH",
    "SENT_AT",
    "VERSION",
    "Code",
    "Computation",
    "Death",
    "Environment",
    "Event",
    "ExceptionFamily",
    "Frame",
    "Groups",
    "Hardware",
    "Identity",
    "Itself",
    "Logs",
    "Member",
    "Message",
    "Metrics",
    "Profile",
    "Reply",
    "Span",
    "Tasks",
    "Totals",
    "Workers",
    "decode",
    "encode",
]

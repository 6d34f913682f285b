"""What a message may say, beyond its types. A value that nothing holds would else fail where nobody can answer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from daskscope import wire
from daskscope.errors import BadMessage
from daskscope_lambdas.service.limits import MAX_VALUE, exceeded
from daskscope_lambdas.service.size import entries, repeated

MAX_NEXT_S = 86_400.0
"""Longest pace a message may announce: beyond it a dead cluster would show as running for days."""
MAX_ENTRIES = 500_000
"""Of a message. One with all that 10,000 workers, 10,000 groups, 20,000 computations and 20,000 failed tasks may say
at once has some 480,000, and the plugin sends 4,000 groups and 50 failures at a time. That many need 300 MB to write;
16 MiB of empty lists, in a body of 3 KB, needed a whole function's memory."""
MAX_REPEATED = 64 << 20
"""Characters of a message's texts that stand in it once and in many rows of the lake (a frame in many stacks, a
worker's address in many tasks, an environment in many processes). All that 10,000 processes with ten packages say of
themselves is 4 million, and 2,000 stacks of 64 frames are 30 at most."""
MAX_ROW_BYTES = 128 << 10
"""JSON of what a message puts into the live row. Identity and totals may come from two messages, and the row must fit
into an item of DynamoDB (400 KB)."""

_ROW = ("identity", "totals", "lost", "reason")
_CLUSTER = re.compile(r"[0-9a-f]{32}")
_BOOT = re.compile(r"[0-9a-f]{24}")


def check(message: wire.Message) -> None:
    """Raises BadMessage with the place."""
    if not _CLUSTER.fullmatch(message.cluster):
        raise BadMessage("The cluster is not 32 hex digits: send `Scheduler.id` without its dashes.", "$.cluster")
    if not _BOOT.fullmatch(message.boot):
        raise BadMessage("The boot is not 24 hex digits.", "$.boot")
    if not 0 <= message.seq < 1 << 53:
        raise BadMessage("The number of the message is negative or too large.", "$.seq")
    if not (math.isfinite(message.next_s) and 0 < message.next_s <= MAX_NEXT_S):
        raise BadMessage(f"The next message is due in {message.next_s} s; allowed: up to {MAX_NEXT_S:.0f}.", "$.next_s")
    _check_sizes(message)
    for place, limit in exceeded(message):
        raise BadMessage(limit.told, place)
    values = message.metrics.value
    if values and not (min(values) >= -MAX_VALUE and max(values) <= MAX_VALUE and math.isfinite(sum(values))):
        raise BadMessage("A value is not finite, or further than 1e300 from 0.", "$.metrics.value")
    for place, moments in _moments(message):
        if moments and not (min(moments) >= 0 and max(moments) <= wire.LATEST_MS):
            outside = min(moments) if min(moments) < 0 else max(moments)
            raise BadMessage(f"{outside} ms is no time between 1970 and 9999.", place)


def _check_sizes(message: wire.Message) -> None:
    found = dict(entries(message))
    if (n := sum(found.values())) > MAX_ENTRIES:
        told = f"The message has {n} rows and elements of lists, allowed are {MAX_ENTRIES}: send less at a time."
        raise BadMessage(told, max(found, key=found.__getitem__))
    copied = dict(repeated(message))
    if (n := sum(copied.values())) > MAX_REPEATED:
        told = (
            f"The texts have {n} characters where each is written out, allowed are {MAX_REPEATED}: send shorter ones."
        )
        raise BadMessage(told, max(copied, key=copied.__getitem__))
    sizes = {name: len(msgspec.json.encode(getattr(message, name))) for name in _ROW}
    if (n_bytes := sum(sizes.values())) > MAX_ROW_BYTES:
        told = (
            f"{', '.join(_ROW)} have {n_bytes} bytes of JSON together, allowed are {MAX_ROW_BYTES}: send shorter ones."
        )
        raise BadMessage(told, f"$.{max(sizes, key=sizes.__getitem__)}")


Moments = Iterator[tuple[str, Sequence[int]]]
"""Places, and the times that stand there. Parts that a message lacks, as most do, are passed over."""


def _moments(message: wire.Message) -> Moments:
    yield "$.made_at_ms", (message.made_at_ms,)
    yield "$.started_at_ms", (message.started_at_ms,)
    yield "$.totals.idle_since_ms", _told((message.totals.idle_since_ms,))
    if message.identity:
        yield "$.identity.started_at_ms", (message.identity.started_at_ms,)
    yield "$.groups.start_ms", _told(message.groups.start_ms)
    yield "$.groups.stop_ms", _told(message.groups.stop_ms)
    yield "$.logs.at_ms", message.logs.at_ms
    yield "$.tasks.start_ms", [message.tasks.from_ms + start_ms for start_ms in message.tasks.start_ms]
    for place, found, names in (
        ("computations", message.computations, ("start_ms", "stop_ms")),
        ("exceptions", message.exceptions, ("first_ms", "last_ms")),
        ("events", message.events, ("at_ms",)),
        ("members", message.members, ("joined_ms", "left_ms")),
        ("deaths", message.deaths, ("at_ms",)),
        ("spans", message.spans, ("enqueued_ms", "start_ms", "stop_ms")),
        ("profiles", message.profiles, ("from_ms", "to_ms")),
    ):
        for number, each in enumerate(found):
            for name in names:
                yield f"$.{place}[{number}].{name}", _told((getattr(each, name),))


def _told(numbers: Iterable[int | None]) -> list[int]:
    return [number for number in numbers if number is not None]

"""What a message may say, beyond its types. A value that nothing holds would else fail where nobody can answer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import fields

import msgspec

from daskscope import wire
from daskscope.errors import BadMessage
from daskscope_lambdas.service.size import entries

MAX_NEXT_S = 86_400.0
"""Longest pace a message may announce: beyond it a dead cluster would show as running for days."""
MAX_ENTRIES = 500_000
"""Of a message. One with all that 10,000 workers, 10,000 groups, 20,000 computations and 20,000 failed tasks may say
at once has some 480,000, and the plugin sends 4,000 groups and 50 failures at a time. That many need 300 MB to write;
16 MiB of empty lists, in a body of 3 KB, needed a whole function's memory."""
MAX_ROW_BYTES = 128 << 10
"""JSON of what a message puts into the live row. Identity and totals may come from two messages, and the row must fit
into an item of DynamoDB (400 KB)."""

_ROW = ("identity", "totals", "lost", "reason")
_CLUSTER = re.compile(r"[0-9a-f]{32}")
_BOOT = re.compile(r"[0-9a-f]{24}")
_LATEST_MS = 253_370_764_800_000
"""The year 9999: no calendar reaches further."""


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
    for place, number in _numbers(message):
        if not 0 <= number < 1 << 63:
            raise BadMessage("The number is no count: allowed are 0 to 2^63 - 1.", place)
    for place, moment in _moments(message):
        if moment is not None and not 0 <= moment <= _LATEST_MS:
            raise BadMessage(f"{moment} ms is no time between 1970 and 9999.", place)


def _check_sizes(message: wire.Message) -> None:
    found = dict(entries(message))
    if (n := sum(found.values())) > MAX_ENTRIES:
        told = f"The message has {n} rows and elements of lists, allowed are {MAX_ENTRIES}: send less at a time."
        raise BadMessage(told, max(found, key=found.__getitem__))
    sizes = {name: len(msgspec.json.encode(getattr(message, name))) for name in _ROW}
    if (n_bytes := sum(sizes.values())) > MAX_ROW_BYTES:
        told = (
            f"{', '.join(_ROW)} have {n_bytes} bytes of JSON together, allowed are {MAX_ROW_BYTES}: send shorter ones."
        )
        raise BadMessage(told, f"$.{max(sizes, key=sizes.__getitem__)}")


def _numbers(message: wire.Message) -> Iterator[tuple[str, int]]:
    """Those that the live row takes; the lake's columns check their own."""
    yield "$.uptime_us", message.uptime_us
    for field in fields(message.totals):
        value = getattr(message.totals, field.name)
        if isinstance(value, int):
            yield f"$.totals.{field.name}", value
    for action, spent_us in message.totals.action_us.items():
        yield f"$.totals.action_us.{action}", spent_us
    for reason, n in message.lost.items():
        yield f"$.lost.{reason}", n


def _moments(message: wire.Message) -> Iterator[tuple[str, int | None]]:
    yield "$.made_at_ms", message.made_at_ms
    yield "$.totals.idle_since_ms", message.totals.idle_since_ms
    if message.identity:
        yield "$.identity.started_at_ms", message.identity.started_at_ms
    for name, column in (("start_ms", message.groups.start_ms), ("stop_ms", message.groups.stop_ms)):
        for n, moment in enumerate(column):
            yield f"$.groups.{name}[{n}]", moment
    for n, computation in enumerate(message.computations):
        yield f"$.computations[{n}].start_ms", computation.start_ms
        yield f"$.computations[{n}].stop_ms", computation.stop_ms
    for n, family in enumerate(message.exceptions):
        yield f"$.exceptions[{n}].first_ms", family.first_ms
        yield f"$.exceptions[{n}].last_ms", family.last_ms
    for n, event in enumerate(message.events):
        yield f"$.events[{n}].at_ms", event.at_ms

"""Take one posted message: limits, decoding, code into the vault, the envelope into the queue, the live row.

Ports only. Once `take` returns, the queue has the message; the live row is best effort and heals with the next one.
"""

from __future__ import annotations

import logging
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, fields

import msgspec

from daskscope import wire
from daskscope.compression import decompress
from daskscope.errors import BadMessage, NotFound, TooLarge
from daskscope_lambdas.ports import Beat, Clock, Clusters, Queue, StoreError, Taken
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.envelope import Envelope, pack

logger = logging.getLogger("daskscope.ingest")

MAX_QUEUED_CHARS = 1 << 20
"""What a queue takes at most (SQS: 1 MiB)."""
MAX_NEXT_S = 86_400.0
"""Longest pace a message may announce: beyond it a dead cluster would show as running for days."""
MAX_KNOWN = 20_000
"""Clusters whose number a process remembers: 3 MB."""

_WIDEST_ID = (1 << 53) - 1
"""Stands for a number that is not given yet where only the size counts."""

_CLUSTER = re.compile(r"[0-9a-f]{32}")
_BOOT = re.compile(r"[0-9a-f]{24}")
_LATEST_MS = 253_370_764_800_000
"""The year 9999: no calendar reaches further."""


@dataclass(slots=True)
class _Known:
    id: int
    identified: bool


class Ingest:
    """One per process: it remembers the numbers of the clusters it has seen. Safe to use from many threads."""

    def __init__(self, queue: Queue, clusters: Clusters, codes: CodeKeeper, clock: Clock) -> None:
        self._queue, self._clusters, self._codes, self._clock = queue, clusters, codes, clock
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, account: str, body: bytes, encoding: str | None) -> wire.Reply:
        """Keep a message of `account`; `encoding` is the Content-Encoding header.

        Raises TooLarge, BadMessage with the place, NotFound for a cluster of another account, and StoreError, after
        which the message must be sent again.
        """
        if len(body) > wire.MAX_BODY_BYTES:
            raise TooLarge(f"The body has {len(body)} bytes, allowed are {wire.MAX_BODY_BYTES}: send less at a time.")
        message = wire.decode(decompress(body, encoding))
        _check(message)
        now = self._clock.now()
        codes, message.codes = message.codes, []
        known = self._recall(account, message.cluster)
        # Every refusal comes before a new cluster gets its number, so that none is left behind without a message.
        packed = _packed(account, known.id if known else _WIDEST_ID, now, message)
        if codes:
            self._codes.keep(account, codes)
        if known is None:
            known = self._enrol(account, message, now)
            packed = _packed(account, known.id, now, message)
        self._queue.send(packed)
        self._beat(account, message, now, known)
        wish = [] if known.identified else ["identity"]
        return wire.Reply(id=known.id, url=f"{account}/analytics/clusters/{known.id}", wish=wish)

    def _enrol(self, account: str, message: wire.Message, now: float) -> _Known:
        started_ms = message.identity.started_at_ms if message.identity else message.made_at_ms
        try:
            row = self._clusters.enrol(account, message.cluster, started_ms / 1000, now)
        except Taken as error:
            raise NotFound(f"No cluster {message.cluster} in account {account}.") from error
        known = _Known(row.id, bool(row.identity))
        with self._lock:
            self._known[account, message.cluster] = known
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        return known

    def _recall(self, account: str, cluster: str) -> _Known | None:
        with self._lock:
            known = self._known.get((account, cluster))
            if known:
                self._known.move_to_end((account, cluster))
            return known

    def _beat(self, account: str, message: wire.Message, now: float, known: _Known) -> None:
        beat = Beat(
            boot=message.boot,
            seq=message.seq,
            received_at=now,
            made_at=message.made_at_ms / 1000,
            next_s=message.next_s,
            phase=message.phase,
            reason=message.reason,
            identity=msgspec.to_builtins(message.identity),
            totals=msgspec.to_builtins(message.totals),
            lost=message.lost,
        )
        try:
            self._clusters.beat(account, message.cluster, beat)
        except StoreError:
            # Not an error of the message: the queue has it, and the next one brings the row up to date.
            logger.warning("The live row of cluster %s was not updated.", known.id, exc_info=True)
            with self._lock:
                self._known.pop((account, message.cluster), None)
        else:
            known.identified = known.identified or message.identity is not None


def _packed(account: str, cluster_id: int, now: float, message: wire.Message) -> str:
    """Raises TooLarge if no queue takes it."""
    packed = pack(Envelope(account=account, cluster_id=cluster_id, received_at=now, message=message))
    if len(packed) > MAX_QUEUED_CHARS:
        raise TooLarge(f"The message has {len(packed)} bytes in the queue, allowed are {MAX_QUEUED_CHARS}.")
    return packed


def _check(message: wire.Message) -> None:
    """What a type cannot say. A value that no table holds would else fail where nobody can answer its sender."""
    if not _CLUSTER.fullmatch(message.cluster):
        raise BadMessage("The cluster is not 32 hex digits: send `Scheduler.id` without its dashes.", "$.cluster")
    if not _BOOT.fullmatch(message.boot):
        raise BadMessage("The boot is not 24 hex digits.", "$.boot")
    if not 0 <= message.seq < 1 << 53:
        raise BadMessage("The number of the message is negative or too large.", "$.seq")
    if not (math.isfinite(message.next_s) and 0 < message.next_s <= MAX_NEXT_S):
        raise BadMessage(f"The next message is due in {message.next_s} s; allowed: up to {MAX_NEXT_S:.0f}.", "$.next_s")
    for place, number in _numbers(message):
        if not 0 <= number < 1 << 63:
            raise BadMessage("The number is no count: allowed are 0 to 2^63 - 1.", place)
    for place, moment in _moments(message):
        if moment is not None and not 0 <= moment <= _LATEST_MS:
            raise BadMessage(f"{moment} ms is no time between 1970 and 9999.", place)


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

"""Take one posted message: limits, decoding, checks, code into the vault, the envelope into the queue, the live row.

Ports only. Once `take` returns, the queue has the message; the live row is best effort and heals with the next one.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass

import msgspec

from daskscope import wire
from daskscope.compression import SAMPLED, decompress
from daskscope.errors import NotFound, TooLarge
from daskscope_lambdas.ports import MAX_QUEUED_BYTES, Beat, Clock, Clusters, Queue, StoreError, Taken
from daskscope_lambdas.service.check import check
from daskscope_lambdas.service.closing import is_asked
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.envelope import Envelope, pack
from daskscope_lambdas.service.hollow import refuse_hollow

logger = logging.getLogger("daskscope.ingest")

MAX_KNOWN = 20_000
"""Clusters whose number a process remembers: 3 MB."""

_WIDEST_ID = (1 << 53) - 1
"""Stands for a number that is not given yet where only the size counts."""


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
        plain = decompress(body, encoding)
        refuse_hollow(plain)
        message = wire.decode(plain)
        check(message)
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
        close_asked = self._beat(account, message, now, known)
        wish = [] if known.identified else ["identity"]
        if close_asked and message.phase == "running":
            wish.append("close")
        url = f"{account}/analytics/clusters/{known.id}"
        return wire.Reply(id=known.id, url=url, wish=wish, accepts=[*SAMPLED])

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

    def _beat(self, account: str, message: wire.Message, now: float, known: _Known) -> bool:
        """Bring the live row up to date; whether somebody asks the cluster to close."""
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
            heard = self._clusters.beat(account, message.cluster, beat)
        except StoreError:
            # Not an error of the message: the queue has it, and the next one brings the row up to date.
            logger.warning("The live row of cluster %s was not updated.", known.id, exc_info=True)
            with self._lock:
                self._known.pop((account, message.cluster), None)
            return False
        known.identified = known.identified or message.identity is not None
        return is_asked(heard.close_asked_at, now)


def _packed(account: str, cluster_id: int, now: float, message: wire.Message) -> str:
    """Raises TooLarge if no queue takes it."""
    packed = pack(Envelope(account=account, cluster_id=cluster_id, received_at=now, message=message))
    if len(packed) > MAX_QUEUED_BYTES:
        raise TooLarge(f"The message has {len(packed)} bytes in the queue, allowed are {MAX_QUEUED_BYTES}.")
    return packed

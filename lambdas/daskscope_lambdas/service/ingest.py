"""Take one posted message: limits, decoding, checks, code into the vault, the envelope into the queue, the live row.

Ports only. Once `take` returns, the queue has the message; the live row is best effort and heals with the next one. A
part of a message that was divided goes the same way, but for the row: that is for the message itself.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import msgspec

from daskscope import wire
from daskscope.compression import SAMPLED, decompress
from daskscope.errors import Deleted, NotFound, TooLarge
from daskscope_lambdas.ports import MAX_QUEUED_BYTES, Beat, Clock, Clusters, Gone, Queue, StoreError, Taken
from daskscope_lambdas.service.check import check
from daskscope_lambdas.service.clocks import skew_ms, started_at
from daskscope_lambdas.service.closing import is_asked
from daskscope_lambdas.service.code import CodeKeeper, check_hashes
from daskscope_lambdas.service.envelope import Envelope, pack
from daskscope_lambdas.service.hollow import refuse_hollow
from daskscope_lambdas.service.idle import IdlePolicy
from daskscope_lambdas.service.world import World

logger = logging.getLogger("daskscope.ingest")

MAX_KNOWN = 20_000
"""Clusters whose number a process remembers: 3 MB."""

_WIDEST_ID = (1 << 53) - 1
"""Stands for a number that is not given yet where only the size counts."""


@dataclass(slots=True)
class _Known:
    id: int
    identified: bool
    user: str | None
    proven: str | None
    """Whose it is by a personal token; None if none said so."""


class Ingest:
    """One per process: it remembers the numbers of the clusters it has seen. Safe to use from many threads."""

    def __init__(self, queue: Queue, clusters: Clusters, codes: CodeKeeper, idle: IdlePolicy, clock: Clock) -> None:
        self._queue, self._clusters, self._codes, self._idle, self._clock = queue, clusters, codes, idle, clock
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def over(cls, world: World) -> Ingest:
        codes, idle = CodeKeeper(world.objects, world.vault), IdlePolicy(world.policies, world.clock)
        return cls(world.queue, world.clusters, codes, idle, world.clock)

    def take(
        self, account: str, body: bytes, encoding: str | None, sent_at_ms: int | None = None, user: str | None = None
    ) -> wire.Reply:
        """Keep a message of `account`; `encoding` is the Content-Encoding header, `sent_at_ms` what the sender's clock
        showed at this try, None if it does not say, `user` whose token it came with: whatever the message says, the
        cluster is theirs; the first one whose token told who it is stays so. None for a token that is nobody's.

        Raises TooLarge, BadMessage with the place, NotFound for a cluster of another account, Deleted for one that was
        deleted, and StoreError, after which the message must be sent again.
        """
        if len(body) > wire.MAX_BODY_BYTES:
            raise TooLarge(f"The body has {len(body)} bytes, allowed are {wire.MAX_BODY_BYTES}: send less at a time.")
        plain = decompress(body, encoding)
        refuse_hollow(plain)
        message = wire.decode(plain)
        check(message)
        if message.identity is not None and user is not None:
            message.identity.user = user
        now = self._clock.now()
        codes, message.codes = message.codes, []
        # Who tells whose it is has its row looked up anew: another process may have been told before.
        known = None if message.identity else self._recall(account, message.cluster)
        envelope = Envelope(
            account=account,
            cluster_id=known.id if known else _WIDEST_ID,
            received_at=now,
            message=message,
            skew_ms=skew_ms(sent_at_ms, now),
            user_claimed=user is None,
        )
        # Every refusal comes before a new cluster gets its number, so that none is left behind without a message.
        packed = _packed(envelope)
        if known is None:
            check_hashes(codes)
            known = self._enrol(envelope)
            envelope.cluster_id = known.id
            if known.proven and message.identity:
                message.identity.user, envelope.user_claimed = known.proven, False
            packed = _packed(envelope)
        # Not before it is known to be this account's, and not deleted: nothing of what is refused is kept.
        if codes:
            self._codes.keep(account, codes)
        self._queue.send(packed)
        close_asked = message.part == 0 and self._beat(envelope, known)
        wish = [] if known.identified else ["identity"]
        if close_asked and message.phase == "running":
            wish.append("close")
        return wire.Reply(
            id=known.id,
            url=f"{account}/analytics/clusters/{known.id}",
            wish=wish,
            accepts=[*SAMPLED],
            idle_timeout_s=self._idle.timeout_s(account, known.id, known.user),
        )

    def _enrol(self, envelope: Envelope) -> _Known:
        account, message, now = envelope.account, envelope.message, envelope.received_at
        try:
            row = self._clusters.enrol(account, message.cluster, started_at(message, envelope.skew_ms, now), now)
        except Taken as error:
            raise NotFound(f"No cluster {message.cluster} in account {account}.") from error
        except Gone as error:
            raise _deleted(message) from error
        who = row.identity
        proven: str | None = who.get("user") if who.get("user_claimed") is False else None
        known = _Known(row.id, bool(who), who.get("user"), proven)
        with self._lock:
            self._known[account, message.cluster] = known
            self._known.move_to_end((account, message.cluster))
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        return known

    def _recall(self, account: str, cluster: str) -> _Known | None:
        with self._lock:
            known = self._known.get((account, cluster))
            if known:
                self._known.move_to_end((account, cluster))
            return known

    def _beat(self, envelope: Envelope, known: _Known) -> bool:
        """Bring the live row up to date; whether somebody asks the cluster to close."""
        account, message, now = envelope.account, envelope.message, envelope.received_at
        beat = Beat(
            boot=message.boot,
            seq=message.seq,
            received_at=now,
            made_at=message.made_at_ms / 1000,
            next_s=message.next_s,
            phase=message.phase,
            reason=message.reason,
            identity=_identity(envelope),
            totals=msgspec.to_builtins(message.totals),
            lost=message.lost,
            uptime_s=message.uptime_us / 1e6,
            skew_s=None if envelope.skew_ms is None else envelope.skew_ms / 1e3,
        )
        try:
            heard = self._clusters.beat(account, message.cluster, beat)
        except Gone as error:
            # Since this process saw it. That the queue has the message is no matter: nothing of a deleted cluster is
            # kept.
            self._forget(account, message.cluster)
            raise _deleted(message) from error
        except StoreError:
            # Not an error of the message: the queue has it, and the next one brings the row up to date.
            logger.warning("The live row of cluster %s was not updated.", known.id, exc_info=True)
            self._forget(account, message.cluster)
            return False
        if message.identity is not None:
            known.identified, known.user = True, message.identity.user
        return is_asked(heard.close_asked_at, now)

    def _forget(self, account: str, cluster: str) -> None:
        with self._lock:
            self._known.pop((account, cluster), None)


def _identity(envelope: Envelope) -> dict[str, Any] | None:
    told = envelope.message.identity
    return None if told is None else {**msgspec.to_builtins(told), "user_claimed": envelope.user_claimed}


def _deleted(message: wire.Message) -> Deleted:
    return Deleted(f"Cluster {message.cluster} was deleted: nothing of it is kept any more.")


def _packed(envelope: Envelope) -> str:
    """Raises TooLarge if no queue takes it."""
    packed = pack(envelope)
    if len(packed) > MAX_QUEUED_BYTES:
        raise TooLarge(f"The message has {len(packed)} bytes in the queue, allowed are {MAX_QUEUED_BYTES}.")
    return packed

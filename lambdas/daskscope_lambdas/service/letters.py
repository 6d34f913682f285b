"""Dead letters: what `write` can never keep stands beside the lake, as it was in the queue and with the reason."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby

import msgspec

from daskscope.compression import decompress
from daskscope.errors import BadMessage
from daskscope.wire.decoder import decode_json
from daskscope_lambdas.ports import Clock, Missing, ObjectStore, StoreError, Taken
from daskscope_lambdas.service.envelope import MAX_PLAIN_BYTES
from daskscope_query import layout

logger = logging.getLogger("daskscope.write")

_CLUSTER = re.compile(r"[0-9a-f]{32}")
_AT_ONCE = 8
"""Calls of the store: one after another, a batch that nothing can be made of would outlast the function. Each holds up
to MAX_PLAIN_BYTES for a moment."""
_MOST_SAID = 1_000
"""Characters of a reason: some repeat what they could not take."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """A message of the queue that can never be kept, and why."""

    message_id: str
    body: str
    reason: str


@dataclass(frozen=True, slots=True)
class Sender:
    """Whose message it is, as far as that can be told."""

    account: str | None = None
    cluster: str | None = None
    cluster_id: int | None = None
    received_at: float | None = None
    seq: int | None = None
    part: int | None = None


@dataclass(frozen=True, slots=True)
class Letter:
    body: str
    reason: str
    died_at: float
    """Epoch seconds."""


class Letters:
    """Write-once: a letter that comes again, for its message was delivered twice, changes nothing."""

    def __init__(self, objects: ObjectStore, clock: Clock) -> None:
        self._objects, self._clock = objects, clock
        self._pool = ThreadPoolExecutor(_AT_ONCE, "daskscope-letters")  # starts no thread before it has work

    def put(self, unfit: Sequence[Unfit]) -> list[str]:
        """Keep these; returns the ids of the messages that the store did not take."""
        kept = self._pool.map(self._put, unfit)
        return [each.message_id for each, done in zip(unfit, kept, strict=True) if not done]

    def _put(self, unfit: Unfit) -> bool:
        sender, name = sender_of(unfit.body), letter_id(unfit.body)
        # A lone surrogate out of a message could not be read again.
        reason = unfit.reason[:_MOST_SAID].encode("utf-8", "replace").decode()
        letter = Letter(unfit.body, reason, self._clock.now())
        key = layout.dead_key(sender.account, sender.cluster, name, unfit.message_id)
        try:
            with suppress(Taken):
                self._objects.put_new(key, json.dumps(asdict(sender) | asdict(letter)).encode())
        except StoreError as error:
            logger.warning("Message %s is not fit for the lake and stays in the queue: %s", unfit.message_id, error)
            return False
        logger.warning("Message %s was put aside as the dead letter %s: %s", unfit.message_id, name, reason)
        return True

    def listed(self) -> Iterator[tuple[str, list[str]]]:
        """Each letter's id, and the keys that hold it: more than one where it was sent back and came again."""
        # All at once: what is sent back may come again while this goes on.
        for name, keys in groupby(list(self._objects.list(layout.DEAD)), layout.letter_in):
            yield name, list(keys)

    def read(self, keys: Sequence[str]) -> Letter | None:
        """The letter as it came last; None if it is gone meanwhile. Raises BadMessage for what is no letter."""
        found = list[Letter]()
        for key in keys:
            with suppress(Missing):
                try:
                    found.append(decode_json(self._objects.get(key), Letter))
                except msgspec.MsgspecError as error:
                    raise BadMessage(f"{key} is no dead letter: {error}.") from error
        return max(found, key=lambda letter: letter.died_at, default=None)

    def forget(self, account: str, cluster: str | None, until: float | None) -> None:
        """Delete an account's letters, or a cluster's; given `until`, those of messages that were received by then."""
        for key in list(self._objects.list(layout.dead_prefix(account, cluster))):
            if until is None or self._received_at(key) <= until:
                self._objects.delete(key)

    def _received_at(self, key: str) -> float:
        """When the message came, or died where it does not tell; long ago for what is no letter, or gone."""
        try:
            told = msgspec.json.decode(self._objects.get(key), type=_Moments)
        except (Missing, msgspec.MsgspecError):
            return 0.0
        return told.died_at if told.received_at is None else told.received_at

    def take_away(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._objects.delete(key)


@dataclass(slots=True)
class _Moments:
    received_at: float | None
    died_at: float


def letter_id(body: str) -> str:
    """By what it says: sent back and put aside once more, it is the same letter."""
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(slots=True)
class _Message:
    cluster: str
    seq: int
    part: int = 0


@dataclass(slots=True)
class _Envelope:
    """The little of service.envelope.Envelope that is wanted here, whatever becomes of the rest."""

    account: str
    cluster_id: int
    received_at: float
    message: _Message


def sender_of(body: str) -> Sender:
    """What can be read of an envelope that may be damaged, or of another release."""
    try:
        plain = decompress(base64.b64decode(body, validate=True), "zstd", MAX_PLAIN_BYTES)
        told = decode_json(plain, _Envelope)
        account = layout.checked_account(told.account)
    except (BadMessage, ValueError, msgspec.MsgspecError, RecursionError):
        return Sender()
    cluster = told.message.cluster if _CLUSTER.fullmatch(told.message.cluster) else None
    return Sender(account, cluster, told.cluster_id, _moment(told.received_at), told.message.seq, told.message.part)


def _moment(at: float) -> float | None:
    """None for what no calendar has."""
    try:
        layout.day_of(at)
    except (ValueError, OverflowError, OSError):
        return None
    return at

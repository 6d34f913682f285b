"""What stands in the queue: a message with what the server knows of it. Text, for SQS carries text."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import msgspec
import zstandard

from daskscope import wire
from daskscope.compression import MAX_MESSAGE_BYTES, decompress
from daskscope.errors import BadMessage, TooLarge
from daskscope.wire.decoder import decode_json

MAX_PLAIN_BYTES = MAX_MESSAGE_BYTES
"""Of an envelope's JSON. A message has more bytes in it than as posted: here its defaults are written out."""


@dataclass(slots=True, kw_only=True)
class Envelope:
    """`message` carries no code: that is in the vault before the envelope is in the queue."""

    account: str
    cluster_id: int
    received_at: float
    """Epoch seconds of the server's clock, stamped once: its UTC day is the message's day in the lake."""
    message: wire.Message
    skew_ms: int | None = None
    """Server's clock less the scheduler's when it was sent, the way included; None if the sender did not say."""
    user_claimed: bool | None = None
    """Whether the user of the message's identity is only what the sender said: no personal token proved it. None in
    envelopes of earlier releases."""


def pack(envelope: Envelope) -> str:
    """Base64 of zstd of JSON: a message of 1,000 workers stays far below SQS's 1 MiB.

    Raises TooLarge for what `unpack` would refuse.
    """
    plain = msgspec.json.encode(envelope)
    if len(plain) > MAX_PLAIN_BYTES:
        raise TooLarge(f"The message has {len(plain)} bytes with its defaults, allowed are {MAX_PLAIN_BYTES}.")
    return base64.b64encode(zstandard.compress(plain, 3)).decode("ascii")


def unpack(body: str) -> Envelope:
    """Raises BadMessage for anything that `pack` did not make."""
    return unpack_sized(body)[0]


def unpack_sized(body: str) -> tuple[Envelope, int]:
    """As `unpack`, and how many bytes of JSON it was."""
    try:
        plain = decompress(base64.b64decode(body, validate=True), "zstd", MAX_PLAIN_BYTES)
        return decode_json(plain, Envelope), len(plain)
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadMessage(f"The queue holds something that is no envelope: {error}.") from error

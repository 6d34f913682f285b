"""What stands in the queue: a message with what the server knows of it. Text, for SQS carries text."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import msgspec
import zstandard

from daskscope import wire
from daskscope.compression import decompress
from daskscope.errors import BadMessage


@dataclass(slots=True, kw_only=True)
class Envelope:
    """`message` carries no code: that is in the vault before the envelope is in the queue."""

    account: str
    cluster_id: int
    received_at: float
    """Epoch seconds of the server's clock, stamped once: its UTC day is the message's day in the lake."""
    message: wire.Message


def pack(envelope: Envelope) -> str:
    """Base64 of zstd of JSON: a message of 1,000 workers stays far below SQS's 1 MiB."""
    return base64.b64encode(zstandard.compress(msgspec.json.encode(envelope), 3)).decode("ascii")


def unpack(body: str) -> Envelope:
    """Raises BadMessage for anything that `pack` did not make."""
    try:
        plain = decompress(base64.b64decode(body, validate=True), "zstd")
        return msgspec.json.decode(plain, type=Envelope)
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadMessage(f"The queue holds something that is no envelope: {error}.") from error

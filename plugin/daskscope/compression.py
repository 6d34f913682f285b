"""Compression of messages: zstd where the package `zstandard` is installed, else gzip; undone within a limit.

Needs nothing of the message itself: the sender compresses what `wire.encode` made, the server decompresses whatever
comes, also what was made to burst it.
"""

from __future__ import annotations

import gzip
import io
import threading
import zlib
from typing import TYPE_CHECKING, Literal

from daskscope.errors import BadMessage, TooLarge

if TYPE_CHECKING:
    import zstandard

MAX_MESSAGE_BYTES = 16 << 20
"""Largest message once decompressed; decompression stops there, whatever the frame says of its size."""
PIECE_BYTES = 1 << 16
"""Decompressed at a time: to ask for the limit at once costs a buffer of that size for every small message, and holds
what a bomb makes twice."""

Encoding = Literal["zstd", "gzip"]


def compress(body: bytes) -> tuple[bytes, Encoding]:
    """The smaller transport form: zstd level 3 where the package `zstandard` is installed, else gzip."""
    try:
        import zstandard
    except ImportError:
        return gzip.compress(body, 6, mtime=0), "gzip"
    return zstandard.ZstdCompressor(level=3).compress(body), "zstd"


def decompress(body: bytes, encoding: str | None, limit_bytes: int = MAX_MESSAGE_BYTES) -> bytes:
    """Undo `compress`, never producing more than `limit_bytes`.

    Raises TooLarge over the limit, BadMessage for a broken stream or any encoding but zstd, gzip or none.
    """
    if encoding in (None, "", "identity"):
        plain = body
    elif encoding == "gzip":
        plain = _gunzip(body, limit_bytes)
    elif encoding == "zstd":
        plain = _unzstd(body, limit_bytes)
    else:
        raise BadMessage(f"Content-Encoding {encoding!r} is not supported: send zstd, gzip or none.")
    if len(plain) > limit_bytes:
        raise _too_large(limit_bytes)
    return plain


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(f"The message is over {limit_bytes} bytes once decompressed: send less at a time.")


def _gunzip(body: bytes, limit_bytes: int) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    parts: list[bytes] = []
    room = limit_bytes + 1
    try:
        while not stream.eof:
            parts.append(stream.decompress(body, min(room, PIECE_BYTES)))
            body = stream.unconsumed_tail
            room -= len(parts[-1])
            if room == 0:
                raise _too_large(limit_bytes)
            if not (parts[-1] or body or stream.eof):
                raise BadMessage("The gzip stream is cut short.")
    except zlib.error as error:
        raise BadMessage(f"The gzip stream is broken: {error}.") from error
    return b"".join(parts)


def _unzstd(body: bytes, limit_bytes: int) -> bytes:
    import zstandard

    reader = _zstd_context().stream_reader(io.BytesIO(body))
    parts: list[bytes] = []
    room = limit_bytes + 1
    try:
        while part := reader.read(min(room, PIECE_BYTES)):
            parts.append(part)
            room -= len(part)
            if room == 0:
                raise _too_large(limit_bytes)
    except zstandard.ZstdError as error:
        raise BadMessage(f"The zstd stream is broken: {error}.") from error
    return b"".join(parts)


_own = threading.local()


def _zstd_context() -> zstandard.ZstdDecompressor:
    """This thread's: a context serves one at a time, and making one costs more than a usual message does."""
    if not hasattr(_own, "context"):
        import zstandard

        # A frame's own content size is never trusted, and the window is capped: a 33 kB frame can claim gigabytes.
        _own.context = zstandard.ZstdDecompressor(max_window_size=8 << 20)
    return _own.context

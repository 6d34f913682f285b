"""Compression of messages: zstd where the package `zstandard` is installed, else gzip; undone within a limit.

Two further encodings start from the sample that both sides know (`wire/sample.py`): for a server that says it takes
them. The sender compresses what `wire.encode` made, the server decompresses whatever comes, also what was made to
burst it.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import threading
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from daskscope.errors import BadMessage, TooLarge
from daskscope.wire.sample import sample

if TYPE_CHECKING:
    import zstandard

MAX_MESSAGE_BYTES = 16 << 20
"""Largest message once decompressed; decompression stops there, whatever the frame says of its size."""
PIECE_BYTES = 1 << 16
"""Decompressed at a time: to ask for the limit at once costs a buffer of that size for every small message, and holds
what a bomb makes twice."""

Plain = Literal["zstd", "gzip"]
Sampled = Literal["daskscope-1-zstd", "daskscope-1-deflate"]
"""After the sample of that number. Names that nothing on the way takes for an encoding it should undo."""
Encoding = Plain | Sampled
SAMPLED: tuple[Sampled, ...] = get_args(Sampled)


def compress(body: bytes, taken: Collection[str] = ()) -> tuple[bytes, Encoding]:
    """The smallest form that the server takes: any takes zstd, used where the package `zstandard` is installed, and
    gzip; `taken` are those it takes besides."""
    try:
        plain = _zstd()
    except ImportError:
        if "daskscope-1-deflate" in taken:
            with contextlib.suppress(OSError):  # a package without the sample's file
                stream = zlib.compressobj(6, zdict=sample())
                return stream.compress(body) + stream.flush(), "daskscope-1-deflate"
        return gzip.compress(body, 6, mtime=0), "gzip"
    if "daskscope-1-zstd" in taken:
        with contextlib.suppress(OSError):
            return _zstd_after_sample().compressor.compress(body), "daskscope-1-zstd"
    return plain.compressor.compress(body), "zstd"


def decompress(body: bytes, encoding: str | None, limit_bytes: int = MAX_MESSAGE_BYTES) -> bytes:
    """Undo `compress`, never producing more than `limit_bytes`.

    Raises TooLarge over the limit, BadMessage for a broken stream or an encoding that `compress` does not make, but
    none.
    """
    if encoding in (None, "", "identity"):
        plain = body
    elif encoding == "gzip":
        plain = _inflate(body, "gzip", zlib.decompressobj(wbits=31), limit_bytes)
    elif encoding == "zstd":
        plain = _unzstd(body, _zstd().reader, limit_bytes)
    elif encoding in SAMPLED:
        plain = _after_sample(body, encoding, limit_bytes)
    else:
        raise BadMessage(f"Content-Encoding {encoding!r} is not supported: send zstd, gzip or none.")
    if len(plain) > limit_bytes:
        raise _too_large(limit_bytes)
    return plain


def _after_sample(body: bytes, encoding: str, limit_bytes: int) -> bytes:
    try:
        if encoding == "daskscope-1-deflate":
            return _inflate(body, "deflate", zlib.decompressobj(zdict=sample()), limit_bytes)
        return _unzstd(body, _zstd_after_sample().reader, limit_bytes)
    except OSError as error:
        raise BadMessage(f"Content-Encoding {encoding!r} cannot be undone here: send zstd, gzip or none.") from error


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(f"The message is over {limit_bytes} bytes once decompressed: send less at a time.")


def _inflate(body: bytes, kind: str, stream: zlib._Decompress, limit_bytes: int) -> bytes:
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
                raise BadMessage(f"The {kind} stream is cut short.")
    except zlib.error as error:
        raise BadMessage(f"The {kind} stream is broken: {error}.") from error
    return b"".join(parts)


def _unzstd(body: bytes, context: zstandard.ZstdDecompressor, limit_bytes: int) -> bytes:
    import zstandard

    # What claims to be small can be undone at once, into a buffer of that size: usual messages, four times as fast.
    with contextlib.suppress(zstandard.ZstdError):
        if 0 < zstandard.frame_content_size(body) <= min(PIECE_BYTES, limit_bytes):
            return context.decompress(body, read_across_frames=False, allow_extra_data=False)
    reader = context.stream_reader(io.BytesIO(body))
    parts: list[bytes] = []
    room = limit_bytes + 1
    try:
        while part := reader.read(min(room, PIECE_BYTES)):
            parts.append(part)
            room -= len(part)
            if room == 0:
                raise _too_large(limit_bytes)
        n_said = zstandard.frame_content_size(body)
    except zstandard.ZstdError as error:
        raise BadMessage(f"The zstd stream is broken: {error}.") from error
    if n_said > limit_bytes - room + 1:  # the reader itself takes an end that is missing for the end
        raise BadMessage("The zstd stream is cut short.")
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class _Zstd:
    """What a thread needs: a context serves one at a time, and making one costs as much as a usual message does."""

    compressor: zstandard.ZstdCompressor
    reader: zstandard.ZstdDecompressor


MAX_WINDOW_BYTES = 8 << 20
"""A frame's own content size is never trusted, and the window is capped: a 33 kB frame can claim gigabytes."""
_own = threading.local()


def _zstd() -> _Zstd:
    """This thread's. Raises ImportError where the package is not installed."""
    import zstandard

    if not hasattr(_own, "zstd"):
        _own.zstd = _Zstd(
            compressor=zstandard.ZstdCompressor(level=3),
            reader=zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES),
        )
    return _own.zstd


def _zstd_after_sample() -> _Zstd:
    """This thread's. Raises OSError where the sample cannot be read: what is plain needs none."""
    import zstandard

    if not hasattr(_own, "zstd_after_sample"):
        known = zstandard.ZstdCompressionDict(sample(), dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        _own.zstd_after_sample = _Zstd(
            # Without a checksum nobody would notice that the two sides have different samples.
            compressor=zstandard.ZstdCompressor(level=6, dict_data=known, write_checksum=True),
            reader=zstandard.ZstdDecompressor(dict_data=known, max_window_size=MAX_WINDOW_BYTES),
        )
    return _own.zstd_after_sample

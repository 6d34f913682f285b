"""Compression: what is compressed comes back, and nothing that is posted can burst the server."""

import contextlib
import gzip
import io
import random
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import zstandard

from daskscope import testing, wire
from daskscope.compression import compress, decompress
from daskscope.errors import BadMessage, TooLarge

MIB = 1 << 20


def test_gzip_is_used_where_zstandard_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    plain = wire.encode(testing.message())
    body, encoding = compress(plain)
    assert encoding == "gzip"
    assert decompress(body, encoding) == plain
    assert compress(plain)[0] == body, "the same message has the same body whenever it is made"


def _gzip_bomb(n_bytes: int) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9) as stream:
        for _ in range(n_bytes // MIB):
            stream.write(bytes(MIB))
    return out.getvalue()


def _zstd_bomb(n_bytes: int) -> bytes:
    compressor = zstandard.ZstdCompressor(level=3).compressobj(size=n_bytes)
    parts = [compressor.compress(bytes(MIB)) for _ in range(n_bytes // MIB)]
    return b"".join([*parts, compressor.flush()])


def _peak_rss_bytes() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize(("encoding", "make"), [("gzip", _gzip_bomb), ("zstd", _zstd_bomb)])
def test_a_bomb_of_a_gigabyte_is_refused_within_32_mib(encoding: str, make: Any) -> None:
    bomb = make(1 << 30)
    assert len(bomb) < 2 * MIB
    before = _peak_rss_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge, match="send less"):
            decompress(bomb, encoding)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 32 * MIB
    assert _peak_rss_bytes() - before <= 32 * MIB


def test_a_zstd_window_larger_than_any_plugin_makes_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = frame.compress(b"x" * 1000) + frame.flush()
    with pytest.raises(BadMessage, match="zstd stream is broken"):
        decompress(body, "zstd")


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_truncated_and_garbage_streams_are_refused(encoding: str) -> None:
    plain = wire.encode(testing.message())
    whole = gzip.compress(plain) if encoding == "gzip" else zstandard.compress(plain)
    for cut in (0, 1, 5, len(whole) // 2, len(whole) - 1):
        with pytest.raises(BadMessage):
            wire.decode(decompress(whole[:cut], encoding))
    with pytest.raises(BadMessage, match="broken"):
        decompress(b"\x00garbage" * 10, encoding)


def test_after_a_broken_or_a_large_frame_the_next_is_read_as_ever() -> None:
    """A thread keeps its context: nothing of one message may reach the next."""
    good, large = zstandard.compress(b"good"), zstandard.compress(bytes(3 * MIB))
    for bad in (large[:-4], b"\x00garbage" * 10, large):
        with contextlib.suppress(BadMessage):
            decompress(bad, "zstd", limit_bytes=MIB)
        assert decompress(good, "zstd") == b"good"


def test_many_threads_decompress_at_once() -> None:
    plains = [random.Random(n).randbytes(MIB) for n in range(8)]
    packed = [zstandard.compress(plain) for plain in plains]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(3):
            assert list(threads.map(lambda body: decompress(body, "zstd"), packed)) == plains


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_exactly_the_limit_is_taken_and_one_more_is_not(pack: Any) -> None:
    encoding = "gzip" if pack is gzip.compress else "zstd"
    for size in (0, 1, 3 * MIB, 3 * MIB + 17):
        plain = random.Random(size).randbytes(size)
        assert decompress(pack(plain), encoding, limit_bytes=max(size, 1)) == plain
        if size > 1:
            with pytest.raises(TooLarge):
                decompress(pack(plain), encoding, limit_bytes=size - 1)


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd, gzip", "GZIP", "x"])
def test_any_other_encoding_is_refused_by_its_name(encoding: str) -> None:
    with pytest.raises(BadMessage, match=f"Content-Encoding '{encoding}' is not supported"):
        decompress(b"{}", encoding)


@pytest.mark.parametrize("encoding", [None, "", "identity"])
def test_a_plain_body_is_taken_up_to_the_limit(encoding: str | None) -> None:
    assert decompress(b"12345", encoding, limit_bytes=5) == b"12345"
    with pytest.raises(TooLarge):
        decompress(b"123456", encoding, limit_bytes=5)

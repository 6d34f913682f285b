"""Compression: what is compressed comes back, and nothing that is posted can burst the server."""

import contextlib
import gzip
import hashlib
import io
import json
import random
import subprocess
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import zstandard

from daskscope import compression as module
from daskscope import testing, wire
from daskscope.compression import SAMPLED, compress, decompress
from daskscope.errors import BadMessage, TooLarge
from daskscope.wire.sample import sample

MIB = 1 << 20


def test_gzip_is_used_where_zstandard_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    plain = wire.encode(testing.message())
    body, encoding = compress(plain)
    assert encoding == "gzip"
    assert decompress(body, encoding) == plain
    assert compress(plain)[0] == body, "the same message has the same body whenever it is made"


def pack(plain: bytes, encoding: str) -> bytes:
    """As anybody could who has the sample."""
    if encoding == "gzip":
        return gzip.compress(plain)
    if encoding == SAMPLED[1]:
        stream = zlib.compressobj(zdict=sample())
        return stream.compress(plain) + stream.flush()
    known = zstandard.ZstdCompressionDict(sample(), dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdCompressor(dict_data=known if encoding == SAMPLED[0] else None).compress(plain)


ENCODINGS = ["gzip", "zstd", *SAMPLED]


def test_a_sample_that_was_released_never_changes() -> None:
    """Both sides must start from the same bytes, whatever their versions are: another sample has another number."""
    assert hashlib.sha256(sample()).hexdigest() == "e4e2452ac482a967ab3aaf652849a5141f3a9a6191f73468da8c8db901ba3383"
    assert sample() is sample()


def test_the_sample_is_of_the_format_in_all_its_parts() -> None:
    told = json.loads(sample())
    assert set(told) <= {field.name for field in fields(wire.Message)}
    assert {field.name for field in fields(wire.Workers)} - set(told["workers"]) == {"gpu_pct", "gpu_memory_mib"}
    assert {field.name for field in fields(wire.Groups)} == set(told["groups"])
    assert {field.name for field in fields(wire.Logs)} == set(told["logs"])


@pytest.mark.parametrize("is_installed", [True, False])
def test_after_the_sample_a_small_message_is_a_third_smaller(
    monkeypatch: pytest.MonkeyPatch, is_installed: bool
) -> None:
    if not is_installed:
        monkeypatch.setitem(sys.modules, "zstandard", None)
    plain = wire.encode(testing.message())
    body, encoding = compress(plain, SAMPLED)
    assert encoding == SAMPLED[0 if is_installed else 1]
    assert decompress(body, encoding) == plain
    assert len(body) < len(compress(plain)[0]) * 2 / 3
    assert compress(plain, SAMPLED) == (body, encoding)


@pytest.mark.parametrize("encoding", SAMPLED)
def test_another_sample_is_noticed(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    plain = wire.encode(testing.message())
    monkeypatch.setitem(sys.modules, "zstandard", zstandard if encoding == SAMPLED[0] else None)
    body, used = compress(plain, SAMPLED)
    assert used == encoding
    other = sample().replace(b'"status"', b'"sTATUS"').replace(b'"n_threads"', b'"N_Threads"')
    monkeypatch.setitem(sys.modules, "zstandard", zstandard)
    assert decompress(body, encoding) == plain
    monkeypatch.setattr(module, "_own", threading.local())  # a thread that has not seen ours
    monkeypatch.setattr(module, "sample", lambda: other)
    with pytest.raises(BadMessage, match="broken"):
        decompress(body, encoding)


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


REFUSE = """
import sys
from pathlib import Path
from daskscope.compression import decompress
from daskscope.errors import BadMessage, TooLarge

def peak_kib():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

body, encoding = Path(sys.argv[1]).read_bytes(), sys.argv[2]
try:
    decompress(body[:20], encoding)  # what is imported and made once is not of the bomb
except BadMessage:
    pass
before = peak_kib()
try:
    decompress(body, encoding)
except TooLarge as error:
    print(peak_kib() - before, error)
"""


def _sampled_zstd_bomb(n_bytes: int) -> bytes:
    known = zstandard.ZstdCompressionDict(sample(), dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    compressor = zstandard.ZstdCompressor(level=3, dict_data=known).compressobj(size=n_bytes)
    return b"".join([*(compressor.compress(bytes(MIB)) for _ in range(n_bytes // MIB)), compressor.flush()])


def _sampled_deflate_bomb(n_bytes: int) -> bytes:
    stream = zlib.compressobj(9, zdict=sample())
    return b"".join([*(stream.compress(bytes(MIB)) for _ in range(n_bytes // MIB)), stream.flush()])


@pytest.mark.parametrize(
    ("encoding", "make", "n_bytes"),
    [
        ("zstd", _zstd_bomb, 1 << 30),
        (SAMPLED[0], _sampled_zstd_bomb, 1 << 30),
        ("gzip", _gzip_bomb, 1 << 28),
        (SAMPLED[1], _sampled_deflate_bomb, 1 << 28),
        pytest.param("gzip", _gzip_bomb, 1 << 30, marks=pytest.mark.long),
        pytest.param(SAMPLED[1], _sampled_deflate_bomb, 1 << 30, marks=pytest.mark.long),
    ],
)
def test_a_bomb_is_refused_within_32_mib(encoding: str, make: Any, n_bytes: int, tmp_path: Path) -> None:
    """In a process of its own, whose peak is of nothing else."""
    bomb = make(n_bytes)
    assert len(bomb) < 2 * MIB
    (tmp_path / "bomb").write_bytes(bomb)
    command = [sys.executable, "-c", REFUSE, str(tmp_path / "bomb"), encoding]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    peak_kib, _, error = said.partition(" ")
    assert "send less" in error
    assert 0 < int(peak_kib) <= 32 << 10


@pytest.mark.parametrize("encoding", ["zstd", SAMPLED[0]])
def test_a_zstd_window_larger_than_any_plugin_makes_is_refused(encoding: str) -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = frame.compress(b"x" * 1000) + frame.flush()
    with pytest.raises(BadMessage, match="zstd stream is broken"):
        decompress(body, encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_truncated_and_garbage_streams_are_refused(encoding: str) -> None:
    plain = wire.encode(testing.message())
    whole = pack(plain, encoding)
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


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_exactly_the_limit_is_taken_and_one_more_is_not(encoding: str) -> None:
    for size in (0, 1, 3 * MIB, 3 * MIB + 17):
        plain = random.Random(size).randbytes(size)
        assert decompress(pack(plain, encoding), encoding, limit_bytes=max(size, 1)) == plain
        if size > 1:
            with pytest.raises(TooLarge):
                decompress(pack(plain, encoding), encoding, limit_bytes=size - 1)


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd, gzip", "GZIP", "daskscope-2-zstd", "x"])
def test_any_other_encoding_is_refused_by_its_name(encoding: str) -> None:
    with pytest.raises(BadMessage, match=f"Content-Encoding '{encoding}' is not supported"):
        decompress(b"{}", encoding)


@pytest.mark.parametrize("encoding", [None, "", "identity"])
def test_a_plain_body_is_taken_up_to_the_limit(encoding: str | None) -> None:
    assert decompress(b"12345", encoding, limit_bytes=5) == b"12345"
    with pytest.raises(TooLarge):
        decompress(b"123456", encoding, limit_bytes=5)

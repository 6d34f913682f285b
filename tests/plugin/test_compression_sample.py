"""A sample that cannot be read costs the encodings that start from it, and no others."""

import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest

from daskscope import compression, testing, wire
from daskscope.compression import SAMPLED, Encoding, compress, decompress
from daskscope.errors import BadMessage

PLAIN = wire.encode(testing.message())


@pytest.fixture
def fresh() -> Generator[ThreadPoolExecutor]:
    """A thread that has compressed nothing yet: what it needs is made for each thread."""
    with ThreadPoolExecutor(1) as thread:
        yield thread


def gone() -> bytes:
    raise FileNotFoundError("sample_1.json")


@pytest.mark.parametrize("is_installed", [True, False])
def test_without_the_sample_plain_is_sent_whatever_the_server_takes(
    monkeypatch: pytest.MonkeyPatch, fresh: ThreadPoolExecutor, is_installed: bool
) -> None:
    if not is_installed:
        monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setattr(compression, "sample", gone)
    for taken in ((), SAMPLED):
        body, encoding = fresh.submit(compress, PLAIN, taken).result()
        assert encoding == ("zstd" if is_installed else "gzip")
        assert fresh.submit(decompress, body, encoding).result() == PLAIN


@pytest.mark.parametrize("encoding", SAMPLED)
def test_a_body_after_the_sample_is_refused_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, fresh: ThreadPoolExecutor, encoding: Encoding
) -> None:
    if encoding == "daskscope-1-deflate":
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "zstandard", None)
            body, told = compress(PLAIN, SAMPLED)
    else:
        body, told = compress(PLAIN, SAMPLED)
    assert told == encoding
    with monkeypatch.context() as broken:
        broken.setattr(compression, "sample", gone)
        with pytest.raises(BadMessage, match="send zstd, gzip or none"):
            fresh.submit(decompress, body, encoding).result()
    assert fresh.submit(decompress, body, encoding).result() == PLAIN, "once it is back, it is used"

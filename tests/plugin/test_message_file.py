"""A message as a file: read as what anybody may have put there, and listed a few at a time."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from daskscope import wire
from daskscope.errors import TooLarge
from daskscope.message_file import encoding_of, first, name_of, owner_of, read, write


def link(path: Path) -> None:
    (path.parent / "secret").write_text("secret")
    path.symlink_to(path.parent / "secret")


@pytest.mark.parametrize("make", [link, os.mkfifo, os.mkdir], ids=["link", "pipe", "folder"])
def test_what_is_no_regular_file_is_neither_read_nor_waited_for_nor_left_open(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "a.zst.msg")
    n_open = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(OSError):
            read(tmp_path / "a.zst.msg")
    assert len(list(Path("/proc/self/fd").iterdir())) == n_open


def test_no_more_is_read_than_a_message_has(tmp_path: Path) -> None:
    write(tmp_path / "a.zst.msg", bytes(wire.MAX_BODY_BYTES))
    assert len(read(tmp_path / "a.zst.msg")) == wire.MAX_BODY_BYTES
    write(tmp_path / "a.zst.msg", bytes(wire.MAX_BODY_BYTES + 1))
    with pytest.raises(TooLarge, match="786433 bytes"):
        read(tmp_path / "a.zst.msg")


def test_a_file_of_another_user_is_not_one_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.zst.msg", b"body")
    assert read(tmp_path / "a.zst.msg", own=True) == b"body"
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    with pytest.raises(PermissionError):
        read(tmp_path / "a.zst.msg", own=True)


def test_the_first_are_listed_in_order_and_nothing_else(tmp_path: Path) -> None:
    for name in ("c.gz.msg", "a.zst.msg", "b.zst.msg", "0.zst.msg.1.tmp", "0.zst.bad", "0.lock", "0.msg"):
        (tmp_path / name).touch()
    assert first(tmp_path, 2) == ["a.zst.msg", "b.zst.msg"]
    assert first(tmp_path, 9, {"a.zst.msg"}) == ["b.zst.msg", "c.gz.msg"]
    assert first(tmp_path / "nowhere", 9) == []


def test_a_name_tells_whose_it_is_and_how_it_is_packed() -> None:
    assert (owner_of("c-b-00000007-p3"), owner_of("c-b-00000007.zst.msg")) == ("c-b", "c-b")
    assert (name_of("c-b-1.gz.msg"), encoding_of("c-b-1.gz.msg")) == ("c-b-1", "gzip")
    assert encoding_of("c-b-1.zst.bad") is None

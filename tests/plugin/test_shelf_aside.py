"""What the shelf sets aside: what is refused, and what is no message."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daskscope import wire
from daskscope.shelf import MAX_UNUSABLE, REST_S
from daskscope.waiting import SCAN_S
from tests.plugin.rig import Clock
from tests.plugin.shelves import EARLY, THERE, files, given, left_behind, parcel, shelf_in


def test_what_is_refused_is_set_aside_with_its_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shelf = shelf_in(tmp_path)
    assert shelf.keep(parcel())
    shelf.set_aside(parcel().name, "HTTP 422: no")
    assert (files(tmp_path), files(tmp_path, ".bad")) == ([], [f"{parcel().name}.zst.bad"])
    assert "HTTP 422: no" in caplog.text


def test_a_hundred_torn_files_are_set_aside_and_no_good_one_is_touched(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left = left_behind(tmp_path, *range(0, 2 * MAX_UNUSABLE, 2))
    spool = tmp_path / "spool" / "here"
    for n in range(MAX_UNUSABLE):
        whole = parcel(2 * n + 1, THERE, EARLY)
        cut = whole.body[: n * len(whole.body) // MAX_UNUSABLE]
        (spool / f"{whole.name}.zst.msg").write_bytes(cut)
    shelf = shelf_in(tmp_path)
    assert shelf.keep(parcel())
    assert given(shelf) == [each.name for each in left]
    assert len(files(tmp_path, ".bad")) == MAX_UNUSABLE
    assert [(spool / f"{each.name}.zst.msg").read_bytes() for each in left] == [each.body for each in left]
    assert caplog.text.count("was set aside") == 1, "one line a minute"


@pytest.mark.parametrize("content", [b"", b"no gzip", b"\x1f\x8b\x08\x00"], ids=["empty", "no gzip", "a beginning"])
def test_what_does_not_decompress_is_set_aside(tmp_path: Path, content: bytes) -> None:
    left_behind(tmp_path, 0)
    (tmp_path / "spool" / "here" / f"{THERE}-{EARLY}-00000009.gz.msg").write_bytes(content)
    shelf = shelf_in(tmp_path)
    assert shelf.keep(parcel())
    assert given(shelf) == [parcel(0, THERE, EARLY).name]
    assert files(tmp_path, ".bad") == [f"{THERE}-{EARLY}-00000009.gz.bad"]


def test_links_pipes_folders_and_other_names_stay_where_they_are(tmp_path: Path) -> None:
    (left,) = left_behind(tmp_path, 5)
    spool, name = tmp_path / "spool" / "here", left.name.removesuffix("00000005")
    (tmp_path / "secret").write_bytes(left.body)
    (spool / f"{name}00000001.zst.msg").symlink_to(tmp_path / "secret")
    os.mkfifo(spool / f"{name}00000002.zst.msg")
    (spool / f"{name}00000003.zst.msg").mkdir()
    (spool / "of-another-00000001.zst.msg").write_bytes(left.body)
    before = sorted(path.name for path in spool.iterdir())
    clock = Clock()
    shelf = shelf_in(tmp_path, clock)
    assert shelf.keep(parcel())
    assert given(shelf) == [left.name]
    clock.now_s += SCAN_S
    assert given(shelf) == []
    assert set(before) <= {path.name for path in spool.iterdir()}


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (left,) = left_behind(tmp_path, 0)
    huge = tmp_path / "spool" / "here" / f"{THERE}-{EARLY}-00000001.gz.msg"
    huge.touch()
    os.truncate(huge, wire.MAX_BODY_BYTES + 1)
    shelf = shelf_in(tmp_path, max_bytes=1 << 50)
    assert shelf.keep(parcel())
    assert given(shelf) == [left.name]
    assert files(tmp_path, ".bad") == [huge.with_suffix(".bad").name]


@pytest.mark.parametrize("bound", ["MAX_FILES", "MAX_BYTES"])
def test_so_much_is_set_aside_and_more_that_is_no_message_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(f"daskscope.aside.{bound}", 3)
    left_behind(tmp_path, 0)
    for n in range(1, 8):
        (tmp_path / "spool" / "here" / f"{THERE}-{EARLY}-{n:08d}.gz.msg").write_bytes(b"b")
    shelf = shelf_in(tmp_path)
    assert shelf.keep(parcel())
    assert len(given(shelf)) == 1
    assert len(files(tmp_path, ".bad")) == 3
    assert len(files(tmp_path)) == 2, "those that are messages"


def test_no_message_that_is_refused_is_ever_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.aside.MAX_FILES", 3)
    left, clock = left_behind(tmp_path, *range(10)), Clock()
    shelf = shelf_in(tmp_path, clock)
    assert shelf.keep(parcel())

    def refused() -> int:
        n = 0
        while (each := shelf.next()) is not None:
            shelf.set_aside(each.name, "HTTP 422: no")
            n += 1
        return n

    assert refused() == 4
    assert refused() == 0, "it rests: the server may refuse all of them"
    clock.now_s += REST_S
    assert refused() == 1
    assert (len(files(tmp_path, ".bad")), len(files(tmp_path))) == (3, 1 + 10 - 3)
    for path in (tmp_path / "spool" / "here").glob("*.bad"):
        path.unlink()
    clock.now_s += REST_S
    assert [each.name for each in (shelf.next(), shelf.next()) if each] == [left[5].name, left[6].name]

"""The shelf: each message in a file until the server has it, given back in order, and nobody's loss when it fails."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daskscope import testing, wire
from daskscope.compression import SAMPLED, decompress
from daskscope.message_file import owner_of
from daskscope.parcel import Parcel, Shelf, repacked
from daskscope.shelf import MAX_UNUSABLE, REST_S, WriteAhead, place_of
from daskscope.waiting import SCAN_S
from tests.plugin.rig import Clock

HERE, THERE = "a" * 32, "b" * 32
EARLY, LATE = "0" * 24, "1" * 24


def parcel(seq: int = 0, cluster: str = HERE, boot: str = LATE, taken: tuple[str, ...] = (), **changes: Any) -> Parcel:
    message = testing.message(cluster=cluster, boot=boot, seq=seq, **changes)
    return repacked(json.loads(wire.encode(message)), taken)


def shelf_in(folder: Path, clock: Clock | None = None, max_bytes: int = 1 << 20) -> WriteAhead:
    return WriteAhead(folder / "spool" / "here", max_bytes, monotonic=clock or Clock())


def files(folder: Path, *suffixes: str) -> list[str]:
    return sorted(path.name for path in (folder / "spool" / "here").iterdir() if path.suffix in (suffixes or (".msg",)))


def given(shelf: Shelf) -> list[str]:
    """All that it has, in its order; it is kept as the sender keeps it that cannot deliver."""
    found: list[str] = []
    while (each := shelf.next()) is not None:
        found.append(each.name)
    return found


def left_behind(folder: Path, *seqs: int, cluster: str = THERE, boot: str = EARLY) -> list[Parcel]:
    """By a scheduler that is no more: the system has let go of its lock."""
    shelf, parcels = shelf_in(folder), [parcel(seq, cluster, boot) for seq in seqs]
    for each in parcels:
        assert shelf.keep(each)
    for descriptor in shelf._claims._held.values():
        assert descriptor is not None
        os.close(descriptor)
    return parcels


def test_a_message_lies_there_until_the_server_has_it(tmp_path: Path) -> None:
    shelf, message = shelf_in(tmp_path), parcel()
    assert shelf.keep(message)
    assert files(tmp_path) == [f"{message.name}.zst.msg"]
    assert (tmp_path / "spool" / "here" / f"{message.name}.zst.msg").read_bytes() == message.body
    assert shelf.next() is None, "the sender has it"
    shelf.drop(message.name)
    shelf.close()
    assert list((tmp_path / "spool" / "here").iterdir()) == []


def test_files_and_folders_are_the_owner_s_alone(tmp_path: Path) -> None:
    shelf_in(tmp_path).keep(parcel())
    made = [tmp_path / "spool", *(tmp_path / "spool").rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_dir()} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_file()} == {0o600}


def test_what_comes_after_the_sample_is_kept_as_any_server_takes_it(tmp_path: Path) -> None:
    message = parcel(taken=("daskscope-1-zstd",))
    assert message.encoding in SAMPLED
    shelf = shelf_in(tmp_path)
    assert shelf.keep(message)
    shelf.park(message.name)
    found = shelf.next()
    assert found
    assert decompress(found.body, found.encoding) == decompress(message.body, message.encoding)


def test_the_same_message_with_less_in_it_replaces_itself(tmp_path: Path) -> None:
    shelf = shelf_in(tmp_path)
    assert shelf.keep(parcel())
    changed = parcel(merged=3)
    assert shelf.keep(changed)
    shelf.park(changed.name)
    found = shelf.next()
    assert found
    assert (found.body, found.merged) == (changed.body, 3)
    assert len(files(tmp_path)) == 1


def test_what_is_parked_comes_back_in_order_with_what_it_would_lose(tmp_path: Path) -> None:
    shelf = shelf_in(tmp_path)
    messages = [parcel(seq, events=[testing.event()] * seq) for seq in range(3)]
    for each in reversed(messages):
        assert shelf.keep(each)
        shelf.park(each.name)
    found = [shelf.next() for _ in range(3)]
    assert [each and each.name for each in found] == [each.name for each in messages]
    assert [each and each.once["events"] for each in found] == [0, 1, 2]
    assert shelf.next() is None
    shelf.park(messages[1].name)
    again = shelf.next()
    assert again
    assert again.name == messages[1].name


def test_parts_come_before_their_message(tmp_path: Path) -> None:
    shelf = shelf_in(tmp_path)
    names = [parcel(1), parcel(0), parcel(0, part=1), parcel(0, part=2)]
    for each in names:
        assert shelf.keep(each)
        shelf.park(each.name)
    assert given(shelf) == [names[2].name, names[3].name, names[1].name, names[0].name]


def test_what_a_dead_scheduler_left_is_given_to_the_next_one_and_its_lock_goes(tmp_path: Path) -> None:
    left, clock = left_behind(tmp_path, 0, 1, 2), Clock()
    shelf = shelf_in(tmp_path, clock)
    assert shelf.next() is None, "nobody knows yet whose shelf it is"
    assert shelf.keep(parcel())
    shelf.park(parcel().name)
    assert given(shelf) == [parcel().name, *(each.name for each in left)], "its own first"
    assert len(files(tmp_path, ".lock")) == 2
    for each in left:
        shelf.drop(each.name)
    clock.now_s += SCAN_S
    assert shelf.next() is None
    assert files(tmp_path, ".lock") == [f"{HERE}-{LATE}.lock"]


def test_what_a_living_scheduler_has_there_is_left_alone(tmp_path: Path) -> None:
    alive, clock = shelf_in(tmp_path), Clock()
    theirs = parcel(0, THERE, EARLY)
    assert alive.keep(theirs)
    alive.park(theirs.name)
    shelf = shelf_in(tmp_path, clock)
    assert shelf.keep(parcel())
    assert given(shelf) == []
    alive.close()
    assert given(shelf) == [], "that is looked for now and then"
    clock.now_s += SCAN_S
    assert given(shelf) == [theirs.name]


def test_two_do_not_take_over_the_same(tmp_path: Path) -> None:
    left = left_behind(tmp_path, 0, 1)
    one, other = shelf_in(tmp_path), shelf_in(tmp_path)
    assert one.keep(parcel(0, HERE))
    assert other.keep(parcel(0, "c" * 32))
    assert [given(one), given(other)] == [[each.name for each in left], []]


def test_a_shelf_that_is_closed_leaves_what_lies_there_to_the_next(tmp_path: Path) -> None:
    first, message = shelf_in(tmp_path), parcel(0, THERE, EARLY)
    assert first.keep(message)
    first.close()
    shelf = shelf_in(tmp_path)
    assert shelf.keep(parcel())
    assert given(shelf) == [message.name]


def test_a_full_spool_takes_no_more_and_says_so_once_a_minute(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    sizes = [len(parcel(seq).body) for seq in range(7)]
    shelf = shelf_in(tmp_path, clock, max_bytes=sum(sizes[:2]) + min(sizes) - 1)
    assert [shelf.keep(parcel(seq)) for seq in range(6)] == [True, True, False, False, False, False]
    assert caplog.text.count("is full") == 1
    shelf.drop(parcel(0).name)
    assert shelf.keep(parcel(6)), "what goes makes room"


def test_a_message_that_grew_beyond_the_room_is_in_memory_alone(tmp_path: Path) -> None:
    small = parcel()
    shelf = shelf_in(tmp_path, max_bytes=len(small.body) + 10)
    assert shelf.keep(small)
    assert not shelf.keep(parcel(events=[testing.event(topic=os.urandom(300).hex())]))
    assert (tmp_path / "spool" / "here" / files(tmp_path)[0]).read_bytes() == small.body, "it is better than nothing"
    assert shelf.next() is None, "the sender has it still"
    shelf.drop(small.name)
    assert files(tmp_path) == []


def missing() -> None:
    raise ModuleNotFoundError("No module named 'zstandard'", name="zstandard")


def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("daskscope.message_file.os.open", refuse)


def no_space(monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.fdopen

    def full(descriptor: int, mode: str, *args: Any, **options: Any) -> Any:
        file = really(descriptor, mode, *args, **options)
        if mode == "wb":
            file.close()
            raise OSError(errno.ENOSPC, "No space left on device")
        return file

    monkeypatch.setattr("daskscope.message_file.os.fdopen", full)


@pytest.mark.parametrize("trouble", [read_only, no_space])
def test_a_disk_that_fails_is_one_warning_a_minute_and_heals(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, trouble: Callable[[pytest.MonkeyPatch], None]
) -> None:
    clock = Clock()
    shelf = shelf_in(tmp_path, clock)
    with pytest.MonkeyPatch.context() as patch:
        trouble(patch)
        assert not any(shelf.keep(parcel(seq)) for seq in range(50))
        assert shelf.next() is None
        shelf.drop(parcel(0).name)
        shelf.set_aside(parcel(1).name, "refused")
        shelf.park(parcel(2).name)
        assert caplog.text.count("messages are in memory alone") == 1
    assert files(tmp_path, ".msg", ".tmp") == []
    assert shelf.keep(parcel(51))


@pytest.mark.parametrize("in_the_way", ["spool", "spool/here"])
def test_a_file_where_the_folder_should_be_raises_nothing(tmp_path: Path, in_the_way: str) -> None:
    (tmp_path / in_the_way).parent.mkdir(exist_ok=True)
    (tmp_path / in_the_way).write_text("in the way")
    shelf = shelf_in(tmp_path)
    assert not shelf.keep(parcel())
    assert shelf.next() is None
    shelf.drop(parcel().name)
    shelf.set_aside(parcel().name, "why")
    shelf.close()


@pytest.mark.parametrize("trouble", [read_only, no_space])
def test_a_message_that_cannot_be_written_again_lies_there_as_it_was(
    tmp_path: Path, trouble: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another encoding, too: a scheduler that is killed now loses nothing."""
    with monkeypatch.context() as patch:
        patch.setattr("daskscope.compression._zstd", missing)
        before = parcel(events=[testing.event()])
    shelf = shelf_in(tmp_path)
    assert shelf.keep(before)
    with pytest.MonkeyPatch.context() as patch:
        trouble(patch)
        assert not shelf.keep(parcel())
    assert files(tmp_path) == [f"{before.name}.gz.msg"]
    assert shelf.keep(parcel())
    assert files(tmp_path) == [f"{before.name}.zst.msg"], "once it stands, the other goes"


def test_a_path_that_is_none_raises_nothing() -> None:
    shelf = WriteAhead(Path("/no\0path"))
    assert not shelf.keep(parcel())
    assert shelf.next() is None
    shelf.drop(parcel().name)
    shelf.set_aside(parcel().name, "why")
    shelf.park(parcel().name)
    shelf.close()


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


def test_a_long_queue_is_not_listed_for_each_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.waiting.MAX_KNOWN", 50)
    left = left_behind(tmp_path, *range(200))
    shelf, n_looks = shelf_in(tmp_path), 0
    assert shelf.keep(parcel())
    really = shelf._waiting._files

    def counting() -> Any:
        nonlocal n_looks
        n_looks += 1
        return really()

    monkeypatch.setattr(shelf._waiting, "_files", counting)
    assert given(shelf) == [each.name for each in left]
    assert n_looks == 2 * 5
    for _ in range(100):
        assert shelf.next() is None
    assert n_looks == 2 * 5, "and not again before a minute is over"


def test_a_file_that_another_took_meanwhile_is_passed_over(tmp_path: Path) -> None:
    left = left_behind(tmp_path, 0, 1, 2)
    shelf = shelf_in(tmp_path)
    assert shelf.keep(parcel())
    first = shelf.next()
    assert first
    (tmp_path / "spool" / "here" / f"{left[1].name}.zst.msg").unlink()
    assert given(shelf) == [left[2].name]
    shelf.drop(left[1].name)


def test_without_zstandard_what_another_wrote_with_it_goes_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (left,) = left_behind(tmp_path, 0)

    monkeypatch.setattr("daskscope.compression._zstd", missing)
    shelf = shelf_in(tmp_path)
    assert shelf.keep(parcel())
    found = shelf.next()
    assert found
    assert (found.name, found.body, found.encoding) == (left.name, left.body, "zstd")


def test_each_account_on_each_server_has_a_folder_of_its_own(tmp_path: Path) -> None:
    accounts = [("http://a:1", "t"), ("http://a:2", "t"), ("https://b", "t"), ("https://b", "u"), ("https://b", None)]
    places = {place_of(tmp_path, server, token) for server, token in accounts}
    assert len(places) == len(accounts)
    assert {place.parent for place in places} == {tmp_path}
    assert all(len(place.name) == 16 for place in places)


def test_the_owner_is_told_by_the_name(tmp_path: Path) -> None:
    assert owner_of(parcel(7, part=3).name) == f"{HERE}-{LATE}"

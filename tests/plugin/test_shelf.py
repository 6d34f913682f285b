"""The shelf: each message in a file until the server has it, given back in order, and nobody's loss when it fails."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daskscope import testing
from daskscope.compression import SAMPLED, decompress
from daskscope.message_file import owner_of
from daskscope.shelf import WriteAhead, place_of
from daskscope.waiting import SCAN_S
from tests.plugin.rig import Clock
from tests.plugin.shelves import EARLY, HERE, LATE, THERE, files, given, left_behind, parcel, shelf_in


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
    accounts: list[tuple[str, str | None, str | None]] = [
        ("http://a:1", "t", None), ("http://a:2", "t", None), ("https://b", "t", None), ("https://b", "u", None),
        ("https://b", None, None), ("https://b", "t", "team"), ("https://b", "t", "other"),
    ]  # fmt: skip
    places = {place_of(tmp_path, server, token, account) for server, token, account in accounts}
    assert len(places) == len(accounts)
    assert {place.parent for place in places} == {tmp_path}
    assert all(len(place.name) == 16 for place in places)


def test_the_owner_is_told_by_the_name(tmp_path: Path) -> None:
    assert owner_of(parcel(7, part=3).name) == f"{HERE}-{LATE}"

"""What a folder holds is known without looking through it for each message, and what was left half written goes."""

import os
from pathlib import Path

import pytest

from daskscope.outcome import Outcome
from daskscope.room import DRAFT_S, RECOUNT, RECOUNT_S, Room
from daskscope.spool import Spool
from tests.plugin.rig import Clock


class Counting(Room):
    n_looks = 0

    def _count(self) -> int:
        self.n_looks += 1
        return super()._count()


def fill(room: Room, n_bytes: int) -> bool:
    fits = room.has(n_bytes)
    if fits:
        room.add(n_bytes)
    return fits


def test_what_was_set_aside_takes_no_room(tmp_path: Path) -> None:
    (tmp_path / "c-b-0.zst.bad").write_bytes(b"x" * 100)
    assert Room(tmp_path, 10).has(5)


@pytest.mark.parametrize("max_bytes", [1 << 20, 10], ids=["with room", "full"])
def test_the_folder_is_not_looked_through_for_each_message(tmp_path: Path, max_bytes: int) -> None:
    (tmp_path / "c-a-0.zst.msg").write_bytes(b"123456")
    room = Counting(tmp_path, max_bytes, monotonic=Clock())
    assert {fill(room, 5) for _ in range(2 * RECOUNT)} == {max_bytes > 10}
    assert room.n_looks == 2


def test_what_others_write_is_found_soon_where_it_is_nearly_full(tmp_path: Path) -> None:
    room = Room(tmp_path, 1_000)
    (tmp_path / "c-a-0.zst.msg").write_bytes(bytes(950))
    assert fill(room, 1)
    (tmp_path / "c-a-1.zst.msg").write_bytes(bytes(950))
    assert [fill(room, 1) for _ in range(RECOUNT // 10)][-1] is False


def test_room_that_a_server_made_is_found_in_seconds(tmp_path: Path) -> None:
    clock = Clock()
    spool = Spool(tmp_path, max_bytes=10, monotonic=clock)
    assert spool.deliver("c-b-0", bytes(10), "zstd") == Outcome("kept", "")
    assert spool.deliver("c-b-1", b"1", "zstd").verdict == "again"
    (tmp_path / "c-b-0.zst.msg").unlink()
    clock.now_s += RECOUNT_S
    assert spool.deliver("c-b-1", b"1", "zstd").verdict == "kept"


def test_a_full_folder_that_takes_long_to_look_through_is_looked_through_seldom(tmp_path: Path) -> None:
    clock = Clock()

    class Slow(Counting):
        def _count(self) -> int:
            clock.now_s += 1
            return super()._count()

    (tmp_path / "c-a-0.zst.msg").write_bytes(bytes(11))
    room = Slow(tmp_path, 10, monotonic=clock)
    for _ in range(RECOUNT - 1):
        assert not room.has(1)
        clock.now_s += 1
    assert room.n_looks == 1


def test_a_folder_that_went_is_made_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    assert spool.deliver("c-b-0", b"1", "zstd").verdict == "kept"
    (tmp_path / "spool" / "c-b-0.zst.msg").unlink()
    (tmp_path / "spool").rmdir()
    assert spool.deliver("c-b-1", b"1", "zstd").verdict == "kept"


def test_drafts_of_processes_that_ended_go_and_those_under_way_stay(tmp_path: Path) -> None:
    for age_s in (DRAFT_S + 5, DRAFT_S - 5):
        draft = tmp_path / f"c-b-{age_s:.0f}.zst.msg.0.tmp"
        draft.write_bytes(b"half")
        at = tmp_path.stat().st_mtime - age_s
        os.utime(draft, (at, at))
    assert not Room(tmp_path, 10, prefix="c-x").has(8), "drafts take room"
    assert [draft.name for draft in tmp_path.iterdir()] == [f"c-b-{DRAFT_S - 5:.0f}.zst.msg.0.tmp"]

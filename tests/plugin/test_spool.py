"""The spool: whole files, private, bounded, named as `daskscope serve` expects them."""

import stat
from pathlib import Path

import pytest

from daskscope import testing, wire
from daskscope.compression import SAMPLED, Encoding, compress
from daskscope.outcome import Outcome
from daskscope.spool import RECOUNT, Spool, folder
from tests.plugin.rig import spooled


def test_a_message_is_kept_as_it_would_have_been_posted(data: Path) -> None:
    spool = Spool(folder(str(data)))
    message = testing.message()
    assert spool.deliver("c-b-00000000", *compress(wire.encode(message))) == Outcome("kept", "")
    assert [file.name for file in folder(str(data)).iterdir()] == ["c-b-00000000.zst.msg"]
    assert spooled(data) == [message]


@pytest.mark.parametrize("encoding", SAMPLED)
def test_a_file_is_for_every_server_and_never_after_the_sample(tmp_path: Path, encoding: Encoding) -> None:
    assert Spool(tmp_path).deliver("c-b-1", b"body", encoding).verdict == "plain"
    assert list(tmp_path.iterdir()) == []


def test_a_gzip_message_says_so_in_its_name(tmp_path: Path) -> None:
    Spool(tmp_path / "s").deliver("c-b-1", b"body", "gzip")
    assert (tmp_path / "s" / "c-b-1.gz.msg").read_bytes() == b"body"


def test_files_and_folder_are_the_owner_s_alone(tmp_path: Path) -> None:
    Spool(tmp_path / "a" / "spool").deliver("c-b-1", b"body", "zstd")
    (file,) = (tmp_path / "a" / "spool").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_same_message_again_is_the_same_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for _ in range(2):
        assert spool.deliver("c-b-1", b"body", "zstd").verdict == "kept"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_full_spool_takes_no_more_and_says_where_it_is(tmp_path: Path) -> None:
    spool = Spool(tmp_path, max_bytes=10)
    assert spool.deliver("c-b-1", b"12345", "zstd").verdict == "kept"
    assert spool.deliver("c-b-2", b"12345", "zstd").verdict == "kept"
    outcome = spool.deliver("c-b-3", b"1", "zstd")
    assert outcome.verdict == "refused"
    assert str(tmp_path) in outcome.reason
    assert sorted(file.name for file in tmp_path.iterdir()) == ["c-b-1.zst.msg", "c-b-2.zst.msg"]


def test_a_folder_that_cannot_be_made_is_tried_again_later(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    spool = Spool(tmp_path / "data" / "spool")
    outcome = spool.deliver("c-b-1", b"body", "zstd")
    assert outcome.verdict == "again"
    assert "Error" in outcome.reason
    (tmp_path / "data").unlink()
    assert spool.deliver("c-b-1", b"body", "zstd").verdict == "kept"


def test_a_write_that_broke_off_leaves_no_message_and_heals(tmp_path: Path) -> None:
    (tmp_path / "c-b-1.zst.tmp").write_bytes(b"half a bo")
    assert Spool(tmp_path).deliver("c-b-1", b"body", "zstd").verdict == "kept"
    assert [file.name for file in tmp_path.iterdir()] == ["c-b-1.zst.msg"]


def test_what_was_set_aside_takes_no_room(tmp_path: Path) -> None:
    (tmp_path / "c-b-0.zst.bad").write_bytes(b"x" * 100)
    assert Spool(tmp_path, max_bytes=10).deliver("c-b-1", b"12345", "zstd").verdict == "kept"


class Counting(Spool):
    """Knows how often its folder was looked through."""

    n_looks = 0

    def _size(self) -> int:
        self.n_looks += 1
        return super()._size()


@pytest.mark.parametrize("max_bytes", [1 << 20, 10], ids=["with room", "full"])
def test_the_folder_is_not_looked_through_for_each_message(tmp_path: Path, max_bytes: int) -> None:
    (tmp_path / "c-a-0.zst.msg").write_bytes(b"123456")
    spool = Counting(tmp_path, max_bytes)
    verdicts = {spool.deliver(f"c-b-{n}", b"12345", "zstd").verdict for n in range(2 * RECOUNT)}
    assert verdicts == {"kept" if max_bytes > 10 else "refused"}
    assert spool.n_looks == 2


def test_what_others_write_is_found_soon_where_it_is_nearly_full(tmp_path: Path) -> None:
    spool = Counting(tmp_path, 1_000)
    (tmp_path / "c-a-0.zst.msg").write_bytes(bytes(950))
    assert spool.deliver("c-b-0", b"1", "zstd").verdict == "kept"
    (tmp_path / "c-a-1.zst.msg").write_bytes(bytes(950))
    verdicts = [spool.deliver(f"c-b-{n}", b"1", "zstd").verdict for n in range(1, RECOUNT // 10 + 1)]
    assert verdicts[-1] == "refused"


def test_room_that_a_server_made_is_found(tmp_path: Path) -> None:
    spool = Spool(tmp_path, max_bytes=10)
    assert spool.deliver("c-b-0", bytes(10), "zstd").verdict == "kept"
    (tmp_path / "c-b-0.zst.msg").unlink()
    verdicts = [spool.deliver(f"c-b-{n}", b"1", "zstd").verdict for n in range(1, RECOUNT // 10 + 1)]
    assert verdicts[-1] == "kept"


def test_a_folder_that_went_is_made_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    assert spool.deliver("c-b-0", b"1", "zstd").verdict == "kept"
    (tmp_path / "spool" / "c-b-0.zst.msg").unlink()
    (tmp_path / "spool").rmdir()
    assert spool.deliver("c-b-1", b"1", "zstd").verdict == "kept"

"""The spool: whole files, private, bounded, named as `daskscope serve` expects them."""

import errno
import os
import secrets
import stat
from collections import Counter
from pathlib import Path

import pytest

from daskscope import testing, wire
from daskscope.compression import SAMPLED, Encoding, compress
from daskscope.outcome import Outcome
from daskscope.parcel import packed, repacked
from daskscope.room import MAX_BYTES
from daskscope.spool import Spool, folder
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


def test_a_full_spool_takes_no_more_for_now_and_says_where_it_is(tmp_path: Path) -> None:
    spool = Spool(tmp_path, max_bytes=10)
    assert spool.deliver("c-b-1", b"12345", "zstd").verdict == "kept"
    assert spool.deliver("c-b-2", b"12345", "zstd").verdict == "kept"
    outcome = spool.deliver("c-b-3", b"1", "zstd")
    assert outcome.verdict == "again"
    assert str(tmp_path) in outcome.reason
    assert sorted(file.name for file in tmp_path.iterdir()) == ["c-b-1.zst.msg", "c-b-2.zst.msg"]


@pytest.mark.parametrize("packed_by", ["the sender", "a merge"])
def test_the_last_message_has_room_of_its_own_in_a_full_spool(tmp_path: Path, packed_by: str) -> None:
    spool = Spool(tmp_path, max_bytes=10)
    assert spool.deliver("c-b-0", bytes(10), "zstd").verdict == "kept"
    talks = testing.message(seq=1, events=[testing.event(detail='"phase":"closed"')])
    assert spool.deliver("c-b-1", *compress(wire.encode(talks))).verdict == "again"
    (last,) = packed(testing.message(seq=2, phase="closed"), (), Counter())
    last = last if packed_by == "the sender" else repacked(last.opened(), ())
    assert spool.deliver(last.name, last.body, last.encoding).verdict == "kept"


def test_the_room_for_last_messages_is_bounded(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    (tmp_path / "c-b-0.zst.msg").touch()
    os.truncate(tmp_path / "c-b-0.zst.msg", MAX_BYTES)
    body, encoding = compress(wire.encode(testing.message(phase="closed")))
    assert spool.deliver("c-b-1", body, encoding).verdict == "again"


def test_a_folder_that_cannot_be_made_is_tried_again_later(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    spool = Spool(tmp_path / "data" / "spool")
    outcome = spool.deliver("c-b-1", b"body", "zstd")
    assert outcome.verdict == "again"
    assert "Error" in outcome.reason
    (tmp_path / "data").unlink()
    assert spool.deliver("c-b-1", b"body", "zstd").verdict == "kept"


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        assert Spool(tmp_path).deliver("c-b-1", b"body", "zstd").verdict == "again"
    assert list(tmp_path.iterdir()) == []
    assert Spool(tmp_path).deliver("c-b-1", b"body", "zstd").verdict == "kept"


def test_nobody_waits_for_a_draft_with_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _: "known")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "c-b-1.zst.msg.known.tmp").symlink_to(victim)
    assert Spool(tmp_path).deliver("c-b-1", b"body", "zstd").verdict == "again"
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("mode", [0o1777, 0o2770, 0o750], ids=oct)
def test_a_shared_spool_is_for_whom_its_folder_is(tmp_path: Path, mode: int) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    Spool(folder(shared), shared=True).deliver("c-b-1", b"body", "zstd")
    (file,) = folder(shared).iterdir()
    assert stat.S_IMODE(folder(shared).stat().st_mode) == mode
    assert stat.S_IMODE(file.stat().st_mode) == mode & 0o666


def test_a_shared_folder_that_we_make_is_ours_alone(tmp_path: Path) -> None:
    Spool(folder(tmp_path / "new"), shared=True).deliver("c-b-1", b"body", "zstd")
    for made in (tmp_path / "new", folder(tmp_path / "new")):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_each_scheduler_has_room_of_its_own_in_a_shared_folder(tmp_path: Path) -> None:
    one, other = (Spool(tmp_path / "spool", max_bytes=10, shared=True) for _ in range(2))
    verdicts = [one.deliver(f"c-a-{n}", b"12345", "zstd").verdict for n in range(3)]
    verdicts += [other.deliver(f"c-b-{n}", b"12345", "zstd").verdict for n in range(3)]
    assert verdicts == ["kept", "kept", "again"] * 2

"""A sender that writes into a folder nobody empties: nothing is lost while memory holds it, and the end is told."""

from pathlib import Path

from daskscope import testing, wire
from daskscope.compression import decompress
from daskscope.message_file import encoding_of
from daskscope.room import RECOUNT_S
from daskscope.sender import Sender
from daskscope.spool import Spool
from tests.plugin.sending import Clock


class Filling:
    """A sender whose thread never starts, and a folder with room for a few messages."""

    def __init__(self, folder: Path, max_bytes: int = 2_000) -> None:
        self.folder, self.clock = folder, Clock()
        spool = Spool(folder, max_bytes, shared=True, monotonic=self.clock)
        self.sender = Sender(spool, lambda _: None, monotonic=self.clock, jitter=lambda: 1.0)

    def put(self, seq: int, phase: str = "running") -> None:
        self.sender.put(testing.message(seq=seq, phase=phase, events=[testing.event(no=seq)]))
        self.sender._step()
        self.clock.now_s += 10

    def taken_out(self) -> list[wire.Message]:
        """By a server."""
        found: list[wire.Message] = []
        for path in sorted(self.folder.glob("*.msg")):
            found.append(wire.decode(decompress(path.read_bytes(), encoding_of(path.name))))
            path.unlink()
        return found

    def go_on(self, n_tries: int) -> None:
        for _ in range(n_tries):
            if (pause_s := self.sender._pause_s()) is None:
                break
            self.clock.now_s += max(pause_s, RECOUNT_S)
            self.sender._step()


def test_what_finds_the_folder_full_waits_until_somebody_empties_it(tmp_path: Path) -> None:
    it = Filling(tmp_path)
    for seq in range(20):
        it.put(seq)
    there = it.taken_out()
    assert 0 < len(there) < 20
    for _ in range(20):
        it.go_on(10)
        there += it.taken_out()
    assert sorted(message.seq for message in there) == list(range(20))
    assert it.sender.lost == {}


def test_the_end_is_told_in_a_folder_that_is_full(tmp_path: Path) -> None:
    it = Filling(tmp_path)
    for seq in range(20):
        it.put(seq)
    it.sender._pace.close()
    it.put(20, "closed")
    while not it.sender._pace.has_given_up:
        it.go_on(1)
    there = it.taken_out()
    assert (there[-1].seq, there[-1].phase) == (20, "closed")
    assert len(there) < 20

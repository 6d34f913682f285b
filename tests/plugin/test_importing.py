"""A folder's messages to a server: all of them once, whatever the server says and whoever writes meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from daskscope import testing, wire
from daskscope.compression import Encoding, compress, decompress
from daskscope.importing import TRIES, Import, Progress
from daskscope.message_file import SUFFIXES
from daskscope.outcome import Outcome, judge

TAKEN = Outcome("kept", "", wire.Reply(id=1, url="local/clusters/1"))


class Server:
    """A transport that answers as it is told, and remembers what it took."""

    def __init__(self, answer: Callable[[str, bytes], Outcome] = lambda *_: TAKEN) -> None:
        self.answer = answer
        self.tried: list[str] = []
        self.taken: list[wire.Message] = []
        self.own: set[bool] = set()

    def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
        self.tried.append(name)
        self.own.add(is_own)
        outcome = self.answer(name, body)
        if outcome.verdict == "kept":
            self.taken.append(wire.decode(decompress(body, encoding)))
        return outcome

    def close(self) -> None:
        """Nothing is held open."""


class Run:
    def __init__(self, server: Server) -> None:
        self.said: list[str] = []
        self.waited_s: list[float] = []
        self.shown: list[Progress] = []
        self.importing = Import(
            server, self.said.append, self.shown.append, sleep=self.waited_s.append, jitter=lambda: 1.0
        )

    def __call__(self, folder: Path) -> bool:
        return self.importing.run(folder)


def lay(folder: Path, *seqs: int, cluster: str = "a" * 32) -> list[wire.Message]:
    folder.mkdir(exist_ok=True, parents=True)
    messages = [testing.message(cluster=cluster, seq=seq) for seq in seqs]
    for message in messages:
        body, encoding = compress(wire.encode(message))
        name = f"{message.cluster}-{message.boot}-{message.seq:08d}{SUFFIXES[encoding]}"
        (folder / name).write_bytes(body)
    return messages


@pytest.mark.parametrize("place", ["", "spool"])
def test_all_that_lies_there_goes_in_order_and_is_removed(tmp_path: Path, place: str) -> None:
    messages = lay(tmp_path / place, *range(5))
    (tmp_path / place / "c-b-1.zst.msg.0.tmp").write_bytes(b"half a mess")
    server = Server()
    run = Run(server)
    assert run(tmp_path)
    assert server.taken == messages
    assert [path.name for path in tmp_path.rglob("*.*")] == ["c-b-1.zst.msg.0.tmp"], "what is under way stays"
    assert run.importing.progress == Progress(n_in=5)


def test_an_empty_folder_is_all_in(tmp_path: Path) -> None:
    assert Run(Server())(tmp_path)


def test_more_than_are_held_at_a_time_all_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.importing.BATCH", 7)
    messages = lay(tmp_path, *range(30))
    server = Server()
    assert Run(server)(tmp_path)
    assert server.taken == messages


def test_what_comes_meanwhile_does_not_keep_it_for_ever(tmp_path: Path) -> None:
    lay(tmp_path, 0)

    def writes_on(name: str, _: bytes) -> Outcome:
        lay(tmp_path, len(server.taken) + 1)
        return TAKEN

    server = Server(writes_on)
    assert Run(server)(tmp_path)
    assert len(list(tmp_path.glob("*.msg"))) == 1, "the next run takes it"


def test_a_server_in_trouble_is_waited_for_as_it_asks_and_no_longer_than_it_makes_sense(tmp_path: Path) -> None:
    lay(tmp_path, 0, 1)
    answers = [Outcome("again", "HTTP 503", wait_s=300.0), Outcome("again", "HTTP 503"), TAKEN]
    run = Run(Server(lambda *_: answers.pop(0) if answers else Outcome("again", "HTTP 500")))
    assert not run(tmp_path)
    assert run.waited_s == [300.0, 4.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert len(list(tmp_path.glob("*.msg"))) == 1
    assert run.importing.progress == Progress(n_in=1, n_left=1)
    assert "HTTP 500" in run.said[-1]
    assert Run(Server())(tmp_path), "and another run goes on where it stopped"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [200, 301, 401, 404, 405])
def test_a_server_that_is_none_of_ours_loses_nothing(tmp_path: Path, status: int) -> None:
    lay(tmp_path, 0, 1, 2)
    server = Server(lambda *_: judge(status, None, b"<html>"))
    run = Run(server)
    assert not run(tmp_path)
    assert (len(set(server.tried)), len(list(tmp_path.glob("*.msg")))) == (1, 3)
    assert run.importing.progress == Progress(n_left=3)
    assert f"HTTP {status}" in run.said[-1]


def test_no_message_says_when_it_was_sent_for_its_clock_is_another_machine_s(tmp_path: Path) -> None:
    lay(tmp_path, 0)
    server = Server()
    assert Run(server)(tmp_path)
    assert server.own == {False}


@pytest.mark.parametrize("status", [400, 410, 415, 422])
def test_what_is_refused_is_set_aside_and_the_rest_goes_until_it_is_asked_again(tmp_path: Path, status: int) -> None:
    first, second = lay(tmp_path, 0, 1)
    refused = f"{first.cluster}-{first.boot}-00000000"
    reason = b'{"error": {"message": "no such field"}}'
    server = Server(lambda name, _: judge(status, None, reason) if name == refused else TAKEN)
    run = Run(server)
    assert not run(tmp_path)
    assert server.taken == [second]
    assert [path.name for path in tmp_path.iterdir()] == [f"{refused}.zst.bad"]
    assert f"HTTP {status}: no such field" in run.said[0]
    assert Run(server)(tmp_path), "once said, it is no message any more"
    mended = Server()
    assert Run(mended).importing.run(tmp_path, again=True)
    assert mended.taken == [first]
    assert list(tmp_path.iterdir()) == []


def test_other_files_are_none_of_ours_whatever_is_asked_again(tmp_path: Path) -> None:
    (tmp_path / "notes.bad").write_text("mine")
    assert Run(Server()).importing.run(tmp_path, again=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.bad"]


def test_what_is_too_much_for_one_body_goes_in_parts_the_message_last(tmp_path: Path) -> None:
    (message,) = lay(tmp_path / "small", 0)
    message.events = [testing.event(topic=os.urandom(200).hex()) for _ in range(40)]
    body, encoding = compress(wire.encode(message))
    (tmp_path / f"{message.cluster}-{message.boot}-00000000{SUFFIXES[encoding]}").write_bytes(body)
    limit = len(body) // 2
    server = Server(lambda _, body: Outcome("split", "HTTP 413: no") if len(body) > limit else TAKEN)
    assert Run(server)(tmp_path)
    assert [part.part == 0 for part in server.taken] == [False] * (len(server.taken) - 1) + [True]
    events = [event for part in server.taken for event in part.events]
    assert sorted(event.topic for event in events) == sorted(event.topic for event in message.events)
    assert list(tmp_path.glob("*.msg")) == []


def test_what_cannot_be_divided_any_more_is_left_out_and_the_rest_goes(tmp_path: Path) -> None:
    """A single event that is too much: its file stays for a person to look at."""
    (message,) = lay(tmp_path / "small", 0)
    message.events = [testing.event(no=n, topic=os.urandom(200).hex()) for n in range(10)]
    message.events[4].topic = huge = os.urandom(4000).hex()
    body, encoding = compress(wire.encode(message))
    (tmp_path / f"{message.cluster}-{message.boot}-00000000{SUFFIXES[encoding]}").write_bytes(body)
    server = Server(lambda _, body: Outcome("split", "HTTP 413: no") if len(body) > 3000 else TAKEN)
    run = Run(server)
    assert not run(tmp_path)
    assert sorted(event.no for part in server.taken for event in part.events) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert not any(huge in event.topic for part in server.taken for event in part.events)
    assert server.taken[-1].part == 0
    assert [path.suffix for path in tmp_path.glob("*.*")] == [".bad"]
    assert "of a part of it alone: HTTP 413" in run.said[-1]


def test_what_cannot_be_divided_any_more_is_set_aside(tmp_path: Path) -> None:
    lay(tmp_path, 0)
    server = Server(lambda *_: Outcome("split", "HTTP 413: no"))
    assert not Run(server)(tmp_path)
    assert len(server.tried) == 1
    assert [path.suffix for path in tmp_path.iterdir()] == [".bad"]


def test_links_pipes_and_folders_stay_and_keep_nothing_back(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"not for you")
    (tmp_path / "0.zst.msg").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "1.zst.msg")
    (tmp_path / "2.gz.msg").mkdir()
    messages = lay(tmp_path, 0)
    server = Server()
    run = Run(server)
    assert not run(tmp_path)
    assert server.taken == messages
    assert run.importing.progress == Progress(n_in=1, n_left=3)
    assert len(run.said) == 3


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "0.zst.msg").touch()
    os.truncate(tmp_path / "0.zst.msg", 1 << 40)
    server = Server()
    assert not Run(server)(tmp_path)
    assert server.tried == []
    assert [path.name for path in tmp_path.iterdir()] == ["0.zst.bad"]


def test_what_cannot_be_removed_is_in_all_the_same_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a folder with the sticky bit, of files of somebody else's."""
    lay(tmp_path, 0, 1, 2)

    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr("daskscope.importing.BATCH", 2)
    server = Server()
    run = Run(server)
    assert run(tmp_path)
    assert len(server.tried) == 3, "each once"
    assert run.importing.progress == Progress(n_in=3, n_unremovable=3)
    assert len(run.said) == 1


def test_two_at_once_lose_nothing(tmp_path: Path) -> None:
    messages = lay(tmp_path, *range(10))
    other = Server()

    def while_another_takes_all(*_: object) -> Outcome:
        if not other.taken:
            assert Run(other)(tmp_path)
        return TAKEN

    server = Server(while_another_takes_all)
    assert Run(server)(tmp_path)
    assert other.taken == messages
    assert server.taken == messages[:1]


def test_so_many_tries_are_made_and_no_more(tmp_path: Path) -> None:
    lay(tmp_path, 0)
    server = Server(lambda *_: Outcome("again", "refused"))
    assert not Run(server)(tmp_path)
    assert len(server.tried) == TRIES

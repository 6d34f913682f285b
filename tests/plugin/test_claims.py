"""Who delivers whose messages: held while a process lives, with locks and without."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from daskscope import claims
from daskscope.claims import STALE_S, Claims

HOLD = """
import sys
from pathlib import Path
from daskscope.claims import Claims
held = Claims(Path(sys.argv[1]))
assert held.take("other")
print("held", flush=True)
sys.stdin.read()
"""

FORK = """
import os, sys
from pathlib import Path
from daskscope.claims import Claims
held = Claims(Path(sys.argv[1]))
assert held.take("other")
if os.fork() == 0:
    print("forked", flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=["locks", "no locks", "no fcntl"])
def file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "no locks":

        def unknown(*_: object) -> None:
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr("fcntl.flock", unknown)
    if request.param == "no fcntl":
        monkeypatch.setattr(claims, "fcntl", None)
    return request.param


def age(path: Path, by_s: float) -> None:
    at = path.stat().st_mtime - by_s
    os.utime(path, (at, at))


def test_what_one_holds_another_does_not_get_until_it_is_released(tmp_path: Path, file_system: str) -> None:
    one, other = Claims(tmp_path), Claims(tmp_path)
    assert one.take("a")
    assert one.take("a")
    assert other.take("b")
    assert not other.take("a")
    one.release("a")
    assert other.take("a")
    assert other.owners == {"a", "b"}
    other.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file_system", ["no locks", "no fcntl"], indirect=True)
@pytest.mark.parametrize("by_s", [STALE_S + 10, STALE_S - 10])
def test_without_locks_what_was_not_touched_is_nobody_s(tmp_path: Path, file_system: str, by_s: float) -> None:
    dead, mine = Claims(tmp_path), Claims(tmp_path)
    assert dead.take("a")
    assert mine.take("b")
    age(tmp_path / "a.lock", by_s)
    assert mine.take("a") is (by_s > STALE_S)
    if by_s > STALE_S:
        third = Claims(tmp_path)
        assert third.take("c")
        assert not third.take("a"), "who took it over has touched it"


@pytest.mark.parametrize("file_system", ["no locks", "no fcntl"], indirect=True)
def test_whoever_lives_says_so(tmp_path: Path, file_system: str) -> None:
    alive, other = Claims(tmp_path), Claims(tmp_path)
    assert alive.take("a")
    assert other.take("b")
    age(tmp_path / "a.lock", STALE_S + 10)
    alive.touch()
    assert not other.take("a")


def test_what_was_taken_away_meanwhile_is_held_no_more(tmp_path: Path, file_system: str) -> None:
    mine = Claims(tmp_path)
    assert mine.take("a")
    (tmp_path / "a.lock").unlink()
    mine.touch()
    assert mine.owners == frozenset()
    assert mine.take("a"), "and can be taken again"
    mine.close()


@pytest.mark.parametrize("end", [subprocess.Popen.kill, subprocess.Popen.terminate], ids=["killed", "ended"])
def test_the_lock_of_a_process_goes_however_it_ends(
    tmp_path: Path, end: Callable[[subprocess.Popen[bytes]], None]
) -> None:
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout
    assert child.stdout.readline() == b"held\n"
    mine = Claims(tmp_path)
    assert not mine.take("other")
    end(child)
    child.communicate()
    assert mine.take("other")
    mine.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_holds_nothing_after_its_parent_and_takes_nothing_from_it(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", FORK, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin
    assert child.stdout
    assert child.stdout.readline() == b"forked\n"
    mine = Claims(tmp_path)
    assert not mine.take("other"), "the parent has it still"
    child.kill()
    child.wait(60)
    assert mine.take("other"), "while the forked child lives on"
    child.stdin.close()
    child.stdout.close()
    mine.close()


def test_a_lock_file_that_went_while_it_was_waited_for_is_no_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another had it, and takes its file away between our opening and our locking it."""
    (tmp_path / "a.lock").touch()
    really = claims._lock

    def late(descriptor: int) -> bool:
        (tmp_path / "a.lock").unlink()
        return really(descriptor)

    monkeypatch.setattr(claims, "_lock", late)
    assert not Claims(tmp_path).take("a")

"""What only the files of the embedded world have: modes, leftovers, a failing file system, a kill in the middle."""

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from daskscope_lambdas.adapters.local import DiskObjects, DiskVault
from daskscope_lambdas.adapters.local.mapping import mapped
from daskscope_lambdas.ports import Missing, StoreError, Taken
from daskscope_lambdas.testing import seal, unseal
from daskscope_lambdas.wiring import Adapters


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_all_is_for_the_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        DiskObjects(tmp_path / "data" / "lake").put_new("a/b/c", b"x")
        seal(DiskVault(tmp_path / "data" / "keys"), "acme", b"x", "c")
    finally:
        os.umask(before)
    every = [tmp_path / "data", *(tmp_path / "data").rglob("*")]
    assert {mode(path) for path in every if path.is_dir()} == {0o700}
    assert {mode(path) for path in every if path.is_file()} == {0o600}
    assert sum(path.is_file() for path in every) == 2


def test_a_registry_is_for_the_owner_alone_with_its_log(adapters: Adapters, tmp_path: Path) -> None:
    adapters.queue.send("x")
    files = sorted((tmp_path / "data").glob("registry*"))
    assert [path.name for path in files] == ["registry.sqlite", "registry.sqlite-shm", "registry.sqlite-wal"]
    assert {mode(path) for path in files} == {0o600}


@pytest.mark.parametrize("account", ["..", "../x", "/etc/passwd", "a/../../b", "a\0"])
def test_no_account_reaches_out_of_the_keys(tmp_path: Path, account: str) -> None:
    vault = DiskVault(tmp_path / "keys")
    if account == "..":
        seal(vault, account, b"x", "c")  # "...key" is a name like another
    else:
        with pytest.raises(ValueError, match="no object key"):
            seal(vault, account, b"x", "c")
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and path.parent != tmp_path / "keys"]
    assert outside == []


def test_a_link_out_of_the_root_is_not_listed(tmp_path: Path) -> None:
    store = DiskObjects(tmp_path / "lake")
    store.put_new("a/b", b"x")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_bytes(b"s")
    (tmp_path / "lake" / "link").symlink_to(tmp_path / "elsewhere")
    assert "link/secret" not in list(store.list(""))


def test_where_a_key_stands_no_folder_can_be_and_the_other_way_round(tmp_path: Path) -> None:
    store = DiskObjects(tmp_path)
    store.put_new("a", b"x")
    store.put_new("b/c", b"y")
    for key in ("a/b", "b"):
        with pytest.raises(StoreError) as caught:
            store.put_new(key, b"z")
        assert type(caught.value) is StoreError
        assert isinstance(caught.value.__cause__, FileExistsError)
        with pytest.raises(Missing):
            store.get(key)
    assert list(store.list("")) == ["a", "b/c"]


def test_drafts_are_never_listed_and_old_ones_go(tmp_path: Path) -> None:
    DiskObjects(tmp_path)
    drafts = tmp_path / "~drafts"
    (drafts / "young").write_bytes(b"somebody writes")
    (drafts / "old").write_bytes(b"its writer was killed")
    os.utime(drafts / "old", (1e9, 1e9))
    store = DiskObjects(tmp_path)
    assert [path.name for path in drafts.iterdir()] == ["young"]
    assert list(store.list("")) == []


def test_a_failed_write_leaves_neither_key_nor_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DiskObjects(tmp_path)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left") as caught:
        store.put_new("a/b", b"x")
    assert isinstance(caught.value.__cause__, OSError)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def every_class(root: type[BaseException]) -> list[type[BaseException]]:
    return [root, *(c for child in root.__subclasses__() for c in every_class(child) if child.__module__ == "builtins")]


@pytest.mark.parametrize("kind", every_class(OSError), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("call", ["put_new", "get", "list", "delete"])
def test_every_oserror_becomes_a_ports_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, kind: type[OSError]
) -> None:
    store = DiskObjects(tmp_path)
    store.put_new("a/b", b"x")
    error = kind(errno.EIO, "broken")

    def fail(*_: object, **__: object) -> None:
        raise error

    for owner, name in ((os, "link"), (os, "scandir"), (Path, "read_bytes"), (Path, "unlink")):
        monkeypatch.setattr(owner, name, fail)
    acts = {
        "put_new": lambda: store.put_new("c", b""),
        "get": lambda: store.get("a/b"),
        "list": lambda: list(store.list("a")),
        "delete": lambda: store.delete("a/b"),
    }
    if call in ("list", "delete") and issubclass(kind, (FileNotFoundError, NotADirectoryError)):
        acts[call]()  # it went meanwhile: nothing to tell
        return
    with pytest.raises(StoreError) as caught:
        acts[call]()
    if call != "put_new":  # there the failing unlink of the draft comes on top
        assert caught.value.__cause__ is error


def test_only_a_link_is_taken() -> None:
    with pytest.raises(StoreError) as caught, mapped("x"):
        raise FileExistsError(errno.EEXIST, "exists")
    assert not isinstance(caught.value, Taken)


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 31, b"x" * 33])
def test_a_damaged_key_file_is_named_and_not_replaced(tmp_path: Path, content: bytes) -> None:
    vault = DiskVault(tmp_path)
    sealed = seal(vault, "acme", b"x", "c")
    (tmp_path / "acme.key").write_bytes(content)
    for call in (lambda: seal(vault, "acme", b"y", "c"), lambda: unseal(vault, "acme", sealed, "c")):
        with pytest.raises(StoreError, match="key of account acme"):
            call()
    assert (tmp_path / "acme.key").read_bytes() == content


WRITER = """
import sys
from pathlib import Path
from daskscope_lambdas.adapters.local import DiskObjects
store, n = DiskObjects(Path(sys.argv[1])), 0
while True:
    store.put_new(f"a/{n:06}", b"%06d" % n * 10_000)
    n += 1
    print(n, flush=True)
"""


def test_what_was_kept_before_a_kill_is_whole(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=child_environment()
    )
    assert writer.stdout is not None
    with writer:
        for line in writer.stdout:
            if int(line) == 20:
                writer.send_signal(signal.SIGKILL)
        told = writer.wait()
    assert told == -signal.SIGKILL
    store = DiskObjects(tmp_path)
    kept = list(store.list("a/"))
    assert len(kept) >= 20
    assert all(store.get(key) == key[2:].encode() * 10_000 for key in kept)


def child_environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}

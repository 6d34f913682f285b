"""ObjectStore on a folder: an object is a file, its key the path below the root."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from daskscope_lambdas.adapters.keys import check_key, check_prefix
from daskscope_lambdas.adapters.local.mapping import mapped
from daskscope_lambdas.ports import Missing, StoreError, Taken

_DRAFTS = "~drafts"
"""Where files are written before they get their key; no key can hold a `~`."""
_STALE_S = 3600.0


class DiskObjects:
    """Objects below `root`, which is made (mode 0700) if it is not there. Files are readable by their owner alone."""

    def __init__(self, root: Path) -> None:
        self._root = root
        with mapped(root):
            make_folders(root / _DRAFTS)
            # What a killed process left; a key among it would outlive Vault.forget.
            for draft in (root / _DRAFTS).iterdir():
                with suppress(FileNotFoundError):
                    if draft.stat().st_mtime < time.time() - _STALE_S:
                        draft.unlink()

    def put_new(self, key: str, body: bytes) -> None:
        """Written aside, then linked to its name: a link fails if the name is taken, and nobody sees half a file."""
        check_key(key)
        path = self._root / key
        with mapped(path):
            handle, draft = tempfile.mkstemp(dir=self._root / _DRAFTS)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(body)
                    file.flush()
                    os.fsync(file.fileno())
                self._link(draft, path)
            finally:
                Path(draft).unlink()

    def _link(self, draft: str, path: Path) -> None:
        try:
            make_folders(path.parent)
        except FileExistsError as error:
            raise StoreError(f"{path}: another key stands where this one needs a folder.") from error
        try:
            os.link(draft, path)
        except FileExistsError as error:
            if path.is_dir():
                raise StoreError(f"{path}: is a folder of other keys.") from error
            raise Taken(f"{path}: exists already.") from error
        sync_folder(path.parent)

    def get(self, key: str) -> bytes:
        check_key(key)
        path = self._root / key
        with mapped(path):
            try:
                return path.read_bytes()
            except IsADirectoryError as error:
                raise Missing(f"{path}: not there.") from error

    def list(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        folder, slash, start = prefix.rpartition("/")
        return self._walk(folder + slash, start)

    def _walk(self, folder: str, start: str) -> Iterator[str]:
        """Keys below `folder` (empty, or with its slash) whose next segment begins with `start`."""
        path = self._root / folder
        try:
            with mapped(path), os.scandir(path) as entries:
                # A folder sorts with its slash, for in key order "a-b" < "a/b" < "a0".
                names = sorted(
                    entry.name + "/" * entry.is_dir(follow_symlinks=False)
                    for entry in entries
                    if entry.name.startswith(start) and entry.name != _DRAFTS
                )
        except Missing:
            return
        for name in names:
            if name.endswith("/"):
                yield from self._walk(folder + name, "")
            else:
                yield folder + name

    def delete(self, key: str) -> None:
        check_key(key)
        path = self._root / key
        with suppress(Missing), mapped(path):
            if not path.is_dir():
                path.unlink()
                sync_folder(path.parent)


def make_folders(path: Path) -> None:
    """Make `path` and what it lies in, mode 0700, so that they outlive a power cut."""
    if path.is_dir():
        return
    make_folders(path.parent)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""A file system that counts what is read through it, listings apart."""

from __future__ import annotations

import io
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.fs as pafs

from daskscope_query import footers, listing, unpacked


class Reads:
    """How many reads there were, each a request to a bucket, and of how many bytes."""

    def __init__(self) -> None:
        self.n = self.n_bytes = 0
        self._lock = Lock()

    def add(self, n_bytes: int) -> None:
        with self._lock:
            self.n += 1
            self.n_bytes += n_bytes


class _File(io.BytesIO):
    """A whole file at hand, so that none is left open; pyarrow seeks and reads."""

    def __init__(self, path: str, reads: Reads) -> None:
        super().__init__(Path(path).read_bytes())
        self._reads = reads

    def read(self, size: int | None = -1) -> bytes:
        body = super().read(size)
        if body:
            self._reads.add(len(body))
        return body


class _Handler(pafs.FileSystemHandler):  # pyright: ignore[reportUntypedBaseClass]  pyarrow has no types for it
    """Reads only."""

    def __init__(self, reads: Reads) -> None:
        self._local, self._reads = pafs.LocalFileSystem(), reads

    def get_type_name(self) -> str:
        return "counting"

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return self._local.get_file_info(paths)

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        return self._local.get_file_info(selector)

    def normalize_path(self, path: str) -> str:
        return self._local.normalize_path(path)

    def open_input_file(self, path: str) -> pa.PythonFile:
        return pa.PythonFile(_File(path, self._reads), mode="r")

    open_input_stream = open_input_file

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def create_dir(self, *_: Any) -> None:
        raise NotImplementedError("It only reads.")

    delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = create_dir
    move = copy_file = open_output_stream = open_append_stream = create_dir


@contextmanager
def counted(root: Path) -> Generator[Reads]:
    """What lakes at `root` read meanwhile, by a process that knows nothing of them yet."""
    reads = Reads()
    system = pafs.PyFileSystem(_Handler(reads))
    _forget()
    with patch.object(listing, "_opened", lambda _root, _pid: (system, str(root))):
        yield reads
    _forget()


def _forget() -> None:
    footers.forget()
    unpacked.forget()

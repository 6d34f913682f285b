"""What no server takes stays in its folder as `*.bad`, for a person to look at: so much of it, and no more."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from daskscope.message_file import BAD, set_aside

MAX_FILES = 1000
MAX_BYTES = 16 << 20
RECOUNT_S = 60.0
"""Somebody may have looked at it, and removed it."""


class Aside:
    """In one folder. Methods raise OSError."""

    def __init__(self, directory: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._directory, self._monotonic = directory, monotonic
        self._n_files = self._n_bytes = 0
        self._recount_at = 0.0

    def put(self, file_name: str) -> Path | None:
        """Where the file is now; None, and it stays where it is, if there is no room."""
        path = self._directory / file_name
        n_bytes = path.lstat().st_size
        if self._monotonic() >= self._recount_at:
            self._count()
            self._recount_at = self._monotonic() + RECOUNT_S
        if self._n_files >= MAX_FILES or self._n_bytes + n_bytes > MAX_BYTES:
            return None
        now_at = set_aside(path)
        self._n_files += 1
        self._n_bytes += n_bytes
        return now_at

    def _count(self) -> None:
        self._n_files = self._n_bytes = 0
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.name.endswith(BAD):
                    with suppress(FileNotFoundError):  # somebody removes it just now
                        self._n_bytes += entry.stat(follow_symlinks=False).st_size
                        self._n_files += 1

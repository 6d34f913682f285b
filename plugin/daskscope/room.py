"""How much a folder of messages holds, without looking through it for each of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from daskscope.message_file import BAD, DRAFT

MAX_BYTES = 64 << 20
RECOUNT = 100
"""The folder is looked through after so many messages: others write into it too, and a server takes out of it. A look
costs 3 us a file."""
NEARLY_FULL = 0.9
"""From this part on it is looked through ten times as often."""
RECOUNT_S, MOST_RECOUNTING = 10.0, 0.01
"""A full one again after so long, for somebody may empty it, and for no more than this part of the time."""
DRAFT_S = 3600.0
"""A draft so much older than the youngest file was left by a process that ended: it goes."""


class Room:
    """At most `max_bytes` in `directory`, or of what is called `prefix...` there."""

    def __init__(
        self,
        directory: Path,
        max_bytes: int = MAX_BYTES,
        prefix: str = "",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory, self.max_bytes, self._prefix, self._monotonic = directory, max_bytes, prefix, monotonic
        self._n_bytes = 0
        """As counted last, and what came and went since."""
        self._n_to_recount = 0
        self._recount_at = 0.0

    def has(self, n_bytes: int, beyond: int = 0) -> bool:
        """Whether so much fits, in so much more than `max_bytes`. Counts anew every so often, and not for each message.
        Raises OSError."""
        limit = self.max_bytes + beyond
        self._n_to_recount -= 1
        if self._n_to_recount <= 0 or (self._n_bytes + n_bytes > limit and self._monotonic() >= self._recount_at):
            began_s = self._monotonic()
            self._n_bytes = self._count()
            now_s = self._monotonic()
            self._recount_at = now_s + max(RECOUNT_S, (now_s - began_s) / MOST_RECOUNTING)
            is_near = NEARLY_FULL * limit < self._n_bytes + n_bytes <= limit
            self._n_to_recount = RECOUNT // 10 if is_near else RECOUNT
        return self._n_bytes + n_bytes <= limit

    def add(self, n_bytes: int) -> None:
        """Less than 0 for what went."""
        self._n_bytes = max(self._n_bytes + n_bytes, 0)

    def _count(self) -> int:
        n_bytes, drafts = 0, list[tuple[float, str]]()
        youngest_at = self._directory.stat().st_mtime
        with os.scandir(self._directory) as entries:
            for entry in entries:
                is_draft = entry.name.endswith(DRAFT)
                # What was set aside is no message any more: it shall not take the place of one.
                if entry.name.endswith(BAD) or not (is_draft or entry.name.startswith(self._prefix)):
                    continue
                with suppress(FileNotFoundError):  # somebody takes them out meanwhile
                    found = entry.stat(follow_symlinks=False)
                    youngest_at = max(youngest_at, found.st_mtime)
                    n_bytes += found.st_size
                    if is_draft:
                        drafts.append((found.st_mtime, entry.name))
        for made_at, name in drafts:
            # By the file system's own clock, which need not be this machine's.
            if youngest_at - made_at > DRAFT_S:
                with suppress(OSError):
                    (self._directory / name).unlink()
        return n_bytes

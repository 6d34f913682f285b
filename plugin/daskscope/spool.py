"""Messages kept on disk where no server was found: `daskscope serve` of the same user takes them in.

One file a message, `<cluster>-<boot>-<seq>.zst.msg` (or `.gz.msg`): the body as it would have been posted. A file
appears under its name only when it is whole. Files are readable by their owner alone.
"""

from __future__ import annotations

import os
from pathlib import Path

from daskscope.agent.texts import told
from daskscope.compression import Encoding
from daskscope.outcome import Outcome

MAX_BYTES = 64 << 20
"""A full spool takes no more: what is new is dropped and counted, for the start of a story is worth more than its
middle."""
RECOUNT = 100
"""The folder is looked through after so many messages: others write into it too, and a server takes out of it. A look
costs 3 us a file."""
NEARLY_FULL = 0.9
"""From this part on it is looked through ten times as often."""
SUFFIXES: dict[Encoding, str] = {"zstd": ".zst.msg", "gzip": ".gz.msg"}


def folder(data: str) -> Path:
    """Where the spool of a user lies, under their data folder."""
    return Path(data) / "spool"


class Spool:
    """The transport that writes files instead of posting."""

    def __init__(self, directory: Path, max_bytes: int = MAX_BYTES) -> None:
        self._directory, self._max_bytes = directory, max_bytes
        self._n_bytes = 0
        """In the folder: as counted last, and what was written since."""
        self._n_to_recount = 0

    def deliver(self, name: str, body: bytes, encoding: Encoding) -> Outcome:
        if encoding not in SUFFIXES:
            return Outcome("plain", f"a file in {encoding} is not for every server")
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._has_room(len(body)):
                return Outcome("refused", f"the spool in {self._directory} holds {self._max_bytes >> 20} MiB already")
            final = self._directory / f"{name}{SUFFIXES[encoding]}"
            draft = final.with_suffix(".tmp")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(body)
            draft.rename(final)
            self._n_bytes += len(body)
        except OSError as error:
            return Outcome("again", told(error))
        return Outcome("kept", "")

    def close(self) -> None:
        """Nothing is held open."""

    def _has_room(self, n_bytes: int) -> bool:
        """Counts anew every so often, and not for each message: a full spool is asked as often as one with room."""
        self._n_to_recount -= 1
        if self._n_to_recount <= 0:
            self._n_bytes = self._size()
            is_near = NEARLY_FULL * self._max_bytes < self._n_bytes + n_bytes <= self._max_bytes
            self._n_to_recount = RECOUNT // 10 if is_near else RECOUNT
        return self._n_bytes + n_bytes <= self._max_bytes

    def _size(self) -> int:
        with os.scandir(self._directory) as entries:
            # What a server set aside as *.bad is no message any more: it shall not take the place of one.
            return sum(entry.stat().st_size for entry in entries if not entry.name.endswith(".bad"))

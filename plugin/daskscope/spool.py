"""Messages kept in files where no server is asked: `daskscope serve` and `daskscope import` take them in.

The user's own spool is readable by its owner alone. One in a folder that somebody shares
(`server: file:///shared/folder`) is for whom that folder is: several users and hosts write into it at once.
"""

from __future__ import annotations

import stat
from pathlib import Path

from daskscope.agent.texts import told
from daskscope.compression import Encoding
from daskscope.discovery import shared_folder
from daskscope.message_file import SUFFIXES, owner_of, write
from daskscope.outcome import Outcome
from daskscope.room import MAX_BYTES, Room
from daskscope.settings import Settings


def folder(data: str | Path) -> Path:
    """Where the spool lies: under the user's data folder, or under a shared one."""
    return Path(data) / "spool"


def spool_of(settings: Settings) -> Path | None:
    """The folder that holds messages in place of a server; None where there is a server."""
    if settings.server is None:
        return folder(settings.data)
    shared = shared_folder(settings.server)
    return None if shared is None else folder(shared)


class Spool:
    """The transport that writes files instead of posting. A full one takes no more: what is new is dropped and counted,
    for the start of a story is worth more than its middle."""

    def __init__(self, directory: Path, max_bytes: int = MAX_BYTES, *, shared: bool = False) -> None:
        """`shared`: files are for whom the folder is, and the bound is for each scheduler."""
        self._directory, self._max_bytes, self._shared = directory, max_bytes, shared
        self._room: Room | None = None
        self._file_mode = 0o600

    def deliver(self, name: str, body: bytes, encoding: Encoding) -> Outcome:
        if encoding not in SUFFIXES:
            return Outcome("plain", f"a file in {encoding} is not for every server")
        try:
            self._prepare()
            if self._room is None:
                self._room = Room(self._directory, self._max_bytes, owner_of(name) if self._shared else "")
            if not self._room.has(len(body)):
                return Outcome("refused", f"the spool in {self._directory} holds {self._max_bytes >> 20} MiB already")
            write(self._directory / f"{name}{SUFFIXES[encoding]}", body, self._file_mode)
            self._room.add(len(body))
        except OSError as error:
            return Outcome("again", told(error))
        return Outcome("kept", "")

    def close(self) -> None:
        """Nothing is held open."""

    def _prepare(self) -> None:
        """Have the folder, for whom the one around it is. Raises OSError."""
        self._directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._directory.mkdir(mode=0o700)
        except FileExistsError:
            pass
        else:
            if self._shared:  # with its sticky and set-group bits
                self._directory.chmod(stat.S_IMODE(self._directory.parent.stat().st_mode))
        if self._shared:
            self._file_mode = stat.S_IMODE(self._directory.stat().st_mode) & 0o666

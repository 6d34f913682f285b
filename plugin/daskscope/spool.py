"""Messages kept in files where no server is asked: `daskscope serve` and `daskscope import` take them in.

The user's own spool is readable by its owner alone. One in a folder that somebody shares
(`server: file:///shared/folder`) is for whom that folder is: several users and hosts write into it at once.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable
from pathlib import Path

from daskscope.agent.texts import told
from daskscope.compression import Encoding, decompress
from daskscope.discovery import shared_folder
from daskscope.errors import BadMessage
from daskscope.message_file import SUFFIXES, owner_of, write
from daskscope.outcome import Outcome
from daskscope.room import MAX_BYTES, Room
from daskscope.settings import Settings

RESERVE_BYTES = 1 << 20
"""Of the room in a folder: for messages that tell of the end."""
_CLOSED = b'"phase":"closed"'


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
    """The transport that writes files instead of posting. A full one takes no more until somebody makes room, but for
    the last message of a scheduler: what comes waits in the sender, where it grows less detailed."""

    def __init__(
        self,
        directory: Path,
        max_bytes: int = MAX_BYTES - RESERVE_BYTES,
        *,
        shared: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`shared`: files are for whom the folder is, and the bound is for each scheduler."""
        self._directory, self._max_bytes, self._shared, self._monotonic = directory, max_bytes, shared, monotonic
        self._room: Room | None = None
        self._file_mode = 0o600

    def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
        del is_own  # a file keeps no header
        if encoding not in SUFFIXES:
            return Outcome("plain", f"a file in {encoding} is not for every server")
        try:
            self._prepare()
            if self._room is None:
                prefix = owner_of(name) if self._shared else ""
                self._room = Room(self._directory, self._max_bytes, prefix, self._monotonic)
            if not (self._room.has(len(body)) or self._has_reserve(self._room, body, encoding)):
                return Outcome("again", f"the spool in {self._directory} is full")
            write(self._directory / f"{name}{SUFFIXES[encoding]}", body, self._file_mode)
            self._room.add(len(body))
        except OSError as error:
            return Outcome("again", told(error))
        return Outcome("kept", "")

    def _has_reserve(self, room: Room, body: bytes, encoding: Encoding) -> bool:
        """Raises OSError."""
        return _is_last(body, encoding) and room.has(len(body), RESERVE_BYTES)

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


def _is_last(body: bytes, encoding: Encoding) -> bool:
    """Whether it tells of the end. Within a text of a message the quotes would not stand alone."""
    try:
        return _CLOSED in decompress(body, encoding)
    except (BadMessage, ImportError):
        return False

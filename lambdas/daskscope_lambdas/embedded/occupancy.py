"""Which server has a data folder: one, for two would seal its days and hand out its numbers side by side.

It holds a lock on `serving.json` for as long as it lives, and the system lets go of it however it ends. Where the file
system knows no locks, it is told of in the log, and nobody is kept out.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from daskscope.discovery import lives
from daskscope.errors import SettingsError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

logger = logging.getLogger("daskscope.serve")

FILE = "serving.json"
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupant:
    """A server, as it says itself. `address` is where people reach it, without a slash at its end."""

    pid: int
    address: str


class Occupancy:
    """Of a server that has the folder."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def tell(self, address: str) -> None:
        """Where people reach this process from now on."""
        _empty(self._file)
        json.dump(asdict(Occupant(pid=os.getpid(), address=address)), self._file)
        self._file.flush()


@contextmanager
def occupied(folder: Path) -> Generator[Occupancy]:
    """Have the folder alone, or raise SettingsError that says who has it."""
    # Inherited by no process that this one starts: those may live a moment longer.
    with os.fdopen(os.open(folder / FILE, _FLAGS, 0o600), "r+", encoding="utf-8") as file:
        try:
            _lock(file)
        except BlockingIOError as error:
            other = _read(file.read())
            who = f"process {other.pid} at {other.address}" if other else "another `daskscope serve`"
            allowed = f"a folder that no server has, and {who} has this one: use that, or stop it, or take another"
            raise SettingsError("--data", str(folder), allowed) from error
        _empty(file)
        try:
            yield Occupancy(file)
        finally:
            _empty(file)


def occupant(folder: Path) -> Occupant | None:
    """The server that has the folder, as far as this user may know and this machine can tell."""
    with suppress(OSError, UnicodeDecodeError):
        found = _read((folder / FILE).read_text(encoding="utf-8"))
        return found if found and lives(found.pid) else None
    return None


def _lock(file: IO[str]) -> None:
    """Raises BlockingIOError if another holds it."""
    why = "this system has no such locks"
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            raise
        except OSError as error:
            why = error.strerror
    logger.warning("%s cannot be locked (%s): see to it that no other server has its folder.", file.name, why)


def _empty(file: IO[str]) -> None:
    file.seek(0)
    file.truncate()


def _read(text: str) -> Occupant | None:
    """None while a server starts, or after it ended."""
    try:
        told = json.loads(text)
        return Occupant(pid=int(told["pid"]), address=str(told["address"]))
    except (ValueError, KeyError, TypeError):
        return None

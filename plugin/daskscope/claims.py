"""Which scheduler delivers whose messages in a spool: a lock file each, `<cluster>-<boot>.lock`.

A scheduler holds a lock on its own file for as long as it lives, and the system lets go of it however it ends. Where
the file system knows no locks, a file that was not touched for a while is nobody's. Two that believe the same message
theirs do no harm: it goes twice, and counts once.
"""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCK = ".lock"
STALE_S = 90.0
"""Without locks, one that was not touched for so long is nobody's."""
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


class Claims:
    """Those that this process holds in one folder. Methods raise OSError."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, int | None] = {}
        """Owner to the descriptor that holds the lock; None where there are no locks."""
        _all.add(self)

    @property
    def owners(self) -> frozenset[str]:
        return frozenset(self._held)

    def take(self, owner: str) -> bool:
        """Whether it is this process's from now on, or was before."""
        if owner in self._held:
            return True
        path = self._directory / (owner + LOCK)
        touched_at = path.stat().st_mtime if path.exists() else None
        descriptor = os.open(path, _FLAGS, 0o600)
        try:
            has_locks = _lock(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            return False
        if not has_locks:
            os.close(descriptor)
            if touched_at is not None and not self._is_stale(touched_at):
                return False
            os.utime(path)
            self._held[owner] = None
            return True
        if not _is(descriptor, path):  # whoever had it has just taken it away: the next time
            os.close(descriptor)
            return False
        self._held[owner] = descriptor
        return True

    def release(self, owner: str) -> None:
        """It is anybody's now. Its file goes, for what lies there without one is."""
        descriptor = self._held.pop(owner, None)
        try:
            (self._directory / (owner + LOCK)).unlink(missing_ok=True)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def touch(self) -> None:
        """Say that this process lives. What somebody took away meanwhile is held no more."""
        for owner in list(self._held):
            try:
                os.utime(self._directory / (owner + LOCK))
            except FileNotFoundError:
                descriptor = self._held.pop(owner)
                if descriptor is not None:
                    os.close(descriptor)

    def close(self) -> None:
        for owner in list(self._held):
            with suppress(OSError):
                self.release(owner)

    def abandon(self) -> None:
        """In a forked child, which has copies of the descriptors: the locks are the parent's, and end with it."""
        held, self._held = self._held, {}
        for descriptor in filter(None, held.values()):
            with suppress(OSError):
                os.close(descriptor)

    def _is_stale(self, touched_at: float) -> bool:
        """By the file system's own clock, which need not be this machine's: what it says of a file touched now."""
        for owner in self._held:
            path = self._directory / (owner + LOCK)
            os.utime(path)
            return path.stat().st_mtime - touched_at > STALE_S
        return False


_all = weakref.WeakSet[Claims]()


def _abandon_all() -> None:
    for claims in list(_all):
        claims.abandon()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_abandon_all)


def _lock(descriptor: int) -> bool:
    """False where there are no locks. Raises BlockingIOError if another holds it."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def _is(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False

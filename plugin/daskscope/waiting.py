"""Messages in a spool that nobody has in memory: so many names at a time, after a look that is seldom."""

from __future__ import annotations

import heapq
import os
import re
import time
from collections import deque
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from pathlib import Path

from daskscope.claims import LOCK, Claims
from daskscope.message_file import encoding_of, name_of

SCAN_S = 60.0
"""The folder is looked through so often for what others left, whoever died meanwhile."""
MAX_KNOWN = 1000
"""Names that are held at a time, however many there are."""
MAX_CLAIMS = 16
"""So many schedulers' messages are taken over at a time: each costs a file that is open."""

_OWNER = re.compile(r"[0-9a-f]{32}-[0-9a-f]{24}")
_OWNER_LENGTH = 32 + 1 + 24
_REST = re.compile(r"-[0-9]{8,}(-p[0-9]+)?\.(zst|gz)\.msg")


class Waiting:
    """In one folder, for one scheduler. Methods raise OSError."""

    def __init__(self, directory: Path, claims: Claims, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._directory, self._claims, self._monotonic = directory, claims, monotonic
        self._found: deque[str] = deque()
        self._unusable = set[str]()
        """Files that stay where they are, and are not given again; as many as of the others are held."""
        self._has_more = True
        """Whether there may be some of this process's that are not in `_found`."""
        self._scan_at = 0.0

    def next(self, own: str, out: Container[str]) -> str | None:
        """The file whose turn it is: `own` ones first, then those of schedulers that are dead, the oldest first. `out`:
        names of messages that are in memory."""
        if not self._found:
            self._look(own, out)
        return self._found.popleft() if self._found else None

    def one_more(self) -> None:
        """Something is in memory no longer."""
        self._has_more = True

    def leave(self, file_name: str) -> None:
        """It cannot be used, and cannot be moved."""
        if len(self._unusable) < MAX_KNOWN:
            self._unusable.add(file_name)

    def _look(self, own: str, out: Container[str]) -> None:
        now_s = self._monotonic()
        if not (self._has_more or now_s >= self._scan_at):
            return
        self._scan_at = now_s + SCAN_S
        self._take_over(own)
        # What follows the cluster begins with the time of the boot.
        turn = lambda file_name: (not file_name.startswith(own), file_name[33:])  # noqa: E731
        self._found.extend(heapq.nsmallest(MAX_KNOWN, self._nobody_s(out), key=turn))
        self._has_more = len(self._found) == MAX_KNOWN

    def _take_over(self, own: str) -> None:
        """Claim what is nobody's; let go of whom nothing is left."""
        has_messages: dict[str, bool] = {}
        for file_name in self._files():
            owner = file_name[:_OWNER_LENGTH]
            if file_name.endswith(LOCK):
                has_messages.setdefault(owner, False)
            elif encoding_of(file_name):
                has_messages[owner] = True
        for owner in sorted(filter(_OWNER.fullmatch, has_messages), key=lambda owner: owner[33:]):
            held = self._claims.owners
            if owner == own or (len(held) > MAX_CLAIMS and owner not in held):
                continue
            with suppress(OSError):  # one lock file that cannot be had is not the others' business
                if self._claims.take(owner) and not has_messages[owner]:
                    self._claims.release(owner)

    def _nobody_s(self, out: Container[str]) -> Iterator[str]:
        held = self._claims.owners
        for file_name in self._files():
            if file_name[:_OWNER_LENGTH] not in held or not _REST.fullmatch(file_name, _OWNER_LENGTH):
                continue
            if name_of(file_name) not in out and file_name not in self._unusable:
                yield file_name

    def _files(self) -> Iterator[str]:
        with os.scandir(self._directory) as entries:
            for entry in entries:
                yield entry.name

"""Messages on disk from before their first try until the server has them: the option `spool`.

One folder a server, `<spool>/<hash of its address>`, shared by the schedulers of a user: what one that was killed left
behind, the next delivers. No file is waited for to reach the platter: the end of a process loses nothing, a power cut
maybe the last seconds. Nothing here raises, and all of it runs in the sender's thread.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from daskscope.agent.texts import told
from daskscope.attempts import warn
from daskscope.claims import Claims
from daskscope.compression import Encoding, decompress
from daskscope.errors import BadMessage
from daskscope.message_file import SUFFIXES, encoding_of, name_of, owner_of, read, set_aside, write
from daskscope.parcel import Parcel, repacked
from daskscope.room import MAX_BYTES, Room
from daskscope.waiting import Waiting

QUIET_S = 60.0
TOUCH_S = 15.0
MAX_UNUSABLE = 100
"""So many files that are no messages are dealt with before the sender goes on."""
MAX_BAD = 1000
"""So many of them are kept to be looked at; more are removed."""


def place_of(spool: str | Path, server: str) -> Path:
    """Where messages for a server lie."""
    return Path(spool) / hashlib.sha256(server.encode()).hexdigest()[:16]


class WriteAhead:
    """The shelf (`parcel.Shelf`) of one scheduler, whose first message tells whose it is."""

    def __init__(
        self, directory: Path, max_bytes: int = MAX_BYTES, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._directory, self._monotonic = directory, monotonic
        self._room = Room(directory, max_bytes)
        self._claims = Claims(directory)
        self._own = ""
        """`<cluster>-<boot>` of this scheduler."""
        self._out: dict[str, tuple[str, int]] = {}
        """Names of messages that the sender has in memory to their files and sizes: as many as its buffer holds."""
        self._waiting = Waiting(directory, self._claims, monotonic)
        self._touch_at = self._speak_at = 0.0

    def keep(self, parcel: Parcel) -> bool:
        is_kept = self._write(parcel)
        if not is_kept and parcel.name in self._out:
            self.drop(parcel.name)  # what lies there is not what the sender has
        return is_kept

    def park(self, name: str) -> None:
        if self._out.pop(name, None) is not None:
            self._waiting.one_more()

    def next(self) -> Parcel | None:
        try:
            self._touch()
            for _ in range(MAX_UNUSABLE if self._own else 0):
                file_name = self._waiting.next(self._own, self._out)
                if file_name is None:
                    break
                if (parcel := self._taken(file_name)) is not None:
                    return parcel
        except OSError as error:
            self._say("the spool in %s cannot be read: %s", self._directory, told(error))
        return None

    def drop(self, name: str) -> None:
        for file_name in self._forget(name):
            with suppress(OSError):
                (self._directory / file_name).unlink()

    def set_aside(self, name: str, reason: str) -> None:
        for file_name in self._forget(name):
            self._put_away(file_name, reason)

    def close(self) -> None:
        self._claims.close()

    def _write(self, parcel: Parcel) -> bool:
        try:
            self._own = self._own or owner_of(parcel.name)
            parcel = parcel if parcel.encoding in SUFFIXES else parcel.plain()
            self._directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._directory.mkdir(mode=0o700, exist_ok=True)
            self._claims.take(owner_of(parcel.name))
            self._touch()
            before = self._out.get(parcel.name, ("", 0))
            if not self._room.has(len(parcel.body) - before[1]):
                self._say("the spool in %s is full: messages are in memory alone", self._directory)
                return False
            file_name = parcel.name + SUFFIXES[parcel.encoding]
            write(self._directory / file_name, parcel.body)
            if before[0] not in ("", file_name):
                (self._directory / before[0]).unlink(missing_ok=True)
            self._room.add(len(parcel.body) - before[1])
            self._out[parcel.name] = (file_name, len(parcel.body))
        except (OSError, BadMessage) as error:
            self._say("no spool can be kept in %s, messages are in memory alone: %s", self._directory, told(error))
            return False
        return True

    def _forget(self, name: str) -> list[str]:
        """It is the sender's no more; the files it may be in."""
        file_name, n_bytes = self._out.pop(name, ("", 0))
        self._room.add(-n_bytes)
        return [file_name] if file_name else [name + suffix for suffix in SUFFIXES.values()]

    def _taken(self, file_name: str) -> Parcel | None:
        """None for what is no message, or not there any more."""
        name, encoding = name_of(file_name), encoding_of(file_name)
        if name in self._out or encoding is None:
            return None
        try:
            body = read(self._directory / file_name, own=True)
            parcel = _opened(name, body, encoding, is_own=owner_of(name) == self._own)
        except BadMessage as error:
            self._put_away(file_name, str(error))
        except FileNotFoundError:
            pass  # a server on this machine, or another scheduler, was faster
        except OSError as error:
            self._waiting.leave(file_name)
            self._say("the spooled message %s cannot be read: %s", self._directory / file_name, told(error))
        else:
            self._out[name] = (file_name, len(body))
            return parcel
        return None

    def _put_away(self, file_name: str, reason: str) -> None:
        path = self._directory / file_name
        self._waiting.n_bad += 1
        try:
            if self._waiting.n_bad > MAX_BAD:
                path.unlink()
                self._say("the spooled message %s is not usable and was removed: %s", path, reason)
            else:
                self._say("a spooled message is not usable and was set aside as %s: %s", set_aside(path), reason)
        except FileNotFoundError:
            self._waiting.n_bad -= 1
        except OSError as error:
            self._waiting.leave(file_name)
            self._say("the spooled message %s is not usable and cannot be moved: %s", path, told(error))

    def _touch(self) -> None:
        now_s = self._monotonic()
        if now_s >= self._touch_at:
            self._touch_at = now_s + TOUCH_S
            self._claims.touch()

    def _say(self, text: str, *parts: object) -> None:
        """One warning a minute at most."""
        if self._monotonic() >= self._speak_at:
            self._speak_at = self._monotonic() + QUIET_S
            warn("daskscope: " + text, *parts)


def _opened(name: str, body: bytes, encoding: Encoding, *, is_own: bool) -> Parcel:
    """What is another scheduler's has nothing that this one would count as lost. Raises BadMessage for what does not
    decompress: a power cut may leave a file whose end never reached the disk."""
    try:
        plain = decompress(body, encoding)
    except ImportError:  # written where zstandard is installed: the server has it
        return Parcel(name, body, encoding, Counter())
    if not is_own:
        return Parcel(name, body, encoding, Counter())
    try:
        return repacked(json.loads(plain), ())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadMessage(f"It is none of ours ({told(error)}).") from error

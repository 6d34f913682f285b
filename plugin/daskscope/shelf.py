"""Messages on disk from before their first try until the server has them: the option `spool`.

One folder a server, token and account that is named, `<spool>/<hash of these>`, shared by the schedulers of a user:
what one that was killed left behind, the next delivers. No file is waited for to reach the platter: the end of a
process loses nothing, a power cut maybe the last seconds. Nothing here raises; all of it runs in the sender's thread.
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
from daskscope.aside import Aside
from daskscope.attempts import warn
from daskscope.claims import Claims
from daskscope.compression import Encoding, decompress
from daskscope.errors import BadMessage
from daskscope.message_file import SUFFIXES, encoding_of, name_of, owner_of, read, write
from daskscope.parcel import Parcel, repacked
from daskscope.room import MAX_BYTES, Room
from daskscope.waiting import Waiting

QUIET_S = 60.0
TOUCH_S = 15.0
MAX_UNUSABLE = 100
"""So many files that are no messages are dealt with before the sender goes on."""
REST_S = 600.0
"""So long nothing is given of a folder in which no more can be set aside: the server may refuse all of it."""

_TROUBLE = (OSError, ValueError, ImportError)
"""What a disk does, a path that is none, and a message that cannot be read."""


def place_of(spool: str | Path, server: str, token: str | None, account: str | None = None) -> Path:
    """Where messages for an account on a server lie. The token says which account, where none is named."""
    names = [server, token or "", *([account] if account else [])]
    told_apart = "\0".join(names).encode("utf-8", "backslashreplace")
    return Path(spool) / hashlib.sha256(told_apart).hexdigest()[:16]


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
        self._waiting, self._aside = Waiting(directory, self._claims, monotonic), Aside(directory, monotonic)
        self._touch_at = self._speak_at = self._rest_until = 0.0

    def keep(self, parcel: Parcel) -> bool:
        """Where it lies there in another form, that stays until this one stands, or `drop`: it tells the same, or
        more."""
        try:
            self._write(parcel.name, parcel if parcel.encoding in SUFFIXES else parcel.plain())
        except _TROUBLE as error:
            self._say("no spool can be kept in %s, messages are in memory alone: %s", self._directory, told(error))
            return False
        return True

    def park(self, name: str) -> None:
        if self._out.pop(name, None) is not None:
            self._waiting.one_more()

    def next(self) -> Parcel | None:
        try:
            self._touch()
            may_give = self._own and self._monotonic() >= self._rest_until
            for _ in range(MAX_UNUSABLE if may_give else 0):
                file_name = self._waiting.next(self._own, self._out)
                if file_name is None:
                    break
                if (parcel := self._taken(file_name)) is not None:
                    return parcel
        except _TROUBLE as error:
            self._say("the spool in %s cannot be read: %s", self._directory, told(error))
        return None

    def drop(self, name: str) -> None:
        for file_name in self._forget(name):
            with suppress(*_TROUBLE):
                (self._directory / file_name).unlink()

    def set_aside(self, name: str, reason: str) -> None:
        for file_name in self._forget(name):
            self._put_away(file_name, reason, is_message=True)

    def close(self) -> None:
        self._claims.close()

    def _write(self, name: str, parcel: Parcel) -> None:
        """Raises what a disk does."""
        self._own = self._own or owner_of(name)
        self._directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self._claims.take(owner_of(name))
        self._touch()
        before, n_bytes_before = self._out.get(name, ("", 0))
        if not self._room.has(len(parcel.body) - n_bytes_before):
            raise OSError("it is full")
        file_name = name + SUFFIXES[parcel.encoding]
        write(self._directory / file_name, parcel.body)
        self._room.add(len(parcel.body) - n_bytes_before)
        self._out[name] = (file_name, len(parcel.body))
        if before not in ("", file_name):
            (self._directory / before).unlink(missing_ok=True)

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

    def _put_away(self, file_name: str, reason: str, *, is_message: bool = False) -> None:
        """Where no more fits, what is a message stays, and what is none goes."""
        path = self._directory / file_name
        try:
            if (put := self._aside.put(file_name)) is not None:
                self._say("a spooled message is not usable and was set aside as %s: %s", put, reason)
            elif is_message:
                self._waiting.leave(file_name)
                self._rest_until = self._monotonic() + REST_S
                self._say("the spooled message %s stays, for no more is set aside there: %s", path, reason)
            else:
                path.unlink()
                self._say("the spooled message %s is not usable and was removed: %s", path, reason)
        except FileNotFoundError:
            pass
        except _TROUBLE as error:
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

"""Messages from a folder to a server: what `daskscope import` does.

Schedulers may write into the folder meanwhile, and others take out of it: a file is taken when it has its name, and is
removed when the server has it. Whatever ends this, another run goes on where it stopped.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from daskscope.compression import Encoding, decompress
from daskscope.errors import BadMessage
from daskscope.message_file import encoding_of, first, name_of, read, set_aside
from daskscope.outcome import Outcome
from daskscope.parcel import in_parts
from daskscope.sender import LEAST_BODY_BYTES
from daskscope.spool import folder
from daskscope.transport import Transport

BATCH = 1000
"""Names held at a time, however many files there are."""
TRIES = 6
"""So often in a row the server may fail at a message: then it is asked no more."""
BACKOFF_S, MOST_BACKOFF_S = 1.0, 60.0


@dataclass(slots=True)
class Progress:
    """How far it is: numbers of files."""

    n_in: int = 0
    n_unremovable: int = 0
    """The server has them, and the folder lets nobody else remove them: another run sends them again."""
    n_aside: int = 0
    n_left: int = 0


class Import:
    """From one folder; `told` hears each word for the user, `shown` how far it is after each file."""

    def __init__(
        self,
        transport: Transport,
        told: Callable[[str], None],
        shown: Callable[[Progress], None],
        *,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._transport, self._told, self._shown = transport, told, shown
        self._sleep, self._jitter = sleep, jitter
        self.progress = Progress()
        self._done = set[str]()
        """Files that lie there still and have had their turn."""

    def run(self, directory: Path) -> bool:
        """All that lay there when it began, and what came meanwhile. Whether the server has all of it. Raises OSError
        if the folder cannot be read."""
        for place in dict.fromkeys((folder(directory), directory)):
            self._done.clear()
            names = first(place, BATCH)
            while names:
                for name in names:
                    if not self._take(place / name):
                        self.progress.n_left += len(names) - names.index(name)
                        return False
                    self._shown(self.progress)
                # Fewer than a batch were all that were there: whoever goes on writing is not waited for.
                names = first(place, BATCH, self._done) if len(names) == BATCH else []
        return not (self.progress.n_left or self.progress.n_aside)

    def _take(self, path: Path) -> bool:
        """False if the server is not to be asked any more."""
        try:
            body = read(path)
            outcome = self._posted(name_of(path.name), body, encoding_of(path.name) or "zstd")
        except FileNotFoundError:
            return True  # a server, or another import, was faster
        except BadMessage as error:
            return self._put_away(path, str(error))
        except OSError as error:
            self._leave(path, str(error))
            return True
        if outcome.verdict == "kept":
            self._remove(path)
        elif outcome.verdict in ("again", "denied"):
            self._told(f"The server does not take messages: {outcome.reason}.")
            return False
        else:
            return self._put_away(path, outcome.reason)
        return True

    def _posted(self, name: str, body: bytes, encoding: Encoding) -> Outcome:
        """What became of it at last."""
        outcome = self._tried(name, body, encoding)
        if outcome.verdict == "split":
            return self._in_parts(body, encoding, outcome)
        if outcome.verdict == "kept" and outcome.reply is None:
            return Outcome("denied", f"is it a daskscope server? It answers {outcome.reason}")
        return outcome

    def _tried(self, name: str, body: bytes, encoding: Encoding) -> Outcome:
        outcome = self._transport.deliver(name, body, encoding)
        for n in range(1, TRIES):
            if outcome.verdict != "again":
                break
            self._sleep(max(outcome.wait_s, self._jitter() * min(MOST_BACKOFF_S, BACKOFF_S * 2**n)))
            outcome = self._transport.deliver(name, body, encoding)
        return outcome

    def _in_parts(self, body: bytes, encoding: Encoding, outcome: Outcome) -> Outcome:
        """Of what is too much for one body; the message itself is the last. Raises BadMessage."""
        if len(body) <= LEAST_BODY_BYTES:
            return Outcome("refused", outcome.reason)
        try:
            parcels = in_parts(json.loads(decompress(body, encoding)), ())
        except (ImportError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadMessage(f"{outcome.reason}, and it cannot be divided here ({error}).") from error
        if len(parcels) == 1:
            return Outcome("refused", outcome.reason)
        for parcel in parcels:
            outcome = self._posted(parcel.name, parcel.body, parcel.encoding)
            if outcome.verdict != "kept":
                break
        return outcome

    def _remove(self, path: Path) -> None:
        self.progress.n_in += 1
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self._done.add(path.name)
            self.progress.n_unremovable += 1
            if self.progress.n_unremovable == 1:
                self._told(f"{path} is in and cannot be removed ({error}); of others no more is said.")

    def _put_away(self, path: Path, reason: str) -> bool:
        try:
            self._told(f"{set_aside(path)} was set aside: {reason}")
            self.progress.n_aside += 1
        except FileNotFoundError:
            pass  # somebody else did
        except OSError as error:
            self._leave(path, f"{reason}, and it cannot be set aside ({error})")
        return True

    def _leave(self, path: Path, reason: str) -> None:
        self._done.add(path.name)
        self.progress.n_left += 1
        self._told(f"{path} stays where it is: {reason}")

"""Messages from a folder to a server: what `daskscope import` does.

Schedulers may write into the folder meanwhile, and others take out of it: a file is taken when it has its name, and is
removed when the server has it. Whatever ends this, another run goes on where it stopped.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from daskscope.compression import Encoding
from daskscope.errors import BadMessage
from daskscope.message_file import bring_back, encoding_of, first, name_of, read, set_aside
from daskscope.outcome import Outcome
from daskscope.piecewise import posted
from daskscope.spool import folder
from daskscope.transport import Transport

BATCH = 1000
"""Names held at a time, however many files there are."""
TRIES = 6
"""So often in a row the server may fail at a message: then it is asked no more."""
BACKOFF_S, MOST_BACKOFF_S = 1.0, 60.0
OF_THE_MESSAGE = (400, 410, 413, 415, 422)
"""What a server says of a message. Any other refusal is of the address: it would refuse all of them."""


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

    def run(self, directory: Path, *, again: bool = False) -> bool:
        """All that lay there when it began, and what came meanwhile; `again`: also what was set aside. Whether the
        server has all of it. Raises OSError if the folder cannot be read."""
        for place in dict.fromkeys((folder(directory), directory)):
            self._done.clear()
            if again:
                bring_back(place)
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
            outcome = posted(name_of(path.name), body, encoding_of(path.name) or "zstd", self._post)
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

    def _post(self, name: str, body: bytes, encoding: Encoding) -> Outcome:
        outcome = self._transport.deliver(name, body, encoding, is_own=False)
        for n in range(1, TRIES):
            if outcome.verdict != "again":
                break
            self._sleep(max(outcome.wait_s, self._jitter() * min(MOST_BACKOFF_S, BACKOFF_S * 2**n)))
            outcome = self._transport.deliver(name, body, encoding, is_own=False)
        if outcome.verdict == "refused" and outcome.status not in OF_THE_MESSAGE:
            return Outcome("denied", f"is it a daskscope server? It answers {outcome.reason}")
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

"""Out of a folder of messages into the queue, on the way that every post takes.

The folder may be anybody's: a file is opened without following or waiting, read no further than a message reaches, and
what cannot be read or removed keeps nothing else back.
"""

from __future__ import annotations

import base64
import json
import logging
import uuid
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

from daskscope import wire
from daskscope.compression import Encoding
from daskscope.errors import BadMessage
from daskscope.message_file import encoding_of, first, name_of, read, set_aside
from daskscope.outcome import Outcome
from daskscope.piecewise import posted
from daskscope_lambdas.embedded.function import Handler

logger = logging.getLogger("daskscope.serve")

BATCH = 1000
"""Names held at a time, however many files there are."""
SLICE = 50
"""Files taken in at a time: a server that stops waits for as many."""
MAX_REFUSED = 100
"""So often in one round the server may fail at a message: then it is in trouble itself, and the others wait."""
MAX_REMEMBERED = 100_000
"""Files that stay where they are, and are not to be taken again and again."""
GONE, TOO_LARGE = 410, 413


class Intake:
    """One folder; other servers may take out of it at the same time."""

    def __init__(self, folder: Path, ingest: Handler, token: str) -> None:
        self._folder, self._ingest, self._token = folder, ingest, token
        self._waiting: deque[str] = deque()
        self._stuck = set[str]()
        """Files that stay where they are, and have had their turn in this round."""
        self._n_refused = 0
        self._taken = set[str]()
        """Files that were taken in and cannot be removed."""
        self._told = set[str]()
        """Files of which the log tells already."""

    def take(self) -> bool:
        """A few of the files that are there, each once a round; False when the round is over. Raises OSError if the
        folder cannot be read."""
        if not self._waiting and self._n_refused < MAX_REFUSED and len(self._stuck | self._taken) < MAX_REMEMBERED:
            self._waiting.extend(first(self._folder, BATCH, self._stuck | self._taken))
        if not self._waiting:
            self._told &= self._stuck | self._taken
            self._stuck.clear()
            self._n_refused = 0
            return False
        for _ in range(min(SLICE, len(self._waiting))):
            self._try(self._waiting.popleft())
        if self._n_refused >= MAX_REFUSED:
            self._waiting.clear()
        return True

    def _try(self, name: str) -> None:
        try:
            if not self._take(self._folder / name):
                self._n_refused += 1
                raise OSError("the server could not take it in; its log says why")
        except FileNotFoundError:
            pass  # another server was faster
        except OSError as error:
            self._stuck.add(name)
            self._tell(name, "stays where it is for now: %s", error.strerror or error)

    def _take(self, path: Path) -> bool:
        """False if the server is in trouble, not the message. Raises OSError."""
        try:
            outcome = posted(name_of(path.name), read(path), encoding_of(path.name) or "zstd", self._post)
        except BadMessage as error:
            outcome = Outcome("refused", str(error))
        if outcome.verdict == "again":
            return False
        if outcome.verdict == "kept":
            self._remove(path)
        else:
            self._put_away(path, outcome.reason)
        return True

    def _post(self, name: str, body: bytes, encoding: Encoding) -> Outcome:
        """What this server's own ingest says of it."""
        answer = self._ingest(self._request(body, encoding), None)
        status: int = answer["statusCode"]
        if status == GONE:
            logger.info("A spooled message of a deleted cluster was taken away: %s", name)
        if 200 <= status < 300 or status == GONE:
            return Outcome("kept", "")
        if status >= 500 or status in (401, 403):
            return Outcome("again", f"HTTP {status}")
        return Outcome("split" if status == TOO_LARGE else "refused", json.loads(answer["body"])["error"]["message"])

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self._taken.add(path.name)
            self._tell(path.name, "was taken in and cannot be removed: %s", error.strerror or error)

    def _put_away(self, path: Path, reason: str) -> None:
        """Raises OSError."""
        with suppress(FileNotFoundError):
            set_aside(path)
            logger.warning("The spooled message %s is not usable and was set aside as *.bad: %s", path, reason)

    def _tell(self, name: str, what: str, why: object) -> None:
        """One word of a file is enough: the next round is soon."""
        if name not in self._told:
            self._told.add(name)
            logger.warning(f"The spooled message %s {what}", self._folder / name, why)

    def _request(self, body: bytes, encoding: Encoding) -> dict[str, Any]:
        return {
            "version": "2.0",
            "rawPath": wire.PATH,
            "headers": {
                "authorization": f"Bearer {self._token}",
                "content-type": wire.CONTENT_TYPE,
                "content-encoding": encoding,
            },
            "requestContext": {"requestId": uuid.uuid4().hex, "http": {"method": "POST", "path": wire.PATH}},
            "body": base64.b64encode(body).decode("ascii"),
            "isBase64Encoded": True,
        }

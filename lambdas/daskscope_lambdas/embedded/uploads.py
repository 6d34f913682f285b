"""A report on its way in: streamed to disk, for it may have more than memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from daskscope_lambdas.embedded.messages import Receive, Scope, Send, answer, error, refuse
from daskscope_lambdas.ports import Full, Missing, NotAdmitted, ReportHost, StoreError, Taken

logger = logging.getLogger("daskscope.serve")

PATH = "/api/v1/uploads/"
PART_TIMEOUT_S = 30.0
"""So long a client may be silent."""
WHOLE_TIMEOUT_S = 3600.0
"""For a whole file, however it trickles in."""
_BUFFER_BYTES = 1 << 20
"""Written at a time, in a thread: messages of clusters do not wait for a disk."""
_NO_ROOM = "The server has no room left for the report: try again once some reports are deleted, or more is made."


class Uploads:
    def __init__(self, host: ReportHost) -> None:
        self._host = host

    async def __call__(self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        """Take in what somebody was let bring; what is not that is refused, with the reason."""
        link = scope["path"].removeprefix(PATH)
        try:
            size_bytes = self._admitted(scope, link, headers)
            with _refusing():
                draft = await asyncio.to_thread(self._host.draft)
            try:
                await self._take(receive, draft, size_bytes)
                with _refusing(more=False):
                    # It may have been deleted, or another kept, while this one came.
                    await asyncio.to_thread(self._host.check_awaited, link)
                    await asyncio.to_thread(self._host.bring, link, draft)
            finally:
                await asyncio.to_thread(draft.unlink, missing_ok=True)
        except _RefusedError as refused:
            await refuse(receive, send, refused.response, refused.more, PART_TIMEOUT_S)
        except _GoneError:
            return
        else:
            await answer(send, {"statusCode": 204, "headers": {"Cache-Control": "no-store"}})

    def _admitted(self, scope: Scope, link: str, headers: Mapping[str, str]) -> int:
        """How many bytes may come. Raises _RefusedError."""
        if scope["method"] != "PUT":
            raise _RefusedError(405, "method-not-allowed", "A report is brought by PUT.", headers={"Allow": "PUT"})
        told = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        with _refusing():
            size_bytes = self._host.admit(link, told)
        kind = headers.get("content-type", "text/html").partition(";")[0].strip().lower()
        if kind != "text/html":
            raise _RefusedError(415, "unsupported-media-type", f"A report is text/html, and this is {kind}.")
        if headers.get("content-encoding", "identity") != "identity":
            raise _RefusedError(415, "unsupported-media-type", "A report comes as it is: send it without an encoding.")
        declared = headers.get("content-length")
        if declared is not None and int(declared) != size_bytes:
            raise _wrong_size(int(declared), size_bytes)
        return size_bytes

    async def _take(self, receive: Receive, draft: Path, size_bytes: int) -> None:
        """All of the body into `draft`. Raises _RefusedError, _GoneError."""
        taken = 0
        more = True
        try:
            async with asyncio.timeout(WHOLE_TIMEOUT_S):
                while more:
                    part, more = await _part(receive)
                    taken += len(part)
                    if taken > size_bytes:
                        raise _wrong_size(taken, size_bytes, more=more)
                    with _refusing(more=more):
                        await asyncio.to_thread(self._host.append, draft, part)
        except TimeoutError as why:
            text = f"The report stopped coming after {taken} bytes: bring it again."
            raise _RefusedError(408, "timeout", text, more=False) from why
        if taken < size_bytes:
            raise _wrong_size(taken, size_bytes, more=False)


async def _part(receive: Receive) -> tuple[bytes, bool]:
    """Up to _BUFFER_BYTES and a little, and whether there is more. Raises TimeoutError, _GoneError."""
    parts, n_bytes, more = list[bytes](), 0, True
    while more and n_bytes < _BUFFER_BYTES:
        async with asyncio.timeout(PART_TIMEOUT_S):
            message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        parts.append(message.get("body", b""))
        n_bytes += len(parts[-1])
        more = message.get("more_body", False)
    return b"".join(parts), more


class _GoneError(Exception):
    """Nobody is there any more to be told anything."""


class _RefusedError(Exception):
    """`more` if the client may not have come to its end."""

    def __init__(
        self, status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None, more: bool = True
    ) -> None:
        super().__init__(message)
        self.response: dict[str, Any] = error(status, code, message, headers)
        self.more = more


@contextmanager
def _refusing(more: bool = True) -> Generator[None]:
    """Within, what the host raises becomes a _RefusedError."""
    try:
        yield
    except NotAdmitted as why:
        raise _RefusedError(403, "permission-denied", str(why), more=more) from why
    except Taken as why:
        raise _RefusedError(409, "conflict", str(why), more=more) from why
    except Missing as why:
        raise _RefusedError(404, "not-found", str(why), more=more) from why
    except Full as why:
        logger.error("No room is left for a report: %s", why)
        raise _RefusedError(507, "no-room", _NO_ROOM, more=more) from why
    except StoreError as why:
        logger.exception("A report could not be taken in.")
        text = "The server could not keep the report; its log has the reason. Try again."
        raise _RefusedError(500, "server-error", text, more=more) from why


def _wrong_size(n_bytes: int, size_bytes: int, more: bool = True) -> _RefusedError:
    said = f"of {size_bytes} bytes was announced"
    if n_bytes > size_bytes:
        return _RefusedError(413, "too-large", f"A report {said}, and this has more: announce it anew.", more=more)
    return _RefusedError(422, "bad-report", f"A report {said}, and this has {n_bytes}: bring it whole.", more=more)

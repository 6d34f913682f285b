"""A report's file, to where reports are kept and from there: past the API, streamed, and without the token."""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from dask.utils import format_bytes

from daskscope import __version__
from daskscope.discovery import is_loopback
from daskscope.errors import ServerError, ServerUnreachable
from daskscope.foreign import one_line
from daskscope.progress import Progress
from daskscope.source import MOST_SAID

CONNECT_S, QUIET_S = 5.0, 30.0
"""For a connection; and for the next bytes to go or come."""
MOST_S = 3600.0
"""A file that takes longer is given up, however steadily it moves."""
MAX_REPLY_BYTES = 64 << 10

_CHUNK_BYTES = 64 << 10
_SAID = re.compile(r"<Message>(.*?)</Message>", re.DOTALL)
"""How S3 says why not."""


class Outgoing(io.BufferedReader):
    """A file that is read once, from its start, and tells how far it is. Raises OSError if it cannot be opened."""

    def __init__(self, path: Path, progress: Progress, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__(io.FileIO(path), _CHUNK_BYTES)
        self.n_bytes = self.seek(0, io.SEEK_END)
        self.seek(0)
        self._progress, self._monotonic = progress, monotonic
        self._until = monotonic() + MOST_S

    def read(self, size: int | None = -1, /) -> bytes:
        """Raises ServerUnreachable after MOST_S."""
        _check_time(self._monotonic, self._until)
        self._progress.told(self.tell(), self.n_bytes)
        return super().read(size)


def send(file: Outgoing, upload: Mapping[str, Any], server: str) -> None:
    """Bring a file where the server said: `upload` has the `method`, `url` (absolute, or relative to the server's
    address) and `fields` of its answer. Raises ServerUnreachable, ServerError with the reason of whoever keeps it."""
    method, fields = upload.get("method"), upload.get("fields")
    if method not in ("POST", "PUT") or not isinstance(upload.get("url"), str) or not isinstance(fields, dict):
        raise ServerError(f"{server} told no way to upload a file that this client, {__version__}, knows.")
    url = _absolute(upload["url"], server)
    with _asking(url) as http:
        if method == "PUT":
            answer = http.stream("PUT", url, content=file, headers={"Content-Type": "text/html"})
        else:
            answer = http.stream("POST", url, data=fields, files={"file": ("report.html", file, "text/html")})
        with answer as response:
            if not response.is_success:
                raise ServerError(f"{_host(url)} did not take the file: {_reason(response)}")


def fetch(url: str, path: Path, n_bytes: int, server: str, *, for_all: bool) -> None:
    """A file of so many bytes to `path`: whole or not at all, and readable `for_all` or for this user alone. Raises
    ServerUnreachable, ServerError, OSError."""
    url = _absolute(url, server)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if for_all else 0o600)
        with os.fdopen(descriptor, "wb") as file, _asking(url) as http, http.stream("GET", url) as response:
            if not response.is_success:
                raise ServerError(f"{_host(url)} did not give the file: {_reason(response)}")
            n = _copy(response, file, n_bytes)
        if n != n_bytes:
            raise ServerError(
                f"{_host(url)} sent another file than {server} has told of: {n_bytes:,} bytes are its size."
            )
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _copy(response: httpx.Response, file: io.BufferedWriter, n_bytes: int) -> int:
    """So many bytes came; no more are kept than were told of."""
    n, until = 0, time.monotonic() + MOST_S
    with Progress(None, "downloaded", format_bytes) as progress:
        for chunk in response.iter_bytes(_CHUNK_BYTES):
            _check_time(time.monotonic, until)
            n += len(chunk)
            if n > n_bytes:
                break
            file.write(chunk)
            progress.told(n, n_bytes)
    return n


@contextmanager
def _asking(url: str) -> Generator[httpx.Client]:
    """A client for this one address. Raises ServerUnreachable, ServerError."""
    try:
        with httpx.Client(
            headers={"User-Agent": f"daskscope/{__version__}"},
            timeout=httpx.Timeout(QUIET_S, connect=CONNECT_S),
            follow_redirects=False,
            trust_env=not is_loopback(url),
        ) as http:
            yield http
    except httpx.TransportError as error:
        reason = one_line(str(error), None, MOST_SAID) or type(error).__name__
        raise ServerUnreachable(f"The way to {_host(url)}, where reports are kept, broke off ({reason}).") from error
    except httpx.HTTPError as error:
        raise ServerError(f"{_host(url)} sent an answer that cannot be read ({type(error).__name__}).") from error


def _absolute(url: str, server: str) -> str:
    """An address that is as safe from listeners as the server's. Raises ServerError."""
    found = url if "://" in url else f"{server}/{url.lstrip('/')}"
    try:
        parts = urlsplit(found)
        good = parts.hostname and parts.scheme in (("https",) if server.startswith("https:") else ("http", "https"))
    except ValueError:
        good = False
    if not good or not found.isprintable():
        raise ServerError(
            f"{server} told an address for the file that is none, or goes unencrypted: is it daskscope's?"
        )
    return found


def _host(url: str) -> str:
    """What may stand in an error: the rest of the address opens what it leads to."""
    parts = urlsplit(url)
    return one_line(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")


def _reason(response: httpx.Response) -> str:
    """Why not, in the words of whoever keeps the files."""
    start = bytearray()
    for chunk in response.iter_bytes(_CHUNK_BYTES):
        start += chunk
        if len(start) > MAX_REPLY_BYTES:
            break
    text = start.decode("utf-8", "replace")
    try:
        said = json.loads(text)["error"]["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = _SAID.search(text)
        said = found[1] if found else ""
    return one_line(said, None, MOST_SAID) or f"HTTP {response.status_code} {one_line(response.reason_phrase)}."


def _check_time(monotonic: Callable[[], float], until: float) -> None:
    if monotonic() > until:
        raise ServerUnreachable(f"The file was not through after {MOST_S / 60:.0f} minutes, and was given up.")

"""Which server to talk to: the configured one, or the `daskscope serve` that runs on this machine.

A running server leaves `<data>/servers/<port>.json` with `url`, `token`, `ingest_token`, `pid` and `data`. It is
believed only if it belongs to this user, nobody else may read it, its process lives, and it points to this machine: a
token never goes to a host that the user did not name.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from daskscope.settings import Settings

PORT = 8790
"""Where `daskscope serve` listens unless told otherwise; neither a port of Dask's nor of Jupyter's."""

logger = logging.getLogger("daskscope")


@dataclass(frozen=True, slots=True)
class Server:
    """`url` has no slash at its end. Tokens never show in the repr."""

    url: str
    token: str | None = field(default=None, repr=False)
    ingest_token: str | None = field(default=None, repr=False)
    """The one to ship to schedulers: of the servers on this machine it can only ingest."""
    data: str | None = field(default=None, repr=False)
    """The data folder, of a server on this machine that tells it."""


def rendezvous(data: str | Path, port: int) -> Path:
    """The file by which a server on this machine is found."""
    return Path(data) / "servers" / f"{port}.json"


def file_of(settings: Settings) -> Path:
    """Where the server that these settings mean leaves its rendezvous file, if it runs on this machine."""
    return rendezvous(settings.data, _port(settings))


def _port(settings: Settings) -> int:
    parts = urlsplit(settings.server or f"http://127.0.0.1:{PORT}")
    return parts.port or (443 if parts.scheme == "https" else 80)


def find_server(settings: Settings) -> Server | None:
    """The configured server, else the one that runs on this machine; None if there is neither, or a folder is
    configured in its place.

    A configured token always wins. What is not configured a server on this machine lends, by its rendezvous file.
    """
    if shared_folder(settings.server) is not None:
        return None
    port = _port(settings)
    here = settings.server is None or is_loopback(settings.server)
    found = _read(rendezvous(settings.data, port)) if here else None
    if found is not None and urlsplit(found.url).port != port:
        found = None
    url = settings.server or (found and found.url)
    if url is None:
        return None
    lent = found or Server(url)
    token = settings.token or lent.token
    return Server(url, token, settings.ingest_token or settings.token or lent.ingest_token, lent.data)


def shared_folder(server: str | None) -> Path | None:
    """The folder that is configured in place of a server; None for a server, and for none."""
    if server is None or urlsplit(server).scheme != "file":
        return None
    return Path(url2pathname(urlsplit(server).path))


def is_loopback(url: str) -> bool:
    """Whether the URL's host is this machine: `localhost`, 127.0.0.0/8 or ::1."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read(path: Path) -> Server | None:
    """What a rendezvous file says, None if there is none or it is not to be believed (logged)."""
    try:
        text = _read_private(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        logger.warning("Ignored %s: %s.", path, error.strerror or error)
        return None
    try:
        found: dict[str, Any] = json.loads(text)
        url, pid = str(found["url"]).rstrip("/"), int(found["pid"])
        token, ingest_token = str(found["token"]), str(found["ingest_token"])
        data = found.get("data")
        # A port that is none is a ValueError of its own.
        if not is_loopback(url) or urlsplit(url).scheme != "http" or urlsplit(url).port == 0:
            raise ValueError(f"it points to {url[:100]!r}, which is not this machine")
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        logger.warning("Ignored %s: it is not what `daskscope serve` writes (%s).", path, error)
        return None
    return Server(url, token, ingest_token, data if isinstance(data, str) else None) if _lives(pid) else None


def _read_private(path: Path) -> str:
    # Opened first and checked by descriptor, so that what was checked is what is read.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is no regular file")
        if os.name == "posix" and found.st_uid != os.getuid():
            raise PermissionError("it belongs to another user")
        if os.name == "posix" and found.st_mode & 0o077:
            raise PermissionError("other users may read it (run `chmod 600` on it)")
        return file.read(64 * 1024)


def _lives(pid: int) -> bool:
    if os.name != "posix":
        return True  # On Windows os.kill(pid, 0) would end the process; a connection then tells.
    if pid <= 0:
        return False
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
    return True

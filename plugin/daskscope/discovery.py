"""Which server to talk to, and as whom: the configured one, that of `daskscope login`, or the `daskscope serve` that
runs on this machine.

A running server leaves `<data>/servers/<port>.json` with `url`, `token`, `ingest_token`, `pid` and `data`, and
`address` if others reach it by another. It is believed only if it belongs to this user, nobody else may read it, its
process lives, and it points to this machine: a token never goes to a host that the user did not name.
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
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import url2pathname

from daskscope import parsing
from daskscope.settings import Settings

PORT = 8790
"""Where `daskscope serve` listens unless told otherwise; neither a port of Dask's nor of Jupyter's."""

Origin = Literal["", "login", "given"]
"""Of a token: the settings, or the server on this machine; `daskscope login`; the hand of who asks."""

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
    account: str | None = None
    """Whose clusters are meant; None for the account that is `token`'s own."""
    ingest_account: str | None = None
    """Where messages go; None for the account that is `ingest_token`'s own."""
    origin: Origin = field(default="", compare=False)
    """Where `token` is from."""
    address: str | None = None
    """Where people reach it, if not at `url`: for links, and never asked."""

    @property
    def pages(self) -> str:
        """What links begin with."""
        return self.address or self.url


def rendezvous(data: str | Path, port: int) -> Path:
    """The file by which a server on this machine is found."""
    return Path(data) / "servers" / f"{port}.json"


def file_of(settings: Settings) -> Path:
    """Where the server that these settings mean leaves its rendezvous file, if it runs on this machine."""
    return rendezvous(settings.data, _port(named_server(settings)))


def _port(url: str | None) -> int:
    """Of this address, or where a server on this machine is looked for."""
    if url is None:
        return PORT
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def named_server(settings: Settings) -> str | None:
    """The address that somebody gave: the configured one, else the one that `daskscope login` was at."""
    return settings.server or (settings.login.server if settings.login else None)


def find_server(settings: Settings) -> Server | None:
    """The configured server, else that of `daskscope login`, else the one that runs on this machine; None if there is
    none of these, or a folder is configured in its place.

    A configured token always wins. What is not configured is as `daskscope login` has it, if it was at this very
    server; what is not told there either, a server on this machine lends, by its rendezvous file.
    """
    if shared_folder(settings.server) is not None:
        return None
    named = named_server(settings)
    lent = _lent(settings, named)
    url = named or (lent and lent.url)
    if url is None:
        return None
    lent, login = lent or Server(url), _login(settings, url)
    source = Server(url, settings.token) if settings.token else login if login.token else lent
    shipped = settings.ingest_token or settings.token
    return Server(
        url,
        source.token,
        shipped or login.ingest_token or lent.ingest_token,
        lent.data,
        settings.account or source.account,
        settings.account or (None if shipped else login.account),
        source.origin,
        lent.address,
    )


def is_same(one: str, other: str) -> bool:
    """Whether two addresses are of one server: of the same scheme, host and port, under the same path."""
    return _place(one) == _place(other)


def _place(url: str) -> tuple[str, str | None, int, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, _port(url), parts.path.rstrip("/")


def _login(settings: Settings, url: str) -> Server:
    """What `daskscope login` has for this very server: a token is for whom it was given."""
    login = settings.login
    if login is None or not is_same(login.server, url):
        return Server(url)
    return Server(url, login.token, login.ingest_token, account=login.account, origin="login")


def _lent(settings: Settings, named: str | None) -> Server | None:
    """What the server on this machine that is meant says of itself."""
    if named is not None and not is_loopback(named):
        return None
    found = _read(file_of(settings))
    return found if found is not None and urlsplit(found.url).port == _port(named) else None


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
        data, address = found.get("data"), parsing.url("address", found.get("address"))
        # A port that is none is a ValueError of its own.
        if not is_loopback(url) or urlsplit(url).scheme != "http" or urlsplit(url).port == 0:
            raise ValueError(f"it points to {url[:100]!r}, which is not this machine")
        if shared_folder(address) is not None:
            raise ValueError("it names a folder as its address")
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        logger.warning("Ignored %s: it is not what `daskscope serve` writes (%s).", path, error)
        return None
    data = data if isinstance(data, str) else None
    return Server(url, token, ingest_token, data, address=address) if lives(pid) else None


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


def lives(pid: int) -> bool:
    """Whether a process of this machine has that id, as far as can be told."""
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

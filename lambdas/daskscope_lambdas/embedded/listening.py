"""Where a server listens, and the names by which it goes."""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from daskscope.discovery import is_loopback, is_same
from daskscope.errors import SettingsError

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxied:
    """What people reach by other names than this machine's own: a proxy stands before it."""

    url: str | None = None
    reports_url: str | None = None
    """As checked_url has them; None: as whoever asks names this machine."""
    hosts: frozenset[str] = frozenset()
    """Names besides, as in Gateway."""

    def __post_init__(self) -> None:
        """Raises SettingsError where reports would have the origin of the pages, and where pages come encrypted and
        reports do not: no browser shows one within the other."""
        if self.url and self.reports_url and is_same(self.url, self.reports_url):
            allowed = (
                "how a proxy reaches --reports-port, by another name or port than --url: reports are HTML that users "
                "made, and what a browser has from the pages' own address may do as whoever looks"
            )
            raise SettingsError("--reports-url", self.reports_url, allowed)
        if (self.url or "").startswith("https:") and not (self.reports_url or "").startswith("https:"):
            allowed = (
                f"how a proxy reaches --reports-port, with https as {self.url} (--url) has: another name, or the same "
                "with another port, as in https://reports.example.org. Browsers show nothing unencrypted in a page "
                "that is encrypted"
            )
            raise SettingsError("--reports-url", self.reports_url, allowed)

    @property
    def has_one_name(self) -> bool:
        """Whether reports differ from pages by their port alone: browsers then send them the cookies of pages."""
        return bool(self.url and self.reports_url) and _name(self.url or "") == _name(self.reports_url or "")

    @property
    def names(self) -> frozenset[str]:
        return self.hosts | {_name(url) for url in (self.url, self.reports_url) if url}


AS_ASKED = Proxied()
"""No proxy, but for those that ask as this machine does: an ssh forward, a notebook's own."""


def hosts(host: str, proxied: Proxied) -> frozenset[str] | None:
    """The names that a server which listens on `host` answers to, None for any: see Gateway."""
    return LOOPBACK_NAMES | {reachable(host)} | proxied.names if is_here(host) else None


def listen(host: str, port: int, option: str = "--port") -> socket.socket:
    """Port 0 takes any free one. `option` names the port in what is raised: SettingsError if it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=512)
        # Connections inherit it. asyncio sets it only on sockets that name their protocol, and without it each answer
        # waits 40 ms for the client's delayed acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            allowed = "a free port; something listens there already, maybe another `daskscope serve`"
            raise SettingsError(option, port, allowed) from error
        if error.errno == errno.EACCES:
            raise SettingsError(option, port, "a port that this user may use, 1024 to 65535") from error
        raise SettingsError("--host", host, f"an address of this machine ({error.strerror or error})") from error


def listen_beside(listener: socket.socket, host: str, port: int | None) -> socket.socket:
    """For the origin of reports. None: the port after the listener's; on this machine alone, where nobody has to open
    it for others, any free one if that is taken. Raises as `listen`."""
    if port is not None:
        return listen(host, port, "--reports-port")
    following = port_of(listener) + 1
    if is_here(host):
        with suppress(SettingsError, OverflowError):
            return listen(host, following)
        return listen(host, 0)
    return listen(host, following if following <= 65535 else 0, "--reports-port")


def port_of(listener: socket.socket) -> int:
    return listener.getsockname()[1]


def is_here(host: str) -> bool:
    """Whether nobody but this machine reaches what listens there."""
    return is_loopback(f"http://{_bracketed(host)}")


def reachable(host: str) -> str:
    """The address that this machine itself uses for what listens on `host`."""
    if _is_any(host):
        return "[::1]" if ":" in host else "127.0.0.1"
    return _bracketed(host)


def _is_any(host: str) -> bool:
    """Whether what listens there listens at all addresses of this machine."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_unspecified
    return False


def known_as(host: str) -> str:
    """The name by which others reach what listens on `host`, as far as this machine can tell: where that is all of its
    addresses, its own name."""
    name = socket.gethostname() if _is_any(host) else ""
    return name if _NAME.fullmatch(name) else reachable(host)


def checked_url(option: str, url: str) -> str:
    """An address that people are told, without the slash at its end. Raises SettingsError."""
    parts = urlsplit(url)
    plain = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
    if not plain or parts.path not in ("", "/") or "@" in parts.netloc:
        raise SettingsError(option, url, "the address of a host, as in https://daskscope.example.org")
    return f"{parts.scheme}://{parts.netloc}"


def _name(url: str) -> str:
    """The host of a URL as a Host header names it, without a port."""
    return _bracketed(urlsplit(url).hostname or "")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host

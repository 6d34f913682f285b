"""One attempt to bring one message to the server, and what became of it.

An attempt never raises, and is over within `DEADLINE_S` (`deadline.py`): the sender's thread is all it may hold up. The
library underneath follows no redirect and keeps no cookie, so the token reaches no other host.
"""

from __future__ import annotations

import contextlib
import re
import ssl
import time
from collections.abc import Callable
from typing import Protocol
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore

from daskscope import __version__, wire
from daskscope.agent.texts import told
from daskscope.compression import Encoding
from daskscope.deadline import Backend, Deadline
from daskscope.discovery import is_loopback
from daskscope.foreign import one_line
from daskscope.outcome import Outcome, judge

DEADLINE_S = 10.0
CONNECT_S = 3.0
MAX_REPLY_BYTES = 64 << 10
KEEP_S = 60.0
"""How long a connection may idle: at the usual pace none is made anew, and one that a firewall forgot is not tried."""

_SENDABLE = re.compile(r"[!-~]+")
"""A token, as a header takes it."""


class Transport(Protocol):
    """Where messages go."""

    def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool) -> Outcome:
        """Try once. `name` tells the message from others of this machine (`<cluster>-<boot>-<seq>`); `is_own`: this
        process made it, so that the clock here is its scheduler's."""
        ...

    def close(self) -> None: ...


class Http:
    """Posts to a server. The pool, whose TLS set-up takes 20 ms, is made in the sender's thread."""

    def __init__(
        self,
        server: str,
        token: str | None,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        *,
        account: str | None = None,
    ) -> None:
        """`account` is the one that messages are for; None for the token's own."""
        self._url = server + wire.PATH
        self._token, self._account = token, account
        self._now = now
        self._deadline = Deadline(monotonic)
        self._pool: httpcore.ConnectionPool | None = None
        self._context: ssl.SSLContext | None = None

    def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
        del name
        headers = [
            ("host", urlsplit(self._url).netloc.rpartition("@")[2]),  # with the brackets of an IPv6 address
            ("user-agent", f"daskscope/{__version__}"),
            ("accept-encoding", "identity"),  # a reply has a few bytes
            ("content-type", wire.CONTENT_TYPE),
            ("content-encoding", encoding),
        ]
        if is_own:
            headers.append((wire.SENT_AT, str(round(self._now() * 1e3))))
        if self._token:
            if not _SENDABLE.fullmatch(self._token):  # the library below would quote it in its log
                return Outcome("again", "it cannot be sent, is daskscope.token in order?")
            headers.append(("authorization", f"Bearer {self._token}"))
        if self._account:
            headers.append((wire.ACCOUNT, self._account))
        try:
            self._deadline.start(DEADLINE_S)
            if self._pool is None:
                self._pool = self._fresh_pool()
            # A pool waits without end for a connection that it lost count of.
            extensions = {"timeout": {"pool": DEADLINE_S}}
            with self._pool.stream("POST", self._url, headers=headers, content=body, extensions=extensions) as response:
                reply = _start_of(response)
                return judge(response.status, _retry_after(response), reply, encoding, self._token, self._account)
        except (httpcore.LocalProtocolError, ValueError, TypeError) as error:
            # What cannot be sent; the error's own text may quote the token.
            self.close()
            return Outcome(
                "again", f"{type(error).__name__}: it cannot be sent, are daskscope.token and .server in order?"
            )
        except (
            httpcore.TimeoutException,
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.ProxyError,
            httpcore.UnsupportedProtocol,
            OSError,
            RuntimeError,
            ImportError,
        ) as error:
            # The last two: the interpreter is shutting down, or the proxy needs a package that is not there.
            self.close()
            return Outcome("again", one_line(told(error), self._token))

    def close(self) -> None:
        """Also after a failure: nothing of a connection that failed is used again."""
        pool, self._pool = self._pool, None
        if pool is not None:
            with contextlib.suppress(OSError, RuntimeError):
                pool.close()

    def _fresh_pool(self) -> httpcore.ConnectionPool:
        if self._context is None and urlsplit(self._url).scheme == "https":
            import httpx  # its context heeds SSL_CERT_FILE and SSL_CERT_DIR

            self._context = httpx.create_ssl_context()
        return _pool(self._url, self._context, Backend(self._deadline, CONNECT_S))


def _pool(url: str, context: ssl.SSLContext | None, backend: Backend) -> httpcore.ConnectionPool:
    proxy = _proxy(url)
    if proxy is None:
        return httpcore.ConnectionPool(context, max_connections=1, keepalive_expiry=KEEP_S, network_backend=backend)
    parts = urlsplit(proxy)
    auth = (unquote(parts.username or ""), unquote(parts.password or "")) if parts.username else None
    kind = httpcore.SOCKSProxy if parts.scheme.startswith("socks5") else httpcore.HTTPProxy
    return kind(proxy, auth, ssl_context=context, max_connections=1, keepalive_expiry=KEEP_S, network_backend=backend)


def _proxy(url: str) -> str | None:
    """The one that the environment names for this address. It is for the world outside: what is for this machine stays
    on it."""
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    known = getproxies()
    found = known.get(parts.scheme) or known.get("all")
    return found if found is None or "://" in found else f"http://{found}"


def _retry_after(response: httpcore.Response) -> str | None:
    found = [value for name, value in response.headers if name.lower() == b"retry-after"]
    return found[0].decode("latin-1") if found else None


def _start_of(response: httpcore.Response) -> bytes:
    """A server that sends much, or slowly, is not listened to for longer: its status said what is to be known."""
    body = bytearray()
    try:
        for chunk in response.iter_stream():
            body += chunk
            if len(body) > MAX_REPLY_BYTES:
                break
    except httpcore.TimeoutException:
        pass
    return bytes(body)

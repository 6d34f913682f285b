"""Sockets whose waits all end at one time.

An HTTP client bounds each wait of its own. A server that sends a byte a second, of headers without end, never trips
that: here every wait, for whatever part of a request, has only what is left of the whole.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable
from typing import Any

import httpcore


class Deadline:
    """When the request under way is to be over."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic, self._until = monotonic, 0.0

    def start(self, allowed_s: float) -> None:
        self._until = self._monotonic() + allowed_s

    def left_s(self) -> float:
        """More than 0. Raises httpcore.TimeoutException once it is over."""
        left_s = self._until - self._monotonic()
        if left_s <= 0:
            raise httpcore.TimeoutException("the time for a request is over")
        return left_s


class Backend(httpcore.NetworkBackend):
    """Where a pool gets its connections. Only the look-up of a name may take as long as the system lets it."""

    def __init__(self, deadline: Deadline, connect_s: float) -> None:
        """`connect_s`: for each address that a name has."""
        self._deadline, self._connect_s = deadline, connect_s
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        del timeout
        failed: Exception = httpcore.ConnectError(f"{host} has no address")
        try:
            known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        for *_, address in known:
            allowed_s = min(self._connect_s, self._deadline.left_s())
            try:
                inner = self._inner.connect_tcp(str(address[0]), port, allowed_s, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
            else:
                return _Stream(inner, self._deadline)
        raise failed


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline, *, nested: bool = False) -> None:
        """`nested`: TLS within TLS, of which the socket below is not to be written to."""
        self._inner, self._deadline, self._nested = inner, deadline, nested

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        del timeout
        return self._inner.read(max_bytes, self._deadline.left_s())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        del timeout
        if self._nested:
            self._inner.write(buffer, self._deadline.left_s())
            return
        # The inner one gives each piece that the other side takes the whole time again.
        sock: socket.socket = self._inner.get_extra_info("socket")
        rest = memoryview(buffer)
        while rest:
            sock.settimeout(self._deadline.left_s())
            try:
                rest = rest[sock.send(rest) :]
            except TimeoutError as error:
                raise httpcore.WriteTimeout(str(error)) from error
            except OSError as error:
                raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        del timeout
        nested = isinstance(self._inner.get_extra_info("socket"), ssl.SSLSocket)
        inner = self._inner.start_tls(ssl_context, server_hostname, self._deadline.left_s())
        return _Stream(inner, self._deadline, nested=nested)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

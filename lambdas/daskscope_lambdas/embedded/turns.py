"""Whose message is taken in next: one token that posts without end keeps nobody else from being heard."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

AT_ONCE = 2
"""Messages of one token that are taken in at a time: half of the threads that do so."""
WAITING = 64
"""More than so many of one token do not wait here: their senders do, and lose nothing by it."""


class CrowdedError(Exception):
    """Too many messages of this token wait already."""


@dataclass(slots=True)
class _Line:
    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    n: int = 0
    """Those that wait or are being taken in."""


class Turns:
    """A line for each token that has messages here at this moment. For one event loop."""

    def __init__(self) -> None:
        self._lines: dict[bytes, _Line] = {}

    @asynccontextmanager
    async def turn(self, authorization: str) -> AsyncGenerator[None]:
        """Entered when it is this message's turn. Raises CrowdedError.

        By the header as it came: whoever does not know a token takes up no place in its line.
        """
        name = hashlib.sha256(authorization.encode("utf-8", "surrogatepass")).digest()
        line = self._lines.setdefault(name, _Line())
        if line.n >= AT_ONCE + WAITING:
            raise CrowdedError
        line.n += 1
        try:
            async with line.free:
                yield
        finally:
            line.n -= 1
            if not line.n:
                del self._lines[name]

"""A proxy on loopback that does to each request what it is told: HTTP/1.1 with lengths, kept alive, TLS if wanted.

It runs in a thread of its own. What it saw of each request stays in `seen`, with the time by the test's clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["pass", "answer", "silence", "drip", "reset", "half-close", "garbage", "lose-answer"]
"""`silence`: takes all and says nothing. `reset`: once it was read. `half-close`: an end where an answer
should be. `lose-answer`: the server behind has it and has answered, and the connection is cut."""

DRIP_S = 0.02
"""Between two bytes of an answer that comes slowly: a second, in a time where a request has a fiftieth of its own."""


@dataclass(frozen=True, slots=True)
class Fault:
    kind: Kind = "pass"
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


PASS = Fault()


def status(code: int, **headers: str) -> Fault:
    """Answered by the proxy itself; `_` in a header's name stands for `-`."""
    return Fault("answer", code, {name.replace("_", "-"): value for name, value in headers.items()})


class Request(NamedTuple):
    headers: Mapping[str, str]
    body: bytes


class Seen(NamedTuple):
    at: float
    headers: Mapping[str, str]
    body: bytes
    fault: Fault
    status: int | None
    """What the server behind answered, or the proxy itself; None if nobody did."""


Choose = Callable[[Request], Fault]


class Proxy:
    """`choose` is asked for each request; `refuse` and `listen` close the door and open it again."""

    def __init__(self, target_port: int, now: Callable[[], float] = time.monotonic, tls: ssl.SSLContext | None = None
                 ) -> None:  # fmt: skip
        self.choose: Choose = lambda _: PASS
        self.seen = list[Seen]()
        self.n_plain_bytes = 0
        """Bytes of requests that came to be read; behind TLS, after a handshake."""
        self._target_port, self._now, self._tls = target_port, now, tls
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._open = dict[asyncio.Task[None], asyncio.StreamWriter]()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://{'localhost' if tls else '127.0.0.1'}:{self.port}"

    @contextlib.contextmanager
    def running(self) -> Generator[Proxy]:
        thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        thread.start()
        try:
            self.listen()
            yield self
        finally:
            self.refuse()
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    def listen(self) -> None:
        self._do(self._listen())

    def refuse(self) -> None:
        """Nobody listens, and who is connected is cut off."""
        self._do(self._refuse())

    def _do(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(20)  # pyright: ignore[reportArgumentType]

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self._tls, limit=1 << 20)

    async def _refuse(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for task, writer in self._open.items():
            _reset(writer)
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        self._open.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._open[task] = writer
        behind: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                behind = await asyncio.open_connection("127.0.0.1", self._target_port, limit=1 << 20)
                while await self._exchange(reader, writer, *behind):
                    pass
        finally:
            self._open.pop(task, None)
            for end in (writer, behind[1] if behind else None):
                if end is not None:
                    end.close()

    async def _exchange(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        there: asyncio.StreamReader,
        back: asyncio.StreamWriter,
    ) -> bool:
        """One request; whether another may come on this connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        began, headers = self._now(), _headers(head)
        length = int(headers.get("content-length", "0"))
        body = await reader.readexactly(length)
        self.n_plain_bytes += len(head) + length
        fault = self.choose(Request(headers, body))
        answered: int | None = None
        stays = False
        if fault.kind in ("pass", "lose-answer"):
            back.write(head + body)
            answer = await _answer(there)
            answered = int(answer.split(b" ", 2)[1])
            # Before the client can know: what it does next comes after.
            self.seen.append(Seen(began, headers, body, fault, answered))
            stays = fault.kind == "pass"
            if stays:
                writer.write(answer)
                await writer.drain()
        else:
            answered = fault.status if fault.kind == "answer" else None
            self.seen.append(Seen(began, headers, body, fault, answered))
            stays = await _fail(reader, writer, fault)
        if not stays:
            _reset(writer) if fault.kind in ("reset", "lose-answer") else writer.close()
        return stays


async def _fail(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault) -> bool:
    if fault.kind == "answer":
        lines = [f"HTTP/1.1 {fault.status} Told", *(f"{name}: {value}" for name, value in fault.headers.items())]
        writer.write("\r\n".join([*lines, "content-length: 0", "", ""]).encode("latin-1"))
        await writer.drain()
        return True
    if fault.kind == "silence":
        await reader.read()  # until the other side gives up
    elif fault.kind == "drip":
        for byte in b"HTTP/1.1 200 OK\r\n" + b"x-slow: x\r\n" * 1000:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(DRIP_S)
    elif fault.kind == "half-close":
        writer.write_eof()
        await reader.read()
    elif fault.kind == "garbage":
        writer.write(bytes(range(256)))
        await writer.drain()
    return False


async def _answer(there: asyncio.StreamReader) -> bytes:
    head = await there.readuntil(b"\r\n\r\n")
    return head + await there.readexactly(int(_headers(head).get("content-length", "0")))


def _headers(head: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:] if line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _reset(writer: asyncio.StreamWriter) -> None:
    """Cut it off as a machine does that knows nothing of the connection."""
    sock = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()

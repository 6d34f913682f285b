"""A web proxy as companies have one: it takes `CONNECT`, and plain requests with a whole URL in them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Generator

END = b"\r\n\r\n"


class Tunnel:
    """Whatever is asked for, it brings to one port of this machine. `heard` is all that came from clients."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self.heard = bytearray()
        self.asked = list[str]()
        """First lines of what was asked of it."""
        self.port = 0

    @contextlib.contextmanager
    def running(self) -> Generator[Tunnel]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="web-proxy", daemon=True)
        thread.start()

        async def listen() -> asyncio.Server:
            return await asyncio.start_server(self._serve, "127.0.0.1", 0)

        async def end() -> None:
            server.close()
            mine = asyncio.current_task()
            others = [task for task in asyncio.all_tasks() if task is not mine]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        server = asyncio.run_coroutine_threadsafe(listen(), loop).result(20)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(end(), loop).result(20)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(END)
            self.heard += head
            line, _, rest = head.partition(b"\r\n")
            self.asked.append(line.decode("latin-1"))
            method, target, version = line.split(b" ")
            there, back = await asyncio.open_connection("127.0.0.1", self._target_port)
            try:
                if method == b"CONNECT":
                    writer.write(b"HTTP/1.1 200 Connected" + END)
                else:
                    path = b"/" + target.split(b"/", 3)[3]
                    back.write(b" ".join((method, path, version)) + b"\r\n" + rest)
                ways = [asyncio.create_task(self._pipe(reader, back, heard=True)),
                        asyncio.create_task(self._pipe(there, writer, heard=False))]  # fmt: skip
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
            finally:
                back.close()
        writer.close()

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, heard: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if heard:
                    self.heard += data
                writer.write(data)
                await writer.drain()

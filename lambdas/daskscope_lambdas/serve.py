"""`daskscope serve`: the functions, with a disk and SQLite for AWS, under one command.

this process            HTTP, `ingest` and `sweep` in threads, the schedule
process `api`           pages and queries, two of them when busy
process `write`         queue to lake
process `compact`       seals days; only while it works
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import logging
import multiprocessing
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import uvicorn

from daskscope import settings
from daskscope.discovery import PORT, is_loopback, rendezvous
from daskscope.errors import NotLoggedIn, SettingsError
from daskscope.spool import folder
from daskscope_lambdas.embedded.asgi import Gateway
from daskscope_lambdas.embedded.function import Function, log_plainly
from daskscope_lambdas.embedded.schedule import Schedule
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.ports import Scope
from daskscope_lambdas.service.gate import Gate
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import Adapters, connect

logger = logging.getLogger("daskscope.serve")

ACCOUNT = "local"
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
SHUTDOWN_S = 4.0
"""Processes that have not ended by then are ended; with the web server's own second and the last catalog's three this
stays below the ten after which Docker kills."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that listens. `url` has no slash at its end; `open` if pages ask for no login."""

    url: str
    token: str
    ingest_token: str
    """The one that goes to schedulers: it reads nothing."""
    data: Path
    open: bool


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()


def run(
    host: str = "127.0.0.1",
    port: int = PORT,
    data: str | None = None,
    ready: Callable[[Running], None] | None = None,
    allow_hosts: Iterable[str] = (),
) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is called once it listens. Port 0 takes any free one.

    `allow_hosts`: names besides this machine's own under which a proxy reaches a server on loopback.
    Raises SettingsError if the address cannot be had. Call it from the main thread: it takes the signals.
    """
    log_plainly()
    shared = Path(settings.load().data)
    home = _private(Path(data).expanduser().absolute() if data else shared)
    listener = _listen(host, port)
    port = listener.getsockname()[1]
    url = f"http://{_reachable(host)}:{port}"
    loopback = is_loopback(f"http://{_bracketed(host)}")
    here = LocalEnv(data=str(home), pages="open" if loopback else "login")
    os.environ |= here.variables()
    # Only now, for the handlers read the environment.
    from daskscope_lambdas.handlers import house, ingest, sweep

    world = connect(here)
    token = _token(home, world, "token", get_args(Scope))
    ingest_token = _token(home, world, "ingest-token", ("ingest",))
    running = Running(url, token, ingest_token, home, loopback)
    api = Function("daskscope_lambdas.handlers.api", processes=2)
    write = Function("daskscope_lambdas.handlers.write", timeout_s=100)
    compact = Function("daskscope_lambdas.handlers.compact", timeout_s=900)
    names = LOOPBACK_NAMES | {_reachable(host)} | set(allow_hosts)
    gateway = Gateway(ingest.handler, api, names if loopback else None)
    spools = (folder(shared), folder(home))
    schedule = Schedule(world.feed, write, compact, ingest.handler, sweep.handler, ingest_token, *spools)
    meeting = rendezvous(shared, port)

    def started() -> None:
        if is_loopback(url):
            _leave_address(meeting, running)
        if ready:
            ready(running)

    config = uvicorn.Config(
        gateway, lifespan="off", access_log=False, log_level="warning", server_header=False, timeout_graceful_shutdown=1
    )
    server = _Server(config, started)
    api.warm()
    try:
        asyncio.run(_serve(server, listener, schedule))
    finally:
        for part in (gateway, api, write, compact):
            part.close()
        _take_address_back(meeting)
        _end_processes()
        listener.close()
        house.adapters().close()
        world.close()


async def _serve(server: uvicorn.Server, listener: socket.socket, schedule: Schedule) -> None:
    def stop(*_: object) -> None:
        server.should_exit = True

    # uvicorn hands a signal on to whoever had it before: by default that would end us before we have tidied up.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    rounds = asyncio.create_task(schedule.run())
    try:
        await server.serve([listener])
    finally:
        rounds.cancel()
        with suppress(asyncio.CancelledError):
            await rounds
    await schedule.leave_catalog()


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _listen(host: str, port: int) -> socket.socket:
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
            raise SettingsError("--port", port, allowed) from error
        if error.errno == errno.EACCES:
            raise SettingsError("--port", port, "a port that this user may use, 1024 to 65535") from error
        raise SettingsError("--host", host, f"an address of this machine ({error.strerror or error})") from error


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _reachable(host: str) -> str:
    """The address that this machine itself uses for what listens on `host`."""
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        if address.is_unspecified:
            return "127.0.0.1" if address.version == 4 else "[::1]"
    return _bracketed(host)


def _token(home: Path, world: Adapters, name: str, scopes: tuple[Scope, ...]) -> str:
    """A token of this data folder, in a file that only this user may read: made at the first start, and anew where an
    earlier release made it with fewer scopes."""
    path = home / name
    with suppress(FileNotFoundError, NotLoggedIn):
        text = path.read_text().strip()
        if Gate(world.tokens, world.users, world.clock).principal(f"Bearer {text}").scopes >= set(scopes):
            return text
    text, _ = mint(world.tokens, world.clock, ACCOUNT, scopes, f"daskscope serve: {name}")
    _write_private(path, text + "\n")
    return text


def _leave_address(path: Path, running: Running) -> None:
    """Where plugins and clients of the same user find us."""
    _private(path.parent)
    tokens = {"token": running.token, "ingest_token": running.ingest_token}
    found = {"url": running.url, **tokens, "pid": os.getpid(), "data": str(running.data)}
    _write_private(path, json.dumps(found))


def _take_address_back(path: Path) -> None:
    with suppress(OSError, ValueError, KeyError):
        if json.loads(path.read_text())["pid"] == os.getpid():
            path.unlink()


def _write_private(path: Path, text: str) -> None:
    """Whole or not at all, and 0600 from the first byte."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)


def _end_processes() -> None:
    deadline = time.monotonic() + SHUTDOWN_S
    for child in multiprocessing.active_children():
        child.join(max(0.0, deadline - time.monotonic()))
        if child.is_alive():
            child.kill()
            child.join()

"""`daskscope serve`: the functions, with a disk and SQLite for AWS, under one command.

this process            HTTP at two ports, `ingest` and `sweep` in threads, the schedule
process `api`           pages and queries, two of them when busy
process `write`         queue to lake
process `compact`       seals days; only while it works
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
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
from daskscope.spool import folder
from daskscope_lambdas.embedded import credentials
from daskscope_lambdas.embedded.asgi import Gateway
from daskscope_lambdas.embedded.function import Function, log_plainly
from daskscope_lambdas.embedded.listening import (
    AS_ASKED,
    Proxied,
    hosts,
    is_here,
    known_as,
    listen,
    listen_beside,
    port_of,
    reachable,
)
from daskscope_lambdas.embedded.messages import Receive, Scope, Send
from daskscope_lambdas.embedded.occupancy import Occupancy, occupied
from daskscope_lambdas.embedded.reports_origin import ReportsOrigin
from daskscope_lambdas.embedded.schedule import Schedule
from daskscope_lambdas.embedded.uploads import Uploads
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.ports import Scope as TokenScope
from daskscope_lambdas.wiring import connect

ACCOUNT = "local"
SHUTDOWN_S = 4.0
"""Processes that have not ended by then are ended; with the web server's own second and the last catalog's three this
stays below the ten after which Docker kills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server that listens. URLs have no slash at their end; `open` if pages ask for no login."""

    url: str
    """Where people reach it."""
    url_here: str
    """Where this machine does."""
    sign_in_url: str
    """Lets a browser in, once."""
    reports_url: str
    port: int
    reports_port: int
    data: Path
    open: bool
    is_plain: bool
    """Whether others reach it, and by nothing that encrypts."""


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
    proxied: Proxied = AS_ASKED,
    reports_port: int | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is called once it listens. Port 0 takes any free one; of reports None the
    one after `port`.

    Raises SettingsError if an address cannot be had, or another server has the data folder. Call it from the main
    thread: it takes the signals.
    """
    log_plainly()
    shared = Path(settings.load().data)
    home = credentials.private_folder(Path(data).expanduser().absolute() if data else shared)
    with (
        occupied(home) as occupancy,
        listen(host, port) as listener,
        listen_beside(listener, host, reports_port) as beside,
    ):
        here = _env(home, host, beside, proxied)
        os.environ |= here.variables()
        _run(here, host, (listener, beside), shared, ready, proxied, occupancy)


def _run(
    here: LocalEnv,
    host: str,
    listeners: tuple[socket.socket, socket.socket],
    shared: Path,
    ready: Callable[[Running], None] | None,
    proxied: Proxied,
    occupancy: Occupancy,
) -> None:
    # Only now, for the handlers read the environment.
    from daskscope_lambdas.handlers import house, ingest, sweep

    world, home, user = connect(here), Path(here.data), credentials.os_user()
    port, reports_port = map(port_of, listeners)
    user = credentials.admit(world, ACCOUNT, user)
    token, allowed = credentials.keep_token(home, world, ACCOUNT, "token", get_args(TokenScope), user)
    # Nobody's: schedulers of many may have it, and messages that others left on disk come in with it.
    ingest_token, _ = credentials.keep_token(home, world, ACCOUNT, "ingest-token", ("ingest",), None)
    url = f"http://{reachable(host)}:{port}"
    address = here.address or f"http://{known_as(host)}:{port}"
    api = Function("daskscope_lambdas.handlers.api", processes=2)
    write = Function("daskscope_lambdas.handlers.write", timeout_s=100)
    compact = Function("daskscope_lambdas.handlers.compact", timeout_s=900)
    names = hosts(host, proxied)
    gateway = Gateway(ingest.handler, api, Uploads(world.report_host), names)
    reports = ReportsOrigin(world.report_host, names)
    spools = (folder(shared), folder(home))
    schedule = Schedule(world.feed, write, compact, ingest.handler, sweep.handler, ingest_token, *spools)
    meeting = rendezvous(shared, port)

    def started() -> None:
        if is_loopback(url):
            credentials.leave_address(meeting, url, token, ingest_token, home, address)
        occupancy.tell(address)
        if ready:
            link = f"{address}/{credentials.link_of(world, allowed).url}"
            plain = not is_here(host) and not here.address.startswith("https:")
            beside = here.reports if proxied.reports_url else f"http://{known_as(host)}{here.reports}"
            ready(Running(url=address, url_here=url, sign_in_url=link, reports_url=beside, port=port,
                          reports_port=reports_port, data=home, open=here.pages == "open", is_plain=plain))  # fmt: skip

    async def serve_both(scope: Scope, receive: Receive, send: Send) -> None:
        """By the port that was asked: two origins to a browser."""
        await (reports if scope["server"][1] == reports_port else gateway)(scope, receive, send)

    config = uvicorn.Config(
        serve_both, lifespan="off", access_log=False, log_level="warning", server_header=False,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = _Server(config, started)
    api.warm()
    try:
        asyncio.run(_serve(server, listeners, schedule))
    finally:
        for part in (gateway, api, write, compact):
            part.close()
        credentials.take_address_back(meeting)
        _end_processes()
        house.adapters().close()
        world.close()


def _env(home: Path, host: str, beside: socket.socket, proxied: Proxied) -> LocalEnv:
    # Whoever allows another name lets others ask, by way of whatever goes by it.
    is_open = is_here(host) and proxied == AS_ASKED
    reports = proxied.reports_url or f":{port_of(beside)}"
    pages = "open" if is_open else "login"
    return LocalEnv(data=str(home), pages=pages, address=proxied.url or "", reports=reports)


async def _serve(server: uvicorn.Server, listeners: Iterable[socket.socket], schedule: Schedule) -> None:
    def stop(*_: object) -> None:
        server.should_exit = True

    # uvicorn hands a signal on to whoever had it before: by default that would end us before we have tidied up.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    rounds = asyncio.create_task(schedule.run())
    try:
        await server.serve([*listeners])
    finally:
        rounds.cancel()
        with suppress(asyncio.CancelledError):
            await rounds
    await schedule.leave_catalog()


def _end_processes() -> None:
    deadline = time.monotonic() + SHUTDOWN_S
    for child in multiprocessing.active_children():
        child.join(max(0.0, deadline - time.monotonic()))
        if child.is_alive():
            child.kill()
            child.join()
